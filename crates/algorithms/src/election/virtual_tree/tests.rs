//! One process, step by step.

use konklave_process::{Group, Topology};
use konklave_testkit::{Bench, send, tell};

use super::*;
use crate::{Algorithm, Setup, SetupError};

/// Process 2 of four that all know each other; 0 is the root.
fn new_p2(mistake: Option<&'static str>) -> Bench<VirtualTree> {
    let setup = Setup { mistake, ..Setup::new(Group::of(4), Topology::complete(4)) };
    assert_eq!(VirtualTree::check_setup(&setup), Ok(()));
    Bench::new(VirtualTree::new(ProcessId(2), &setup), ProcessId(2), &setup.group)
}

/// Process 2 at level 2 below p1, with p3 for its child.
fn at_level_2() -> Bench<VirtualTree> {
    let mut p2 = new_p2(None);
    p2.ask(Request::Elect);
    for (from, level) in [(0, None), (1, Some(1)), (3, None)] {
        p2.hear(from, Message::Welcome(0, level));
    }
    p2.hear(1, Message::JoinOk(0, 1));
    assert_eq!(p2.hear(3, Message::Join(0, None)), [send(3, Message::JoinOk(0, 2))]);
    p2.hear(3, Message::Level(0, Some(3)));
    p2
}

fn following() -> Indication {
    Indication::Following { leader: Some(ProcessId(0)), epoch: 0 }
}

#[test]
fn it_connects_to_all_it_knows_and_asks_the_nearest() {
    let mut p2 = new_p2(None);
    let connect = Message::Connect(0);
    assert_eq!(p2.ask(Request::Elect), [send(0, connect), send(1, connect), send(3, connect)]);
    assert_eq!(p2.hear(1, Message::Welcome(0, Some(1))), []);
    assert_eq!(p2.hear(0, Message::Welcome(0, Some(0))), []);
    // V2: p3 is not attached, and so no parent.
    assert_eq!(p2.hear(3, Message::Welcome(0, None)), [send(0, Message::Join(0, None))]);
    let level = Message::Level(0, Some(1));
    assert_eq!(
        p2.hear(0, Message::JoinOk(0, 0)),
        [tell(following()), send(0, level), send(1, level), send(3, level)]
    );
}

#[test]
fn v1_an_equal_offer_is_no_reason_to_move() {
    let mut p2 = at_level_2();
    assert_eq!(p2.hear(0, Message::Level(0, Some(1))), []);
    assert_eq!(p2.hear(0, Message::Level(0, Some(0))), [send(0, Message::Join(0, Some(2)))]);
    // On the slide it is a reason, and the last neighbour becomes the parent.
    let mut slide = new_p2(Some("slide-connect"));
    slide.ask(Request::Elect);
    for from in [0, 1, 3] {
        slide.hear(from, Message::Welcome(0, Some(from)));
    }
    assert_eq!(slide.process.parent, Some(Port(0)));
    slide.hear(1, Message::Welcome(0, Some(0)));
    assert_eq!(slide.process.parent, Some(Port(1)));
}

#[test]
fn v4_a_child_follows_when_its_parent_moves_up() {
    let mut p2 = at_level_2();
    let level = Message::Level(0, Some(1));
    let told = [send(0, level), send(1, level), send(3, level)];
    assert_eq!(p2.hear(1, Message::Level(0, Some(0))), told);
}

#[test]
fn v5_an_orphan_asks_only_those_nearer_than_itself() {
    let mut p2 = at_level_2();
    // Its child is at level 3, p0 is not attached: it lets its child go, and then asks anyone.
    assert_eq!(p2.suspect(1), [tell(Indication::Deposed), send(3, Message::Detach(0))]);
    assert_eq!(p2.hear(3, Message::Join(0, Some(3))), [send(3, Message::JoinNo(0, None))]);
    let gone = Message::Level(0, None);
    assert_eq!(
        p2.hear(3, Message::Leave(0)),
        [send(0, gone), send(3, gone), send(3, Message::Join(0, None))]
    );
}

#[test]
fn child_leaves_when_it_has_another_parent() {
    let mut p2 = at_level_2();
    p2.hear(0, Message::Level(0, Some(1)));
    let join = Message::Join(0, Some(2));
    assert_eq!(p2.hear(1, Message::Detach(0)), [tell(Indication::Deposed), send(0, join)]);
    let level = Message::Level(0, Some(2));
    assert_eq!(
        p2.hear(0, Message::JoinOk(0, 1)),
        [
            tell(following()),
            send(1, Message::Leave(0)),
            send(0, level),
            send(1, level),
            send(3, level)
        ]
    );
}

#[test]
fn v6_when_the_root_is_lost_the_next_of_the_registry_is_root() {
    let mut p2 = at_level_2();
    let connect = Message::Connect(1);
    let deposed = tell(Indication::Deposed);
    assert_eq!(p2.suspect(0), [deposed, send(1, connect), send(3, connect)]);
    p2.hear(1, Message::Welcome(1, None));
    assert_eq!(
        p2.suspect(1)[..2],
        [konklave_process::Effect::Save(Reign(2)), tell(Indication::Leading { epoch: 2 })]
    );
    // Messages of an earlier epoch are void.
    assert_eq!(p2.hear(3, Message::Leave(0)), []);
    assert_eq!(p2.hear(3, Message::Join(0, None)), [send(3, Message::Welcome(2, Some(0)))]);
}

#[test]
fn nobody_joins_beyond_the_cap() {
    let mut setup = Setup::new(Group::of(3), Topology::path(3));
    setup.chosen.insert("cap", "1".into());
    let error = SetupError("2 levels are needed, but cap is 1: --set cap=2".into());
    assert_eq!(VirtualTree::check_setup(&setup), Err(error));
    let p1 = VirtualTree::new(ProcessId(1), &setup);
    let mut p1 = Bench::new(p1, ProcessId(1), &setup.group);
    p1.ask(Request::Elect);
    p1.hear(2, Message::Welcome(0, None));
    p1.hear(0, Message::Welcome(0, Some(0)));
    p1.hear(0, Message::JoinOk(0, 0));
    assert_eq!(p1.hear(2, Message::Join(0, None)), [send(2, Message::JoinNo(0, Some(1)))]);
}

/// Process `me` of four with p0 as the registry. It answers with the lowest numbers as draws.
fn with_registry(me: u32, mistake: Option<&'static str>) -> Bench<VirtualTree> {
    let mut setup = Setup { mistake, ..Setup::new(Group::of(4), Topology::complete(4)) };
    setup.chosen.insert("registry", "0".into());
    assert_eq!(VirtualTree::check_setup(&setup), Ok(()));
    Bench::new(VirtualTree::new(ProcessId(me), &setup), ProcessId(me), &setup.group)
}

fn answer(epoch: u32, root: u32, addresses: [u32; 2]) -> Message {
    Message::Answer(epoch, ProcessId(root), addresses.map(ProcessId))
}

#[test]
fn registry_names_those_that_asked_before_and_the_first_is_the_root() {
    let mut p0 = with_registry(0, None);
    let up = Message::Ask(0, Reason::Up);
    let save = |epoch| konklave_process::Effect::Save(Reign(epoch));
    assert_eq!(p0.hear(2, up), [save(0), send(2, answer(0, 2, [2, 2]))]);
    assert_eq!(p0.hear(1, up), [send(1, answer(0, 2, [2, 2]))]);
    assert_eq!(p0.draw(&[1]).hear(3, up), [send(3, answer(0, 2, [1, 2]))]);
    // A second answer has the root, whatever is drawn.
    let stale = Message::Ask(0, Reason::Stale);
    assert_eq!(p0.draw(&[0]).hear(3, stale), [send(3, answer(0, 2, [2, 1]))]);
    // The first process that misses the root is the next root; the others ask about the same epoch too late.
    let over = Message::Ask(0, Reason::Over);
    let later = |epoch, p| send(p, Message::Level(epoch, None));
    let next = [save(1), later(1, 2), later(1, 1), send(3, answer(1, 3, [3, 3]))];
    assert_eq!(p0.hear(3, over), next);
    assert_eq!(p0.hear(1, over), [send(1, answer(1, 3, [3, 3]))]);
    // If no process noticed a crash, all have to connect anew; the root stays.
    assert_eq!(p0.hear(1, up), [save(2), later(2, 3), send(1, answer(2, 3, [3, 3]))]);
    assert_eq!(p0.hear(3, up), [save(3), later(3, 1), send(3, answer(3, 3, [3, 3]))]);
}

#[test]
fn process_skips_a_stale_address_and_asks_again_if_it_has_no_other() {
    let mut p3 = with_registry(3, None);
    assert_eq!(p3.ask(Request::Elect), [send(0, Message::Ask(0, Reason::Up))]);
    assert_eq!(p3.suspect(1), []);
    // p1 is stale, p2 is not.
    assert_eq!(p3.hear(0, answer(0, 2, [1, 2])), [send(2, Message::Connect(0))]);
    let joins = [send(2, Message::Join(0, None))];
    assert_eq!(p3.hear(2, Message::Welcome(0, Some(0))), joins);

    let asks_again = |mistake| {
        let mut p3 = with_registry(3, mistake);
        p3.ask(Request::Elect);
        p3.suspect(1);
        p3.hear(0, answer(0, 2, [1, 1]))
    };
    assert_eq!(asks_again(None), [send(0, Message::Ask(0, Reason::Stale))]);
    assert_eq!(asks_again(Some("ask-once")), []);
}

#[test]
fn process_asks_for_the_next_root_if_the_named_one_is_suspected() {
    let mut p3 = with_registry(3, None);
    p3.ask(Request::Elect);
    p3.suspect(2);
    assert_eq!(p3.hear(0, answer(0, 2, [2, 2])), [send(0, Message::Ask(0, Reason::Over))]);
    let root = [konklave_process::Effect::Save(Reign(1)), tell(Indication::Leading { epoch: 1 })];
    assert_eq!(p3.hear(0, answer(1, 3, [3, 3])), root);
}

#[test]
fn process_that_hears_of_a_later_epoch_asks_for_its_root() {
    let mut p3 = with_registry(3, None);
    // Before it comes up, it is no part of the system.
    assert_eq!(p3.hear(1, Message::Level(0, Some(1))), []);
    p3.ask(Request::Elect);
    let connects = [send(1, Message::Connect(0)), send(2, Message::Connect(0))];
    assert_eq!(p3.hear(0, answer(0, 2, [2, 1])), connects);
    let asks = [send(1, Message::Welcome(1, None)), send(0, Message::Ask(0, Reason::Over))];
    assert_eq!(p3.hear(1, Message::Connect(1)), asks);
    assert_eq!(p3.hear(1, Message::Level(1, Some(1))), []);
}

#[test]
fn registry_is_a_member_that_is_up_and_any_process_has_a_link_to_any() {
    let refused = |topology, registry: &str, change: fn(&mut Setup)| {
        let mut setup = Setup::new(Group::of(4), topology);
        setup.chosen.insert("registry", registry.into());
        change(&mut setup);
        VirtualTree::check_setup(&setup).expect_err("is refused").0
    };
    let complete = || Topology::complete(4);
    assert_eq!(refused(complete(), "4", |_| {}), "registry 4 is no member");
    assert!(refused(complete(), "1", |s| s.down.push(ProcessId(1))).contains("must not be down"));
    assert!(refused(Topology::ring(4), "1", |_| {}).contains("--topology complete"));
    let root = |s: &mut Setup| drop(s.chosen.insert("root", "2".into()));
    assert!(refused(complete(), "1", root).contains("omit root"));
}

#[test]
fn process_takes_two_cache_lines() {
    assert_eq!(size_of::<VirtualTree>(), 128);
}
