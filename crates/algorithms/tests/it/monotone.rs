//! The checker is monotone in its budget: whoever may ask more often need not, so what breaks with fewer
//! requests breaks with more.

use konklave_algorithms::Algorithm;
use konklave_algorithms::election::bully::Bully;
use konklave_algorithms::election::chang_roberts::ChangRoberts;
use konklave_algorithms::election::franklin::Franklin;
use konklave_algorithms::multicast::fifo::Fifo;
use konklave_algorithms::mutex::central::Central;
use konklave_algorithms::mutex::lamport::Lamport;
use konklave_algorithms::mutex::naimi_trehel::NaimiTrehel;
use konklave_algorithms::mutex::raymond::Raymond;
use konklave_algorithms::mutex::ricart_agrawala::RicartAgrawala;
use konklave_algorithms::mutex::suzuki_kasami::SuzukiKasami;
use konklave_process::Portable;
use konklave_testkit::Case;

/// Every way to make an algorithm fail: its mistakes, a lost message, messages out of order.
fn flawed<P: Algorithm + Portable>(case: &Case<P>) -> Vec<Case<P>> {
    let mut cases: Vec<_> =
        P::SHEET.mistakes.iter().map(|mistake| case.clone().mistake(mistake.name)).collect();
    cases.extend([case.clone().mishaps(1, 0), case.clone().no_fifo(), case.clone().crashes(1, 0)]);
    cases
}

/// Answers how many of the flaws showed with fewer requests.
fn monotone<P: Algorithm + Portable>(case: &Case<P>, fewer: &[u32], more: &[u32]) -> usize {
    let mut shown = 0;
    for flawed in flawed(case) {
        let few = flawed.clone().requests(fewer).check();
        if few.verdict == "violated" {
            shown += 1;
            let many = flawed.requests(more).check();
            let name = P::SHEET.name;
            assert_eq!(many.verdict, "violated", "{name} {fewer:?} {more:?}: {few:?} {many:?}");
            assert!(many.length <= few.length, "{name}: {few:?} {many:?}");
        }
    }
    shown
}

#[test]
fn violation_with_fewer_requests_remains_with_more() {
    let two = (&[1, 1][..], &[2, 2][..]);
    let one = (&[1, 0][..], &[1, 1][..]);
    for (fewer, more) in [one, two] {
        monotone(&Case::<RicartAgrawala>::complete(2), fewer, more);
        monotone(&Case::<SuzukiKasami>::complete(2), fewer, more);
        monotone(&Case::<Lamport>::complete(2), fewer, more);
        monotone(&Case::<NaimiTrehel>::complete(2), fewer, more);
        monotone(&Case::<Fifo>::complete(2), fewer, more);
        monotone(&Case::<Franklin>::ring(2), fewer, more);
        monotone(&Case::<Bully>::complete(2).synchronous(), fewer, more);
    }
    let shown = monotone(&Case::<Central>::complete(3), &[1, 1, 0], &[1, 1, 1])
        + monotone(
            &Case::<Raymond>::on(konklave_process::Topology::path(3)),
            &[1, 0, 1],
            &[1, 1, 1],
        );
    assert!(shown >= 4, "{shown} flaws were tried at all");
}

#[test]
fn a_process_that_may_start_once_more_need_not() {
    let ring = |requests: &[u32]| {
        Case::<ChangRoberts>::directed_ring(3).requests(requests).no_fifo().check()
    };
    ring(&[2, 1, 1]).violated("deadlock", 9);
    ring(&[2, 2, 2]).violated("deadlock", 9);
}

#[test]
fn counts_are_those_of_runs_in_which_all_requests_are_made() {
    let case = Case::<Central>::complete(3).requests(&[0, 1, 1]).counting();
    assert_eq!(case.check().messages, Some((6, 6)), "no run without requests is counted");
}
