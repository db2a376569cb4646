//! A worker: one thread accepts messages, the other handles them. The algorithm itself is the pure state machine.

use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use konklave_algorithms::election::chang_roberts::{ChangRoberts, Message};
use konklave_algorithms::election::{Indication, Request};
use konklave_algorithms::{Algorithm, Setup};
use konklave_process::{Context, Effect, Host, Input, Inspect, ProcessId};

use crate::buffer::{Buffer, HandOver};
use crate::ledger::Event;
use crate::log::{Level, WorkerLog};
use crate::options::{FailAt, Options};
use crate::queue::Queue;

/// An item in a worker's slot.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum SlotItem {
    /// Call an election.
    Start,
    /// Forget a failed election.
    Forget,
    /// Stop.
    Stop,
    /// A neighbour's message.
    Ring { from: ProcessId, message: Message },
}

/// The data that all workers share.
pub(crate) struct Shared {
    pub(crate) setup: Setup,
    /// The workers' slots in ring order.
    pub(crate) buffers: Vec<Buffer<SlotItem>>,
    pub(crate) worker_sleep: Duration,
    pub(crate) send_timeout: Duration,
}

/// Enough stack for a worker's deepest call, and small enough for many workers.
const STACK_SIZE: usize = 256 * 1024;

/// Starts the worker `me`: its two threads.
pub(crate) fn start(
    me: ProcessId,
    shared: &Arc<Shared>,
    options: &Options,
    events: &Sender<Event>,
) -> io::Result<Vec<JoinHandle<()>>> {
    let level = options.log.as_ref().map(|log| log.level);
    let log = WorkerLog { who: me, level, events: events.clone() };
    let place = shared.setup.place(me);
    let fail_at = options.failures.get(&me).copied();
    if fail_at == Some(FailAt::Start) {
        shared.buffers[place].abandon();
        log.write(Level::Warn, || "fails at once and takes no messages".into());
        log.tell(Event::Failed(me));
        return Ok(Vec::new());
    }
    let queue = Arc::new(Queue::new(shared.setup.group.len()));
    let acceptor =
        Acceptor { place, shared: shared.clone(), queue: queue.clone(), log: log.clone() };
    let handler = Handler {
        me,
        place,
        shared: shared.clone(),
        queue,
        log,
        machine: ChangRoberts::new(me, &shared.setup),
        suspects: BTreeSet::new(),
        leading: false,
        handled: 0,
        fail_at,
    };
    let thread = |side: &str| {
        thread::Builder::new().name(format!("worker {} {side}", me.0)).stack_size(STACK_SIZE)
    };
    let accepting = thread("accepts").spawn(move || acceptor.run())?;
    let handling = thread("handles").spawn(move || handler.run())?;
    Ok(vec![accepting, handling])
}

/// The thread that empties the slot, even while the other thread is busy.
struct Acceptor {
    place: usize,
    shared: Arc<Shared>,
    queue: Arc<Queue<SlotItem>>,
    log: WorkerLog,
}

impl Acceptor {
    fn run(self) {
        let buffer = &self.shared.buffers[self.place];
        while let Some(item) = buffer.take() {
            self.log.write(Level::Trace, || format!("takes {} from its slot", name(&item)));
            if item == SlotItem::Stop {
                break;
            }
            match self.queue.push(item) {
                Ok(1) => {}
                Ok(waiting) => self
                    .log
                    .write(Level::Trace, || format!("is busy: {waiting} tasks wait in its queue")),
                // The worker failed between taking the message and queueing it.
                Err(_) => self.log.tell(Event::Lost(1)),
            }
        }
        match self.queue.end() {
            0 => {}
            lost => self.log.tell(Event::Lost(lost)),
        }
        // A failed worker's slot stays as it is. Only a worker that stops refuses further messages.
        if !buffer.is_abandoned() {
            buffer.close();
            self.log.write(Level::Debug, || "stops".into());
        }
    }
}

/// The thread that runs the algorithm, hands messages over and sleeps.
struct Handler {
    me: ProcessId,
    place: usize,
    shared: Arc<Shared>,
    queue: Arc<Queue<SlotItem>>,
    log: WorkerLog,
    machine: ChangRoberts,
    /// Neighbours that count as failed, for ever.
    suspects: BTreeSet<ProcessId>,
    leading: bool,
    /// The number of handled messages.
    handled: u64,
    fail_at: Option<FailAt>,
}

/// Collects the effects of one step of the state machine.
struct Effects(VecDeque<Effect<ChangRoberts>>);

impl Host<ChangRoberts> for Effects {
    fn perform(&mut self, effect: Effect<ChangRoberts>) {
        self.0.push_back(effect);
    }

    fn choose(&mut self, _bound: u32) -> u32 {
        // Chang and Roberts's algorithm makes no random choice.
        0
    }
}

impl Handler {
    fn run(mut self) {
        while let Some(item) = self.queue.next() {
            let fails = self.handle(item);
            if fails {
                self.fail();
            }
            self.log.tell(Event::Handled);
            if fails {
                return;
            }
            self.queue.rest(self.shared.worker_sleep);
        }
    }

    /// Handles one task. Returns whether it is the last one of this worker.
    fn handle(&mut self, item: SlotItem) -> bool {
        match item {
            SlotItem::Start => self.call_election(),
            SlotItem::Forget => {
                self.forget();
                false
            }
            SlotItem::Ring { from, message } => {
                self.handled += 1;
                let last = self.fail_at == Some(FailAt::Message(self.handled));
                if last {
                    self.take_no_more();
                }
                let won = self.receive(from, message);
                last || won
            }
            SlotItem::Stop => false,
        }
    }

    /// Leaves later messages in the slot. A worker that is about to fail calls this before it sends its last
    /// messages: otherwise it might still take the answers to them.
    fn take_no_more(&self) {
        self.shared.buffers[self.place].abandon();
    }

    /// Ends without notifying the others.
    fn fail(&mut self) {
        self.take_no_more();
        self.log.write(Level::Warn, || "fails and takes no more messages".into());
        self.log.tell(Event::Failed(self.me));
        match self.queue.end() {
            0 => {}
            lost => self.log.tell(Event::Lost(lost)),
        }
    }

    fn call_election(&mut self) -> bool {
        let mut effects = self.step(Input::Request(Request::Elect));
        self.step_down(&mut effects);
        if sends(&effects) {
            self.log.write(Level::Info, || "calls an election and proposes itself".into());
        } else if effects.is_empty() {
            self.log.write(Level::Warn, || "takes part already: ignores the call".into());
        }
        self.perform(effects)
    }

    fn receive(&mut self, from: ProcessId, message: Message) -> bool {
        self.log.write(Level::Debug, || format!("receives {} from {}", say(message), from.0));
        let mut effects = self.step(Input::Message { from, message });
        self.step_down(&mut effects);
        self.explain(message, &effects);
        self.perform(effects)
    }

    /// Reports first that an old leader steps down, in the log as in the algorithm.
    fn step_down(&mut self, effects: &mut VecDeque<Effect<ChangRoberts>>) {
        if effects.front() == Some(&Effect::Indicate(Indication::Deposed)) {
            effects.pop_front();
            self.indicate(Indication::Deposed);
        }
    }

    /// Forgets a failed election, since its marks of participation would disturb the next one.
    fn forget(&mut self) {
        self.log.write(Level::Debug, || "forgets the failed election".into());
        if self.leading {
            self.leading = false;
            self.log.tell(Event::Deposed(self.me));
        }
        self.machine = ChangRoberts::new(self.me, &self.shared.setup);
        for peer in self.suspects.clone() {
            let effects = self.step(Input::Suspect(peer));
            debug_assert!(effects.is_empty(), "a suspicion only mends the ring");
        }
    }

    fn step(&mut self, input: Input<ChangRoberts>) -> VecDeque<Effect<ChangRoberts>> {
        let mut effects = Effects(VecDeque::new());
        let mut context = Context::new(self.me, &self.shared.setup.group, &mut effects);
        self.machine.handle(input, &mut context);
        effects.0
    }

    /// Carries out effects in order. Returns whether this worker has won and is to fail then.
    fn perform(&mut self, mut effects: VecDeque<Effect<ChangRoberts>>) -> bool {
        let fails = self.fail_at == Some(FailAt::Elected);
        if fails && effects.iter().any(leads) {
            self.take_no_more();
        }
        let mut won = false;
        while let Some(effect) = effects.pop_front() {
            match effect {
                Effect::Send { to, message } => {
                    let more = self.send(to, message);
                    effects.extend(more);
                }
                Effect::Indicate(indication) => {
                    let leads = self.indicate(indication);
                    won |= leads;
                    if leads && !sends(&effects) {
                        // There is no other live worker, so no announcement is needed.
                        self.complete();
                    }
                }
                Effect::Unexpected(what) => {
                    self.log.write(Level::Warn, || format!("unexpected: {what}"));
                }
                // Only the hardened form has timers and records; the report's has none.
                Effect::SetTimer { .. } | Effect::CancelTimer { .. } | Effect::Save(_) => {}
            }
        }
        won && fails
    }

    /// Hands `message` over to `to`, or to the next worker that takes it.
    fn send(&mut self, to: ProcessId, message: Message) -> VecDeque<Effect<ChangRoberts>> {
        let mut to = to;
        let mut more = VecDeque::new();
        while to != self.me {
            self.log.write(Level::Debug, || format!("sends {} to {}", say(message), to.0));
            self.log.tell(Event::Sent);
            let began = Instant::now();
            let slot = &self.shared.buffers[self.shared.setup.place(to)];
            let item = SlotItem::Ring { from: self.me, message };
            match slot.put_and_wait(item, self.shared.send_timeout) {
                HandOver::Taken => {
                    self.log.write(Level::Trace, || {
                        format!("handed {} over to {} in {:?}", say(message), to.0, began.elapsed())
                    });
                    return more;
                }
                HandOver::Closed(_) => {
                    self.log.tell(Event::Withdrawn);
                    return more;
                }
                HandOver::TimedOut(_) => {
                    self.log.tell(Event::TimedOut);
                    self.suspects.insert(to);
                    more.extend(self.step(Input::Suspect(to)));
                    let next = self.next_live();
                    self.log.write(Level::Warn, || {
                        let waited = self.shared.send_timeout.as_millis();
                        let after = format!("{} did not take {}", to.0, say(message));
                        format!("{after} within {waited} ms: skips it from now on")
                    });
                    to = next;
                }
            }
        }
        more.extend(self.alone(message));
        more
    }

    /// The next worker that is not regarded as failed; possibly this one.
    fn next_live(&self) -> ProcessId {
        let group = &self.shared.setup.group;
        let after = (1..=group.len()).map(|i| group.id((self.place + i) % group.len()));
        let mut live = after.filter(|p| !self.suspects.contains(p));
        live.next().expect("we do not suspect ourselves")
    }

    /// No other worker took our message.
    fn alone(&mut self, message: Message) -> VecDeque<Effect<ChangRoberts>> {
        self.log.write(Level::Error, || "is alone: all others in the ring failed".into());
        if owner(message) == self.me {
            let effects = self.step(Input::Message { from: self.me, message });
            self.explain(message, &effects);
            return effects;
        }
        self.log.write(Level::Warn, || format!("drops {}: its sender has failed", say(message)));
        VecDeque::new()
    }

    /// Reports an indication of the state machine. Returns whether this worker leads now.
    fn indicate(&mut self, indication: Indication) -> bool {
        match indication {
            Indication::Leading { .. } => {
                self.leading = true;
                self.log.tell(Event::Leading(self.me));
                let why = match self.next_live() == self.me {
                    true => "no other worker is left",
                    false => "its own number returned, so no worker has a higher one",
                };
                self.log.write(Level::Info, || format!("leads: {why}"));
                return true;
            }
            Indication::Deposed => {
                self.leading = false;
                self.log.tell(Event::Deposed(self.me));
                self.log.write(Level::Info, || "steps down: a new election runs".into());
            }
            Indication::Following { leader: Some(leader), .. } => {
                self.log.tell(Event::Following { who: self.me, leader });
                self.log.write(Level::Debug, || format!("follows {}", leader.0));
            }
            Indication::Following { leader: None, .. }
            | Indication::Candidate
            | Indication::Loop => {
                unreachable!("Chang and Roberts's workers have names and all take part in a ring")
            }
        }
        false
    }

    fn complete(&mut self) {
        self.log.tell(Event::Complete { leader: self.me, at: Instant::now() });
    }

    /// Logs how the state machine reacted to `message`; notices the end of an election.
    fn explain(&mut self, message: Message, effects: &VecDeque<Effect<ChangRoberts>>) {
        let me = self.me.0;
        let (Message::Propose { id, hops } | Message::Elected { id, hops }) = message;
        let sent = effects.iter().find_map(|e| match e {
            Effect::Send { message, .. } => Some(*message),
            _ => None,
        });
        match (message, sent) {
            (Message::Elected { .. }, None) if id == self.me && self.leading => {
                self.log.write(Level::Info, || {
                    "its announcement returned: all workers know the leader".into()
                });
                self.complete();
            }
            (Message::Propose { .. }, Some(Message::Propose { id: passed, .. })) => {
                if passed == id {
                    self.log.write(Level::Debug, || format!("lets {} pass: {} > {me}", id.0, id.0));
                } else {
                    self.log.write(Level::Info, || {
                        format!("proposes itself instead of {}: {me} > {}", id.0, id.0)
                    });
                }
            }
            (Message::Propose { .. }, None) if id < self.me => {
                let own = format!("its own {me} is on the way");
                self.log.write(Level::Debug, || format!("stops {}: {own}", id.0));
            }
            (_, None) if hops as usize > self.shared.setup.group.len() => {
                self.log.write(Level::Warn, || {
                    format!("drops {} after {hops} hops: its sender has failed", say(message))
                });
            }
            (_, None) if !effects.iter().any(leads) => {
                self.log.write(Level::Warn, || format!("drops {}: it is stale", say(message)));
            }
            _ => {}
        }
    }
}

fn sends(effects: &VecDeque<Effect<ChangRoberts>>) -> bool {
    effects.iter().any(|e| matches!(e, Effect::Send { .. }))
}

fn leads(effect: &Effect<ChangRoberts>) -> bool {
    matches!(effect, Effect::Indicate(Indication::Leading { .. }))
}

fn owner(message: Message) -> ProcessId {
    let (Message::Propose { id, .. } | Message::Elected { id, .. }) = message;
    id
}

fn say(message: Message) -> String {
    match message {
        Message::Propose { id, .. } => format!("PROPOSE {}", id.0),
        Message::Elected { id, .. } => format!("ELECTED {}", id.0),
    }
}

fn name(item: &SlotItem) -> String {
    match item {
        SlotItem::Start => "START".into(),
        SlotItem::Forget => "FORGET".into(),
        SlotItem::Stop => "STOP".into(),
        SlotItem::Ring { from, message } => format!("{} of {}", say(*message), from.0),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use konklave_process::Topology;

    use super::*;
    use crate::Flags;
    use crate::ledger::Ledger;

    /// R4: all workers hand over at the same time, and no live worker is taken for failed.
    #[test]
    fn workers_that_all_start_at_once_do_not_wait_for_each_other() {
        for ids in [vec![4, 9], vec![9, 4], vec![9, 8, 7, 6, 5, 4, 3, 2]] {
            let n = ids.len() as u64;
            let flags = Flags { ids: Some(ids), worker_sleep: Some(2), ..Flags::default() };
            let options = Options::resolve(&flags).unwrap();
            let shared = Arc::new(Shared {
                setup: Setup::new(options.group.clone(), Topology::directed_ring(n as usize)),
                buffers: (0..n).map(|_| Buffer::new()).collect(),
                worker_sleep: options.worker_sleep,
                send_timeout: options.send_timeout,
            });
            let mut ledger = Ledger::new(&options.group);
            for buffer in &shared.buffers {
                // Each worker finds its call in the slot when it starts.
                assert_eq!(buffer.put(SlotItem::Start, Duration::ZERO), HandOver::Taken);
                ledger.assigned();
            }
            let (sender, events) = mpsc::channel();
            let threads: Vec<_> = options
                .group
                .members()
                .iter()
                .flat_map(|&id| start(id, &shared, &options, &sender).unwrap())
                .collect();
            while !ledger.at_rest() {
                ledger.note(&events.recv_timeout(Duration::from_secs(20)).unwrap()).unwrap();
            }
            let highest = options.group.highest();
            assert_eq!(ledger.complete.map(|(leader, _)| leader), Some(highest));
            assert_eq!(ledger.uninformed(highest), []);
            assert_eq!(ledger.timed_out, 0);
            assert!(ledger.messages <= n * (n + 1) / 2 + n, "{}", ledger.messages);
            shared.buffers.iter().for_each(Buffer::close);
            threads.into_iter().for_each(|t| t.join().unwrap());
        }
    }
}
