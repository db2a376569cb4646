//! Steps of Majority vote with terms and leases, one at a time.

use std::time::Duration;

use konklave_process::{Effect, Group, Input, Topology};
use konklave_testkit::{Bench, send, set, tell};

use super::*;
use crate::{Algorithm as _, Setup};

const E: Duration = Duration::from_millis(10);

fn process(n: usize, mistake: Option<&'static str>) -> Bench<Quorum> {
    let mut setup = Setup::new(Group::of(n), Topology::complete(n));
    setup.mistake = mistake;
    Bench::new(Quorum::new(ProcessId(0), &setup), ProcessId(0), &setup.group)
}

fn leading(n: usize) -> Bench<Quorum> {
    let mut p = process(n, None);
    p.ask(Request::Elect);
    for q in 1..n as u32 {
        p.hear(q, Message::PreVoteReply(1, true));
    }
    for q in 1..n as u32 {
        p.hear(q, Message::VoteReply(1, true));
    }
    p
}

fn saves(term: u32, voted_for: Option<u32>) -> Effect<Quorum> {
    Effect::Save(Ballot { term, voted_for: voted_for.map(ProcessId) })
}

#[test]
fn it_asks_tentatively_and_only_then_raises_its_term() {
    let mut p = process(3, None);
    p.draw(&[50]);
    let effects = p.ask(Request::Elect);
    let wait = set(Timer::Election, E * 3 / 2);
    assert_eq!(effects, [wait, send(1, Message::PreVote(1)), send(2, Message::PreVote(1))]);
    let effects = p.hear(2, Message::PreVoteReply(1, true));
    let votes = [send(1, Message::Vote(1)), send(2, Message::Vote(1))];
    assert_eq!(effects[0], saves(1, Some(0)), "saved before it is said");
    assert_eq!(effects[1..], votes);
}

#[test]
fn it_votes_once_in_a_term_and_saves_its_vote_first() {
    let mut p = process(3, None);
    let effects = p.hear(1, Message::Vote(1));
    assert_eq!(effects.last(), Some(&send(1, Message::VoteReply(1, true))));
    assert!(effects.contains(&saves(1, Some(1))));
    assert_eq!(p.hear(2, Message::Vote(1)), [send(2, Message::VoteReply(1, false))]);
    let again = p.hear(1, Message::Vote(1));
    assert_eq!(again.last(), Some(&send(1, Message::VoteReply(1, true))), "a duplicate");
}

#[test]
fn process_with_a_promise_does_not_answer_another_candidate() {
    let mut p = process(3, None);
    let effects = p.hear(1, Message::Beat { term: 1, beat: 1 });
    assert!(effects.contains(&set(Timer::Loyalty, E)));
    assert_eq!(effects.last(), Some(&send(1, Message::BeatReply { term: 1, beat: 1 })));
    assert_eq!(p.hear(2, Message::PreVote(2)), []);
    assert_eq!(p.hear(2, Message::Vote(2)), []);
    p.fire(Timer::Loyalty);
    assert_eq!(p.hear(2, Message::PreVote(2)), [send(2, Message::PreVoteReply(2, true))]);
}

#[test]
fn a_leader_acts_only_under_a_lease_that_counts_from_its_question() {
    let mut p = leading(3);
    assert_eq!(p.process.leader(ProcessId(0)), None);
    let effects = p.hear(1, Message::BeatReply { term: 1, beat: 1 });
    assert_eq!(effects, [tell(Indication::Leading { epoch: 1 })]);
    // The next reminder, unanswered, does not prolong it.
    assert!(p.fire(Timer::Beat).contains(&set(Timer::Lease(2), E * 9 / 10)));
    assert!(p.fire(Timer::Lease(1)).contains(&tell(Indication::Deposed)));
    assert_eq!(p.hear(1, Message::BeatReply { term: 1, beat: 2 }), [], "too late");
}

#[test]
fn an_answered_reminder_replaces_the_lease() {
    let mut p = leading(3);
    p.hear(1, Message::BeatReply { term: 1, beat: 1 });
    p.fire(Timer::Beat);
    let effects = p.hear(2, Message::BeatReply { term: 1, beat: 2 });
    assert_eq!(effects, [Effect::CancelTimer { timer: Timer::Lease(1) }]);
}

#[test]
fn a_higher_term_ends_any_office() {
    let mut p = leading(3);
    p.hear(1, Message::BeatReply { term: 1, beat: 1 });
    let effects = p.hear(2, Message::BeatReply { term: 7, beat: 1 });
    assert_eq!(effects[0], saves(7, None));
    assert!(effects.contains(&tell(Indication::Deposed)));
}

#[test]
fn after_a_restart_it_keeps_its_vote_and_promises_silence() {
    let mut p = process(3, None);
    let saved = Ballot { term: 4, voted_for: Some(ProcessId(1)) };
    let effects = p.step(Input::Recover(Some(saved)));
    assert!(effects.contains(&set(Timer::Loyalty, E)));
    assert_eq!(p.hear(2, Message::Vote(5)), []);
    p.fire(Timer::Loyalty);
    assert_eq!(p.hear(2, Message::Vote(4)), [send(2, Message::VoteReply(4, false))]);
    let mut p = process(3, Some("vote-at-once-after-restart"));
    p.step(Input::Recover(Some(saved)));
    assert_eq!(p.hear(2, Message::Vote(5)).last(), Some(&send(2, Message::VoteReply(5, true))));
}
