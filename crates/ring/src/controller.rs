//! The ring: builds the workers, calls elections, watches, and stops everything.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use konklave_algorithms::Setup;
use konklave_process::{ProcessId, Rng, Topology};

use crate::buffer::{Buffer, HandOver, deadline, is_over};
use crate::ledger::{Event, Ledger, TwoLeaders};
use crate::log::{Journal, Level};
use crate::report::{Election, Outcome, Reporter, Verdict, count, sentence};
use crate::worker::{self, Shared, SlotItem};
use crate::{Options, RingError, Stop, introduce};

/// How often signals are looked for.
const GLANCE: Duration = Duration::from_millis(20);
/// How long a worker may take to notice that it is to stop, before its slot is closed.
const STOP_PATIENCE: Duration = Duration::from_millis(100);

/// The ring controller.
pub(crate) struct Controller<'a> {
    options: &'a Options,
    journal: Journal<'a>,
    reporter: Reporter<'a>,
    stop: &'a Stop,
    workers: Workers,
    events: Receiver<Event>,
    ledger: Ledger,
    rng: Rng,
    /// Whether there were two leaders in the current election.
    two_leaders: bool,
    /// When the patience with an interrupted election ends.
    grace: Option<Option<Instant>>,
    outcome: Outcome,
}

/// The threads, and the slots they listen to.
struct Workers {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

/// Why we stopped waiting for the ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Waited {
    AtRest,
    TooLong,
    Interrupted,
}

impl<'a> Controller<'a> {
    /// Starts the workers.
    pub(crate) fn new(
        options: &'a Options,
        journal: Journal<'a>,
        reporter: Reporter<'a>,
        stop: &'a Stop,
    ) -> Result<Self, RingError> {
        let size = options.group.len();
        let shared = Arc::new(Shared {
            setup: Setup::new(options.group.clone(), Topology::directed_ring(size)),
            buffers: (0..size).map(|_| Buffer::new()).collect(),
            worker_sleep: options.worker_sleep,
            send_timeout: options.send_timeout,
        });
        let (sender, events) = mpsc::channel();
        let mut workers = Workers { shared, threads: Vec::new() };
        for &id in options.group.members() {
            let threads = worker::start(id, &workers.shared, options, &sender)
                .map_err(|reason| RingError::Threads { size, reason })?;
            workers.threads.extend(threads);
        }
        let outcome = Outcome::new(options);
        Ok(Self {
            options,
            journal,
            reporter,
            stop,
            workers,
            events,
            ledger: Ledger::new(&options.group),
            rng: Rng::new(options.seed).fork(1),
            two_leaders: false,
            grace: None,
            outcome,
        })
    }

    /// Runs all elections and stops the workers.
    pub(crate) fn run(mut self) -> Result<Outcome, RingError> {
        introduce(self.options, &mut self.journal);
        for number in 1.. {
            if self.is_stopped()? {
                break;
            }
            let election = self.elect(number)?;
            self.outcome.account(&election);
            if let Err(reason) = self.reporter.election(&election) {
                match reason.kind() {
                    // The reader of our results has closed the pipe: it has read enough.
                    io::ErrorKind::BrokenPipe => break,
                    _ => return Err(RingError::Output(reason)),
                }
            }
            if election.leader.is_none() || number == self.options.number_of_elections {
                break;
            }
            self.pause()?;
        }
        self.shut_down();
        self.reporter.close(&self.outcome)?;
        Ok(self.outcome)
    }

    /// One election, started again as long as failures make it fail.
    fn elect(&mut self, number: u64) -> Result<Election, RingError> {
        let began = Instant::now();
        self.two_leaders = false;
        self.ledger.begin();
        let mut election = Election {
            election: number,
            initiator: None,
            leader: None,
            messages: 0,
            timed_out: 0,
            attempts: 0,
            duration_ms: 0.0,
            verdict: Verdict::Unfinished,
        };
        // Each failure can spoil one attempt, and one more may be bad luck.
        let attempts = self.options.failures.len() as u32 + 2;
        while election.attempts < attempts {
            let Some(initiator) = self.initiator() else {
                self.journal.write(Level::Error, || "no live worker is left".into());
                break;
            };
            election.initiator = Some(initiator.0);
            election.attempts += 1;
            let waited = self.attempt(number, election.attempts, initiator)?;
            if let Some((leader, at)) = self.ledger.complete {
                election.leader = Some(leader.0);
                election.duration_ms = millis(at - began);
                election.verdict = self.judge(number, leader);
                break;
            }
            match waited {
                Waited::Interrupted => {
                    election.verdict = Verdict::Interrupted;
                    break;
                }
                Waited::TooLong => {
                    self.journal.write(Level::Error, || format!("election {number} timed out"));
                    break;
                }
                Waited::AtRest => self.journal.write(Level::Warn, || {
                    format!("election {number} ended without a live leader")
                }),
            }
        }
        if election.leader.is_none() {
            election.duration_ms = millis(began.elapsed());
        }
        if self.two_leaders {
            election.verdict = Verdict::Violated;
        }
        (election.messages, election.timed_out) = (self.ledger.messages, self.ledger.timed_out);
        let level = match election.verdict {
            Verdict::Ok | Verdict::Interrupted => Level::Info,
            Verdict::Violated | Verdict::Unfinished => Level::Error,
        };
        self.journal.write(level, || format!("election {number} is over: {}", sentence(&election)));
        Ok(election)
    }

    /// Starts an election and waits until no message is in flight.
    fn attempt(
        &mut self,
        number: u64,
        attempt: u32,
        initiator: ProcessId,
    ) -> Result<Waited, RingError> {
        let limit = deadline(self.time_limit());
        self.ledger.begin_attempt();
        if attempt > 1 {
            for id in self.ledger.live() {
                self.assign(id, SlotItem::Forget);
            }
            self.journal.write(Level::Info, || {
                format!("election {number} starts anew at worker {}", initiator.0)
            });
        } else {
            self.journal.write(Level::Info, || {
                format!("election {number} starts at worker {}", initiator.0)
            });
        }
        self.assign(initiator, SlotItem::Start);
        loop {
            if self.ledger.at_rest() {
                return Ok(Waited::AtRest);
            }
            if self.is_stopped()? {
                let grace = *self.grace.get_or_insert_with(|| {
                    self.journal.write(Level::Info, || {
                        "interrupted: lets the current election finish".into()
                    });
                    let size = self.options.group.len() as u32;
                    deadline(self.options.send_timeout.saturating_mul(size))
                });
                if is_over(grace) {
                    return Ok(Waited::Interrupted);
                }
            }
            if is_over(limit) {
                return Ok(Waited::TooLong);
            }
            self.listen(GLANCE);
        }
    }

    /// Puts `item` into a worker's slot. A worker that does not take it has failed; its predecessor
    /// notices that by its own timeout.
    fn assign(&mut self, id: ProcessId, item: SlotItem) {
        let slot = &self.workers.shared.buffers[self.workers.shared.setup.place(id)];
        match slot.put(item, self.options.send_timeout) {
            HandOver::Taken => self.ledger.assigned(),
            HandOver::TimedOut(_) | HandOver::Closed(_) => {
                self.journal
                    .write(Level::Warn, || format!("worker {} does not take its message", id.0));
            }
        }
    }

    /// The initiator of the next election.
    fn initiator(&mut self) -> Option<ProcessId> {
        // Failures may have been told and not been heard yet.
        self.listen(Duration::ZERO);
        let live = self.ledger.live();
        match self.options.initiator {
            Some(wanted) if self.ledger.is_live(wanted) => return Some(wanted),
            Some(ProcessId(wanted)) if !live.is_empty() => {
                self.journal.write(Level::Warn, || {
                    format!("worker {wanted} has failed: another one starts the election")
                });
            }
            _ => {}
        }
        live.get(self.rng.below(live.len() as u32) as usize).copied()
    }

    /// The verdict on a finished election.
    fn judge(&mut self, number: u64, leader: ProcessId) -> Verdict {
        let uninformed = self.ledger.uninformed(leader);
        if uninformed.is_empty() {
            return Verdict::Ok;
        }
        for ProcessId(id) in uninformed {
            self.journal.write(Level::Error, || {
                format!("election {number}: live worker {id} does not know the leader")
            });
        }
        Verdict::Violated
    }

    /// More than any election takes: three rounds, and each failure found out once.
    fn time_limit(&self) -> Duration {
        let failures = self.options.send_timeout.saturating_mul(2 * self.size() + 4);
        let rests = self.options.worker_sleep.saturating_mul(4 * self.size() + 8);
        failures.saturating_add(rests).saturating_add(Duration::from_secs(10))
    }

    fn size(&self) -> u32 {
        self.options.group.len() as u32
    }

    /// Waits between two elections.
    fn pause(&mut self) -> Result<(), RingError> {
        let end = deadline(self.options.sleep);
        while !is_over(end) && !self.is_stopped()? {
            let left = end.map_or(GLANCE, |end| end.saturating_duration_since(Instant::now()));
            self.listen(left.min(GLANCE));
        }
        Ok(())
    }

    /// Whether the user stopped the program. A second signal ends it at once.
    fn is_stopped(&mut self) -> Result<bool, RingError> {
        match self.stop.signals() {
            0 => Ok(false),
            1 => {
                self.outcome.interrupted = true;
                Ok(true)
            }
            _ => Err(RingError::Interrupted),
        }
    }

    /// Applies the events of the workers; waits at most `patience` for the first.
    fn listen(&mut self, patience: Duration) {
        match self.events.recv_timeout(patience) {
            Ok(event) => self.note(event),
            // Without workers nobody tells anything.
            Err(RecvTimeoutError::Disconnected) => std::thread::sleep(patience),
            Err(RecvTimeoutError::Timeout) => {}
        }
        while let Ok(event) = self.events.try_recv() {
            self.note(event);
        }
    }

    fn note(&mut self, event: Event) {
        if let Err(TwoLeaders(leaders)) = self.ledger.note(&event) {
            self.two_leaders = true;
            let leaders: Vec<_> = leaders.iter().map(|p| p.0.to_string()).collect();
            self.journal.write(Level::Critical, || {
                format!("{} lead at the same time", leaders.join(" and "))
            });
        }
        match event {
            Event::Log(record) => self.journal.record(&record),
            Event::Failed(ProcessId(id)) => self.outcome.failed.push(id),
            _ => {}
        }
    }

    /// Stops the workers in an orderly way and waits for them.
    fn shut_down(&mut self) {
        for id in self.ledger.live() {
            let shared = &self.workers.shared;
            // A worker that does not take the order to stop finds its slot closed below.
            let _ = shared.buffers[shared.setup.place(id)].put(SlotItem::Stop, STOP_PATIENCE);
        }
        self.workers.close();
        for thread in self.workers.threads.drain(..) {
            if thread.join().is_err() {
                self.journal
                    .write(Level::Critical, || "a worker panicked: a bug of konklave".into());
                self.outcome.violated += 1;
            }
        }
        self.listen(Duration::ZERO);
        let elections = count(self.outcome.elections, "election");
        let messages = count(self.outcome.messages, "message");
        self.journal.write(Level::Info, || format!("stopped after {elections}, {messages}"));
        self.outcome.log_cut_short = self.journal.is_cut_short;
    }
}

impl Workers {
    fn close(&self) {
        self.shared.buffers.iter().for_each(Buffer::close);
    }
}

impl Drop for Workers {
    /// Closes all slots, so that no thread waits for ever.
    fn drop(&mut self) {
        self.close();
    }
}

fn millis(duration: Duration) -> f64 {
    // Microseconds are as much as anyone wants to read.
    duration.as_micros() as f64 / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Flags;
    use crate::log::Target;
    use crate::report::Style;

    #[test]
    fn two_leaders_are_critical_and_spoil_the_run() {
        let flags = Flags { ids: Some(vec![3, 9]), worker_sleep: Some(0), ..Flags::default() };
        let options = Options::resolve(&Flags { number_of_elections: Some(1), ..flags }).unwrap();
        let (mut out, mut err, stop) = (Vec::new(), Vec::new(), Stop::new());
        let mut journal = Journal::new(&mut err);
        let target = Target { level: Level::Info, console: true, file: None, date: false };
        journal.open(&target).unwrap();
        let reporter = Reporter { out: &mut out, style: Style::Text };
        let mut ring = Controller::new(&options, journal, reporter, &stop).unwrap();
        // 3 is said to lead and not to step down: 9 will be one too many.
        ring.note(Event::Leading(ProcessId(3)));
        let outcome = ring.run().unwrap();
        assert_eq!((outcome.violated, outcome.exit_code()), (1, 1));
        let err = String::from_utf8(err).unwrap();
        assert!(err.contains("CRITICAL [ring] 3 and 9 lead at the same time\n"), "{err}");
        let out = String::from_utf8(out).unwrap();
        assert!(
            out.contains("VIOLATION: two leaders, or a worker does not know leader 9"),
            "{out}"
        );
    }
}
