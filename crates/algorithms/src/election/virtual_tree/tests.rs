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
