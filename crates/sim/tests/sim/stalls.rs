//! A run that goes on without news for any client ends by itself; one that makes progress does not.

use std::time::Duration;

use konklave_process::{
    Application, Context, Group, Inspect, Monitor, Process, ProcessId, Verdict,
};
use konklave_sim::{Config, Ending, Parts, Patience, Sim, Stall};

use crate::node::{P0, with_faults};

/// A process that sends each message back, and tells its client of every hundredth one.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
struct Player {
    got: u32,
    /// Whether a timer goes on instead of messages.
    alone: bool,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Message {
    Ball,
}

impl Process for Player {
    type Message = Message;
    type Timer = ();
    type Request = ();
    type Indication = ();
    type Record = ();

    fn on_start(&mut self, ctx: &mut Context<'_, Self>) {
        match self.alone {
            true => ctx.set_timer((), Duration::from_millis(1)),
            false if ctx.me() == P0 => ctx.send(ProcessId(1), Message::Ball),
            false => {}
        }
    }
    fn on_request(&mut self, (): (), _: &mut Context<'_, Self>) {}
    fn on_message(&mut self, from: ProcessId, _: Message, ctx: &mut Context<'_, Self>) {
        self.got += 1;
        if self.got < 500 && self.got.is_multiple_of(100) {
            ctx.indicate(());
        }
        ctx.send(from, Message::Ball);
    }
    fn on_timer(&mut self, (): (), ctx: &mut Context<'_, Self>) {
        ctx.set_timer((), Duration::from_millis(1));
    }
}

impl Inspect for Player {}

/// So many requests of the client of p0.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Requests(u32);

impl Application<Player> for Requests {
    fn next(&self, at: ProcessId) -> Option<()> {
        (at == P0 && self.0 > 0).then_some(())
    }
    fn on_request(&mut self, _: ProcessId, (): &()) {
        self.0 -= 1;
    }
    fn on_indication(&mut self, _: ProcessId, (): &()) {}
    fn waiting(&self) -> Vec<ProcessId> {
        Vec::new()
    }
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Nobody;

impl Monitor<Player> for Nobody {
    type Tag = ();
    fn on_receive(&mut self, _: ProcessId, _: Option<&Message>, (): &()) -> Verdict {
        Ok(())
    }
}

/// A run of two players: its steps, and the stall that ended it.
fn run(config: &Config, requests: u32, alone: bool) -> (u64, Option<Stall>) {
    let parts = Parts {
        processes: vec![Player { got: 0, alone }; 2],
        application: Requests(requests),
        monitor: Nobody,
        meter: (),
        observer: (),
    };
    let mut sim = Sim::new(Group::of(2), parts, config, |()| false);
    assert_eq!(sim.run(), Ending::CutOff);
    (sim.counts().steps, sim.stall().cloned())
}

fn patient(config: Config) -> Config {
    let patience = Some(Patience { steps: 300, time: 400.0 });
    Config { patience, time_limit: 100_000.0, ..config }
}

#[test]
fn run_ends_when_no_client_learns_anything_new() {
    let (steps, stall) = run(&patient(Config::default()), 0, false);
    let stall = stall.expect("the ball goes on for ever");
    // The last indication comes with step 802.
    assert!(steps > 802 + 300 && steps < 802 + 4 * 300, "{steps}");
    assert!(stall.time >= 400_000 && stall.steps >= 300, "{stall:?}");
    assert_eq!(stall.messages, [("Ball".to_owned(), stall.steps)]);
}

#[test]
fn stall_of_timers_alone_names_no_message() {
    let (_, stall) = run(&patient(Config::default()), 0, true);
    let stall = stall.expect("the timers go on for ever");
    assert_eq!(stall.messages, []);
    assert!(stall.time >= 400_000, "{stall:?}");
}

#[test]
fn run_waits_for_requests_and_faults_to_come() {
    let paced = |config| Config { think: konklave_sim::Pace::Constant(5000.0), ..config };
    let (steps, stall) = run(&patient(paced(Config::default())), 3, false);
    assert!(steps > 15_000 && stall.is_some(), "after the last request: {steps}");
    let (steps, stall) = run(&patient(with_faults(&["suspect:0>1@20000"])), 0, false);
    assert!(steps > 20_000 && stall.is_some(), "after the last fault: {steps}");
}

#[test]
fn run_without_patience_goes_on_until_another_limit() {
    let (steps, stall) = run(&Config { step_limit: 50_000, ..Config::default() }, 0, false);
    assert_eq!((steps, stall), (50_000, None));
}

#[test]
fn both_time_and_steps_are_needed() {
    let long = |steps, time| Patience { steps, time };
    for patience in [long(30_000, 1.0), long(3, 30_000.0)] {
        let config = Config { patience: Some(patience), ..Config::default() };
        let (steps, stall) = run(&config, 0, false);
        assert!(steps >= 30_000 && stall.is_some(), "{patience:?}: {steps}");
    }
}
