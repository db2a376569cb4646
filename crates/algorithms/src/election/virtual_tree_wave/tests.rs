//! Steps of Wave election on a virtual tree, one at a time.

use konklave_process::{Group, Topology};
use konklave_testkit::{Bench, send, tell};

use super::*;
use crate::election::virtual_tree::Message as Tree;
use crate::{Algorithm as _, Setup};

fn process(me: u32, graph: Topology) -> Bench<VirtualTreeWave> {
    let setup = Setup::new(Group::of(graph.len()), graph);
    Bench::new(VirtualTreeWave::new(ProcessId(me), &setup), ProcessId(me), &setup.group)
}

/// Process 1 of the path 0 – 1 – 2, the child of 0 and the parent of 2.
fn inner() -> Bench<VirtualTreeWave> {
    let mut p1 = process(1, Topology::path(3));
    p1.ask(Request::Elect);
    p1.hear(2, Message::Tree(Tree::Welcome(0, None)));
    p1.hear(0, Message::Tree(Tree::Welcome(0, Some(0))));
    let attached = p1.hear(0, Message::Tree(Tree::JoinOk(0, 0)));
    assert!(attached.contains(&send(0, Message::Report)), "{attached:?}");
    p1.hear(2, Message::Tree(Tree::Join(0, None)));
    p1
}

#[test]
fn one_alone_leads_at_once() {
    let told = process(0, Topology::path(1)).ask(Request::Elect);
    assert!(told.contains(&tell(Indication::Leading { epoch: 0 })), "{told:?}");
}

#[test]
fn reports_travel_to_the_root_which_waits_for_all() {
    assert_eq!(inner().hear(2, Message::Report), [send(0, Message::Report)]);
    let mut p0 = process(0, Topology::path(3));
    p0.ask(Request::Elect);
    p0.hear(1, Message::Tree(Tree::Join(0, None)));
    assert_eq!(p0.hear(1, Message::Report), []);
    assert_eq!(p0.hear(1, Message::Report), [send(1, Message::Explore)]);
}

#[test]
fn reached_process_waits_for_its_children() {
    let mut p1 = inner();
    assert_eq!(p1.hear(2, Message::Explore), []);
    assert_eq!(p1.hear(0, Message::Explore), [send(2, Message::Explore)]);
    let p2 = ProcessId(2);
    assert_eq!(p1.hear(2, Message::Echo(p2)), [send(0, Message::Echo(p2))]);
    let leader = Some(p2);
    assert_eq!(
        p1.hear(0, Message::Info(p2)),
        [tell(Indication::Following { leader, epoch: 0 }), send(2, Message::Info(p2))]
    );
}

#[test]
fn a_child_that_leaves_is_not_waited_for() {
    let mut p1 = inner();
    p1.hear(0, Message::Explore);
    let left = p1.hear(2, Message::Tree(Tree::Leave(0)));
    assert_eq!(left, [send(0, Message::Echo(ProcessId(1)))]);
}

#[test]
fn reached_process_takes_no_new_child() {
    let mut p1 = inner();
    p1.hear(0, Message::Explore);
    let refused = p1.hear(2, Message::Tree(Tree::Join(0, None)));
    assert_eq!(refused, [send(2, Message::Tree(Tree::JoinNo(0, None)))]);
}
