//! Which algorithms of mutual exclusion need FIFO channels: every run, with and without.

use konklave_algorithms::mutex::carvalho_roucairol::CarvalhoRoucairol;
use konklave_algorithms::mutex::central::Central;
use konklave_algorithms::mutex::lamport::Lamport;
use konklave_algorithms::mutex::ricart_agrawala::RicartAgrawala;
use konklave_algorithms::mutex::ricart_agrawala_acknowledged::RicartAgrawalaAcknowledged;
use konklave_algorithms::mutex::singhal::Singhal;
use konklave_algorithms::mutex::suzuki_kasami::SuzukiKasami;
use konklave_algorithms::mutex::token_ring::TokenRing;
use konklave_algorithms::{Algorithm, Assumption};
use konklave_testkit::Case;

/// What breaks with FIFO channels, and without.
fn verdicts<P: Algorithm>(case: Case<P>) -> [Option<&'static str>; 2] {
    let [fifo, any_order] = [case.clone(), case.no_fifo()].map(|case| {
        let found = case.fenced().synchronous().check();
        assert_ne!(found.verdict, "bounded", "{}: {found:?}", P::SHEET.name);
        found.property
    });
    let needs_fifo = P::SHEET.assumes.contains(&Assumption::Fifo);
    assert_eq!(needs_fifo, any_order.is_some(), "{}: the sheet says otherwise", P::SHEET.name);
    [fifo, any_order]
}

#[test]
fn only_lamport_needs_fifo_channels() {
    let right = [None, None];
    let unsafe_without = [None, Some("mutual exclusion")];
    assert_eq!(verdicts::<Central>(Case::complete(3).requests(&[1, 2, 1])), right);
    assert_eq!(verdicts::<Lamport>(Case::complete(2).requests(&[2, 2])), unsafe_without);
    assert_eq!(verdicts::<Lamport>(Case::complete(3).requests(&[1, 0, 1])), unsafe_without);
    let suppressed = Case::<Lamport>::complete(3).set("acks", "suppressed");
    assert_eq!(verdicts(suppressed), unsafe_without);
    assert_eq!(verdicts::<RicartAgrawala>(Case::complete(3)), right);
    assert_eq!(verdicts::<RicartAgrawalaAcknowledged>(Case::complete(3)), right);
    assert_eq!(verdicts::<CarvalhoRoucairol>(Case::complete(3).requests(&[2, 2, 2])), right);
    assert_eq!(verdicts::<TokenRing>(Case::directed_ring(3).requests(&[2, 1, 1])), right);
    assert_eq!(verdicts::<SuzukiKasami>(Case::complete(3).requests(&[2, 2, 1])), right);
    assert_eq!(verdicts::<Singhal>(Case::complete(3).requests(&[2, 1, 2])), right);
}
