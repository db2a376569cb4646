//! Steps of Ricart–Agrawala with acknowledgements, one at a time.

use std::time::Duration;

use konklave_process::{Effect, Group, Input, Topology};
use konklave_testkit::{Bench, send, set, tell};

use super::*;
use crate::{Algorithm as _, Setup};

const PATIENCE: Duration = Duration::from_millis(5);

fn bench(me: u32, model: &str) -> Bench<RicartAgrawalaAcknowledged> {
    let mut setup = Setup::new(Group::of(3), Topology::complete(3));
    setup.chosen.insert("model", model.into());
    let process = RicartAgrawalaAcknowledged::new(ProcessId(me), &setup);
    Bench::new(process, ProcessId(me), &setup.group)
}

fn entered(time: u64, id: u64) -> [Effect<RicartAgrawalaAcknowledged>; 2] {
    let fence = Some(Fence(time, id));
    [Effect::CancelTimer { timer: Timer::Answers }, tell(Indication::Granted { fence })]
}

#[test]
fn process_that_defers_its_reply_acknowledges_at_once() {
    let mut p0 = bench(0, "synchronous");
    p0.ask(Request::Acquire);
    let asked = p0.hear(1, Message::Request { timestamp: 1 });
    assert_eq!(asked, [send(1, Message::Ack { to: 1, clock: 1 })]);
    p0.hear(1, Message::Reply { to: 1, clock: 1 });
    p0.hear(2, Message::Reply { to: 1, clock: 2 });
    assert_eq!(p0.ask(Request::Release), [send(1, Message::Reply { to: 1, clock: 2 })]);
}

#[test]
fn silent_process_is_skipped_and_another_is_asked_again() {
    let mut p0 = bench(0, "synchronous");
    p0.ask(Request::Acquire);
    p0.hear(1, Message::Ack { to: 1, clock: 4 });
    let probe = Message::AreYouThere { timestamp: 1, clock: 4 };
    assert_eq!(p0.fire(Timer::Answers), [send(1, probe), set(Timer::Answers, PATIENCE)]);
    assert_eq!(p0.fire(Timer::Answers), entered(1, 0));
    assert_eq!(p0.process.crashed.len(), 2);
    // The next time nobody is asked, until somebody says a word.
    p0.ask(Request::Release);
    assert_eq!(p0.ask(Request::Acquire), entered(5, 0));
    p0.hear(2, Message::Hello { incarnation: 1, clock: 0 });
    assert_eq!(p0.process.crashed.len(), 1);
}

#[test]
fn where_silence_means_nothing_everyone_is_asked_again() {
    let mut p0 = bench(0, "asynchronous");
    p0.ask(Request::Acquire);
    for _ in 0..3 {
        let probe = Message::AreYouThere { timestamp: 1, clock: 1 };
        let again = [send(1, probe), send(2, probe), set(Timer::Answers, PATIENCE)];
        assert_eq!(p0.fire(Timer::Answers), again);
    }
}

#[test]
fn restarted_process_learns_the_time_before_it_requests() {
    let mut p0 = bench(0, "synchronous");
    let hello = Message::Hello { incarnation: 4, clock: 0 };
    assert_eq!(
        p0.step(Input::Recover(Some(3))),
        [Effect::Save(4), send(1, hello), send(2, hello), set(Timer::Answers, PATIENCE)]
    );
    assert_eq!(p0.ask(Request::Acquire), []);
    assert_eq!(p0.hear(1, Message::Welcome { incarnation: 3, clock: 2 }), []);
    assert_eq!(p0.hear(1, Message::Welcome { incarnation: 4, clock: 7 }), []);
    let request = Message::Request { timestamp: 8 };
    assert_eq!(
        p0.hear(2, Message::Welcome { incarnation: 4, clock: 5 })[1..],
        [send(1, request), send(2, request), set(Timer::Answers, PATIENCE)]
    );
}

#[test]
fn an_answer_to_an_earlier_request_does_not_count() {
    let mut p0 = bench(0, "synchronous");
    p0.hear(1, Message::Request { timestamp: 4 });
    p0.ask(Request::Acquire);
    assert_eq!(p0.hear(1, Message::Reply { to: 3, clock: 9 }), []);
    assert_eq!(p0.hear(2, Message::Reply { to: 5, clock: 5 }), []);
    assert_eq!(p0.hear(1, Message::Reply { to: 5, clock: 9 }), entered(5, 0));
}
