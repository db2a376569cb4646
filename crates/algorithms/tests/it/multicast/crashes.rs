//! Every order with three members that send two messages each; one may crash. Explored as far as
//! possible.

use konklave_algorithms::Algorithm;
use konklave_algorithms::multicast::causal::Causal;
use konklave_algorithms::multicast::fifo::Fifo;
use konklave_algorithms::multicast::isis::Isis;
use konklave_algorithms::multicast::lamport_order::LamportOrder;
use konklave_algorithms::multicast::sequencer::Sequencer;
use konklave_algorithms::multicast::token_order::TokenOrder;
use konklave_process::Portable;
use konklave_testkit::Case;

/// The properties that a crash may not break, as far as the order promises them.
const SAFE: &[&str] = &[
    "total order",
    "fifo order",
    "causal order",
    "uniform delivery",
    "no creation",
    "no duplication",
];

/// So many states are looked at, more in the long test.
fn most() -> u64 {
    if std::env::var_os("KONKLAVE_LONG").is_some() { 5_000_000 } else { 150_000 }
}

/// Whether all runs were explored, and in how many states; where not, states mean little.
fn explore<P: Algorithm + Portable>(
    change: fn(Case<P>) -> Case<P>,
) -> (&'static str, &'static str, u64) {
    let case = Case::<P>::complete(3).requests(&[2; 3]).crashes(1, 0).judge(SAFE);
    let mut case = change(case);
    case.options.max_states = most();
    let found = case.check();
    assert_ne!(found.verdict, "violated", "{}: {found:?}", P::SHEET.name);
    let states = if found.verdict == "exhausted" { found.states } else { 0 };
    (P::SHEET.name, found.verdict, states)
}

#[test]
fn two_messages_of_each_of_three_and_a_crash_break_no_order() {
    let found = [
        explore::<Fifo>(|case| case),
        explore::<Causal>(|case| case),
        explore::<Sequencer>(|case| case),
        explore::<Sequencer>(|case| case.set("delivery", "uniform")),
        explore::<Isis>(|case| case),
        explore::<LamportOrder>(|case| case),
        explore::<TokenOrder>(|case| case.synchronous()),
        explore::<TokenOrder>(|case| case.synchronous().set("delivery", "safe")),
    ];
    // A bounded search found no violation in the states that it explored: there are more than can be
    // explored.
    for (name, verdict, _) in found {
        assert!(["bounded", "exhausted"].contains(&verdict), "{name}: {verdict}");
    }
    assert_eq!(found[0], ("fifo", "exhausted", 107_744));
}
