//! Steps of Echo with extinction, one at a time.

use konklave_process::{Group, Topology};
use konklave_testkit::{Bench, send, tell};

use super::*;
use crate::{Algorithm as _, Setup};

/// Process `me` in the middle of a star of four.
fn centre(me: u32, others: [u32; 3]) -> Bench<Extinction> {
    let ids = [me, others[0], others[1], others[2]].map(ProcessId);
    let setup = Setup::new(Group::new(ids.to_vec()).unwrap(), Topology::star(4));
    Bench::new(Extinction::new(ProcessId(me), &setup), ProcessId(me), &setup.group)
}

#[test]
fn requested_process_starts_a_wave() {
    let mut p5 = centre(5, [1, 2, 9]);
    let explore = Message::Explore(ProcessId(5));
    assert_eq!(
        p5.ask(Request::Elect),
        [tell(Indication::Candidate), send(1, explore), send(2, explore), send(9, explore)]
    );
}

#[test]
fn a_stronger_wave_makes_us_forget_all_answers() {
    let mut p5 = centre(5, [1, 2, 9]);
    p5.ask(Request::Elect);
    p5.hear(1, Message::Echo(ProcessId(5)));
    let explore = Message::Explore(ProcessId(9));
    assert_eq!(p5.hear(9, explore), [send(1, explore), send(2, explore)]);
    // The answer of p2 to the weaker wave is void.
    assert_eq!(p5.hear(2, Message::Echo(ProcessId(5))), []);
    assert_eq!(p5.hear(2, Message::Echo(ProcessId(9))), []);
    assert_eq!(p5.hear(1, Message::Echo(ProcessId(9))), [send(9, Message::Echo(ProcessId(9)))]);
}

#[test]
fn a_weaker_wave_dies() {
    let mut p5 = centre(5, [1, 2, 9]);
    p5.ask(Request::Elect);
    assert_eq!(p5.hear(2, Message::Explore(ProcessId(2))), []);
    assert_eq!(p5.process.parent, None);
}

#[test]
fn an_explorer_of_our_own_wave_is_an_answer() {
    let mut p5 = centre(5, [1, 2, 9]);
    p5.hear(9, Message::Explore(ProcessId(9)));
    assert_eq!(p5.hear(1, Message::Explore(ProcessId(9))), []);
    let echo = Message::Echo(ProcessId(9));
    assert_eq!(p5.hear(2, Message::Explore(ProcessId(9))), [send(9, echo)]);
}

#[test]
fn the_initiator_whose_neighbours_have_all_answered_leads_and_says_so() {
    let mut p5 = centre(5, [1, 2, 3]);
    p5.ask(Request::Elect);
    p5.hear(1, Message::Echo(ProcessId(5)));
    p5.hear(2, Message::Echo(ProcessId(5)));
    let info = Message::Info(ProcessId(5));
    assert_eq!(
        p5.hear(3, Message::Echo(ProcessId(5))),
        [tell(Indication::Leading { epoch: 0 }), send(1, info), send(2, info), send(3, info)]
    );
    // Asked again, it stands by the outcome.
    assert_eq!(p5.ask(Request::Elect), [tell(Indication::Leading { epoch: 0 })]);
}

#[test]
fn captured_process_is_no_candidate_any_more() {
    let mut p5 = centre(5, [1, 2, 9]);
    p5.hear(2, Message::Explore(ProcessId(2)));
    assert_eq!(p5.ask(Request::Elect), []);
}
