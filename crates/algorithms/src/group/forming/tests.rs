use konklave_process::{Effect, Group, Input, ProcessId, Topology};
use konklave_testkit::Bench;

use super::{Forming, FoundingMessage, Message, PeerStatus, Record};
use crate::group::{Bytes, Member, View, ViewId};
use crate::{Algorithm, Setup};

fn process(me: u32, n: usize, founders: &str) -> Bench<Forming> {
    let mut setup = Setup::new(Group::of(n), Topology::complete(n));
    setup.chosen.insert("founders", founders.to_owned());
    let mut bench = Bench::new(Forming::new(ProcessId(me), &setup), ProcessId(me), &setup.group);
    bench.step(Input::Start);
    bench
}

fn from(id: u32, message: Message<Bytes>) -> Input<Forming> {
    Input::Message { from: ProcessId(id), message }
}

/// A report of a process in no view.
fn report(id: u32, generation: u32) -> Input<Forming> {
    let status = PeerStatus {
        incarnation: 1,
        generation,
        view: None,
        has_data_dir: true,
        earlier_grants_over: true,
    };
    from(id, Message::Status(status))
}

fn view(generation: u32, members: &[u32]) -> View {
    let coordinator = ProcessId(members[0]);
    let member = |id: &u32| Member { id: ProcessId(*id), incarnation: 1 };
    View {
        id: ViewId { generation, epoch: 0, coordinator },
        members: members.iter().map(member).collect(),
        observers: Vec::new(),
    }
}

fn proposal(number: u64, view: View) -> Input<Forming> {
    let by = view.id.coordinator.0;
    from(by, Message::Founding(FoundingMessage::Propose { number, view }))
}

/// The answers about first views, with the record that was saved before each.
fn answers(effects: &[Effect<Forming>]) -> Vec<(u32, FoundingMessage, Vec<ProcessId>)> {
    let (mut saved, mut answers) = (Record::default(), Vec::new());
    for effect in effects {
        match effect {
            Effect::Save(record) => saved = record.clone(),
            Effect::Send { to, message: Message::Founding(message) } => {
                answers.push((to.0, message.clone(), saved.promised.clone()));
            }
            _ => {}
        }
    }
    answers
}

#[test]
fn promise_is_recorded_before_it_is_sent() {
    let mut bench = process(2, 3, "2");
    bench.step(report(1, 0));
    let effects = bench.step(proposal(7, view(1, &[1, 2])));
    let members = vec![ProcessId(1), ProcessId(2)];
    assert_eq!(answers(&effects), [(1, FoundingMessage::Promise { number: 7 }, members)]);
}

#[test]
fn second_proposer_is_refused() {
    let mut bench = process(2, 3, "2");
    bench.step(report(0, 0));
    bench.step(report(1, 0));
    bench.step(proposal(7, view(1, &[1, 2])));
    let effects = bench.step(proposal(9, view(1, &[0, 2])));
    let refusal = FoundingMessage::Refuse { number: 9, to: ProcessId(1) };
    assert_eq!(answers(&effects), [(0, refusal, Vec::new())]);
}

#[test]
fn proposal_of_known_generation_is_ignored() {
    let mut bench = process(2, 3, "2");
    bench.step(report(0, 4));
    bench.step(report(1, 0));
    assert_eq!(answers(&bench.step(proposal(7, view(4, &[1, 2])))), []);
    assert_eq!(answers(&bench.step(proposal(8, view(5, &[1, 2])))).len(), 1);
}

#[test]
fn recorded_promise_binds_after_restart() {
    let mut bench = process(2, 3, "2");
    let promised = vec![ProcessId(1), ProcessId(2)];
    let record = Record { incarnation: 1, promised, ..Record::default() };
    bench.step(Input::Recover(Some(record)));
    bench.step(report(0, 0));
    let mut view = view(1, &[0, 2]);
    view.members[1].incarnation = 2;
    assert_eq!(answers(&bench.step(proposal(7, view.clone()))), []);
    // The other member of the promised view reports that it is in none.
    bench.step(report(1, 0));
    assert_eq!(answers(&bench.step(proposal(7, view))).len(), 1);
}

/// The proposer entered, sent the view to the third member, and restarted; the third member passes the view on.
#[test]
fn view_promised_to_restarted_proposer_is_entered() {
    let mut bench = process(2, 3, "all");
    bench.step(report(0, 0));
    bench.step(report(1, 0));
    let first = view(1, &[0, 1, 2]);
    bench.step(proposal(7, first.clone()));
    let status = |generation| PeerStatus {
        incarnation: 2,
        generation,
        view: None,
        has_data_dir: true,
        earlier_grants_over: true,
    };
    bench.step(from(0, Message::Status(status(1))));
    assert_eq!(bench.process.promised_to(ProcessId(2)), None);
    bench.step(from(1, Message::Found(first.clone())));
    assert_eq!(bench.process.group().view(), &first);
}

#[test]
fn unpromised_view_is_not_entered() {
    let mut bench = process(2, 3, "all");
    bench.step(report(0, 0));
    bench.step(report(1, 0));
    bench.step(from(0, Message::Found(view(1, &[0, 1, 2]))));
    assert!(!bench.process.is_inside());
}

#[test]
fn proposal_with_earlier_incarnation_is_ignored() {
    let mut bench = process(2, 3, "all");
    bench.step(Input::Recover(Some(Record { incarnation: 1, ..Record::default() })));
    bench.step(report(0, 0));
    bench.step(report(1, 0));
    assert_eq!(answers(&bench.step(proposal(7, view(1, &[0, 1, 2])))), []);
}

#[test]
fn reports_stop_once_all_members_are_in_the_view() {
    let alone = process(0, 1, "all").process;
    assert!(alone.is_inside() && !alone.beating);
    assert!(process(1, 2, "all").process.beating);
}
