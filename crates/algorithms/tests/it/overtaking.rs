//! Starvation: how often may a process overtake a request that it knew of when it made its own?
//!
//! No algorithm bounds the entries after a request that is still on its way: the others do not know it yet.
//! So only entries of processes that knew the request count.

use konklave_algorithms::Algorithm;
use konklave_algorithms::mutex::carvalho_roucairol::CarvalhoRoucairol;
use konklave_algorithms::mutex::central::Central;
use konklave_algorithms::mutex::maekawa::Maekawa;
use konklave_algorithms::mutex::naimi_trehel::NaimiTrehel;
use konklave_algorithms::mutex::raymond::Raymond;
use konklave_algorithms::mutex::ricart_agrawala::RicartAgrawala;
use konklave_algorithms::mutex::ricart_agrawala_token::RicartAgrawalaToken;
use konklave_algorithms::mutex::singhal::Singhal;
use konklave_algorithms::mutex::suzuki_kasami::SuzukiKasami;
use konklave_algorithms::mutex::token_ring::TokenRing;
use konklave_process::{Portable, Topology};
use konklave_testkit::Case;

/// The most that anyone is overtaken in any run: so much holds, and one less does not.
fn most<P: Algorithm + Portable>(case: Case<P>) -> u32 {
    let mut case = case.judge(&["bounded overtaking"]);
    for most in 0.. {
        case.watch.overtaking = Some(most);
        let found = case.check();
        match found.verdict {
            "exhausted" => return most,
            "violated" => assert_eq!(found.property, Some("bounded overtaking")),
            other => panic!("{}: {other}", P::SHEET.name),
        }
    }
    unreachable!("a run of finitely many requests has finitely many entries")
}

/// The results for 2 and for 3 requests of the others; the last process requests once.
fn both<P: Algorithm + Portable>(case: Case<P>) -> [u32; 2] {
    [2, 3].map(|often| most(case.clone().requests(&[often, often, 1])))
}

#[test]
fn however_often_the_others_ask_nobody_is_overtaken_more_often() {
    assert_eq!(both(Case::<Central>::complete(3)), [0, 0]);
    assert_eq!(both(Case::<RicartAgrawala>::complete(3)), [0, 0]);
    assert_eq!(both(Case::<NaimiTrehel>::complete(3)), [0, 0]);
    assert_eq!(both(Case::<TokenRing>::directed_ring(3)), [0, 0]);
    let maekawa = Case::<Maekawa>::complete(3).set("quorums", "plane");
    assert_eq!(both(maekawa.clone()), [0, 0]);
    assert_eq!(both(maekawa.set("clock", "requests")), [1, 1]);
    assert_eq!(both(Case::<SuzukiKasami>::complete(3)), [2, 2]);
    let singhal = |arbitration| Case::<Singhal>::complete(3).set("arbitration", arbitration);
    assert_eq!(both(singhal("round-robin")), [2, 2]);
    assert_eq!(both(singhal("smallest")), [1, 1]);
}

#[test]
fn a_request_that_is_still_on_its_way_to_some_is_overtaken_by_others_who_know_it() {
    // A message with a long but finite delay; all messages arrive, so no process starves.
    assert_eq!(both(Case::<RicartAgrawalaToken>::complete(3)), [3, 5]);
    assert_eq!(both(Case::<Raymond>::on(Topology::path(3))), [1, 2]);
    assert_eq!(both(Case::<CarvalhoRoucairol>::complete(3)), [1, 2]);
}

#[test]
fn by_nearest_arbitration_the_far_one_is_overtaken_as_often_as_the_others_ask() {
    // With requests that arrive in time, too: see the runs with constant delays of `singhal`.
    let often = [2, 3, 4].map(|often| {
        let case = Case::<Singhal>::complete(3).set("arbitration", "nearest");
        most(case.requests(&[often, often, 1]))
    });
    assert_eq!(often, [4, 6, 8]);
}
