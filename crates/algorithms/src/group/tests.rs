//! Single steps: what one member does about one input.

use konklave_process::{Effect, Group, Input, Process, ProcessId, ProcessSet, Topology};
use konklave_testkit::{Bench, tell};

use super::leader::Leader;
use super::lifted::{Any, Lifted};
use super::lock_table::LockTable;
use super::locks::{self, LockMode, Name};
use super::virtual_synchrony::{Message, Proposal, Record, VirtualSynchrony};
use super::{Bytes, Indication, Request};
use crate::{Algorithm, Setup};

fn member<P: Algorithm>(me: u32, n: usize) -> Bench<P> {
    let setup = Setup::new(Group::of(n), Topology::complete(n));
    Bench::new(P::new(ProcessId(me), &setup), ProcessId(me), &setup.group)
}

fn bytes(text: &str) -> Bytes {
    text.as_bytes().into()
}

/// The messages to `to`.
fn mail<P: Process>(effects: &[Effect<P>], to: u32) -> Vec<P::Message> {
    let of = |e: &Effect<P>| match e {
        Effect::Send { to: p, message } if p.0 == to => Some(message.clone()),
        _ => None,
    };
    effects.iter().filter_map(of).collect()
}

fn told<P: Process>(effects: &[Effect<P>]) -> Vec<P::Indication> {
    let of = |e: &Effect<P>| match e {
        Effect::Indicate(indication) => Some(indication.clone()),
        _ => None,
    };
    effects.iter().filter_map(of).collect()
}

/// A member that started, and a candidate's question to it.
fn asked(me: u32, candidate: u32) -> (Bench<VirtualSynchrony>, Message<Bytes>) {
    let (mut p, mut c) =
        (member::<VirtualSynchrony>(me, 3), member::<VirtualSynchrony>(candidate, 3));
    p.start();
    c.start();
    let prepare = mail(&c.ask(Request::Reform), me).remove(0);
    (p, prepare)
}

/// Its old life may have promised something: it is over, but it did not leave.
#[test]
fn a_restarted_process_reports_its_earlier_incarnation_as_over_and_does_not_leave() {
    let (mut leader, mut back) =
        (member::<VirtualSynchrony>(0, 3), member::<VirtualSynchrony>(2, 3));
    leader.start();
    let view = leader.process.view().clone();
    back.step(Input::Recover(Some(Record { incarnation: 7, generation: 1 })));
    let (left, summaries) = (ProcessSet::new(), Vec::new());
    let next = Proposal { view: view.clone(), from: 0, cut: vec![], left, summaries }.into();
    let said = mail(&back.hear(0, Message::Install { view: view.id, next }), 0);
    let over = Message::Suspect { view: view.id, suspects: ProcessSet::from_iter([ProcessId(2)]) };
    assert_eq!(said, std::slice::from_ref(&over));
    let effects = leader.hear(2, over);
    assert!(matches!(mail(&effects, 1)[..], [Message::Prepare { .. }]), "{effects:?}");
}

#[test]
fn a_candidate_wedges_and_sends_prepare_to_all() {
    let mut p = member::<VirtualSynchrony>(0, 3);
    p.start();
    let effects = p.ask(Request::Reform);
    assert!(effects.contains(&tell(Indication::Wedged)), "{effects:?}");
    for to in [1, 2] {
        assert!(matches!(mail(&effects, to)[..], [Message::Prepare { .. }]), "{effects:?}");
    }
    assert!(p.process.is_wedged());
}

#[test]
fn a_prepared_member_wedges_once_and_promises() {
    let (mut p, prepare) = asked(1, 0);
    let effects = p.hear(0, prepare.clone());
    assert_eq!(told(&effects), [Indication::Wedged]);
    assert!(matches!(mail(&effects, 0)[..], [Message::Promise { .. }]), "{effects:?}");
    assert_eq!(told(&p.hear(0, prepare)), []);
}

#[test]
fn a_lower_ballot_is_not_promised_after_a_higher_one() {
    let (mut p, high) = asked(1, 2);
    let (_, low) = asked(1, 0);
    p.hear(2, high);
    let late = p.hear(0, low);
    assert!(!mail(&late, 0).iter().any(|m| matches!(m, Message::Promise { .. })), "{late:?}");
}

#[test]
fn a_multicast_while_wedged_is_not_sent_yet() {
    let (mut p, prepare) = asked(1, 0);
    p.hear(0, prepare);
    let effects = p.ask(Request::Multicast(bytes("m")));
    assert_eq!((told(&effects), mail(&effects, 0)), (vec![], vec![]));
}

#[test]
fn the_leaders_own_message_waits_for_a_majority() {
    let mut p = member::<VirtualSynchrony>(0, 3);
    p.start();
    let effects = p.ask(Request::Multicast(bytes("m")));
    assert_eq!(told(&effects), [Indication::Sent { seq: 1 }]);
    assert_eq!((mail(&effects, 1).len(), mail(&effects, 2).len()), (1, 1));
}

#[test]
fn a_view_of_one_delivers_at_once() {
    let mut p = member::<VirtualSynchrony>(0, 1);
    p.start();
    let heard = told(&p.ask(Request::Multicast(bytes("m"))));
    assert!(heard.iter().any(|i| matches!(i, Indication::Delivered { .. })), "{heard:?}");
}

#[test]
fn only_the_most_senior_member_leads_from_the_start() {
    for me in 0..3 {
        let mut p = member::<Leader>(me, 3);
        p.start();
        assert_eq!(p.process.leads().is_some(), me == 0, "p{me}");
    }
}

fn acquire() -> locks::Request {
    let (name, mode) = (Name::from("a"), LockMode::Exclusive);
    locks::Request::Acquire { name, mode, wait: true, priority: 0 }
}

fn grants<P: Process<Indication = locks::Indication>>(effects: &[Effect<P>]) -> usize {
    let granted = |i: &locks::Indication| matches!(i, locks::Indication::Granted { .. });
    told(effects).iter().filter(|i| granted(i)).count()
}

#[test]
fn a_table_lock_is_granted_by_the_order_of_operations() {
    let mut p = member::<LockTable>(0, 3);
    p.start();
    let effects = p.ask(acquire());
    assert_eq!(grants(&effects), 0, "{effects:?}");
    assert!(!mail(&effects, 1).is_empty());
    let mut alone = member::<LockTable>(0, 1);
    alone.start();
    assert_eq!(grants(&alone.ask(acquire())), 1);
}

#[test]
fn a_lifted_lock_costs_no_message_where_its_token_is() {
    let free = (0..3).filter(|&me| {
        let mut p = member::<Lifted<Any>>(me, 3);
        p.start();
        let effects = p.ask(acquire());
        grants(&effects) == 1 && (0..3).all(|to| mail(&effects, to).is_empty())
    });
    assert_eq!(free.count(), 1, "a name has one home");
}
