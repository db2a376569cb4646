//! Starvation: how often may those who knew of a request when they asked go before it?
//!
//! From the request on, entries are not bounded by any algorithm: while the request is on its way,
//! others come and go. So only those count who knew better.

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
use konklave_process::Topology;
use konklave_testkit::Case;

/// The most that anyone is overtaken in any run: so much holds, and one less does not.
fn most<P: Algorithm>(case: Case<P>) -> u32 {
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

/// Who wants in how often: the last asks once, the others ever more often.
const OFTEN: [[u32; 3]; 2] = [[2, 2, 1], [3, 3, 1]];

#[test]
fn where_all_reply_or_one_decides_nobody_who_knew_goes_before() {
    for requests in OFTEN {
        assert_eq!(most(Case::<Central>::complete(3).requests(&requests)), 0);
        assert_eq!(most(Case::<RicartAgrawala>::complete(3).requests(&requests)), 0);
    }
}

#[test]
fn however_often_the_others_ask_each_goes_before_once_at_most() {
    for requests in OFTEN {
        assert_eq!(most(Case::<SuzukiKasami>::complete(3).requests(&requests)), 2);
        assert_eq!(most(Case::<RicartAgrawalaToken>::complete(3).requests(&requests)), 2);
        assert_eq!(most(Case::<NaimiTrehel>::complete(3).requests(&requests)), 0);
        assert_eq!(most(Case::<Raymond>::on(Topology::path(3)).requests(&requests)), 1);
        assert_eq!(most(Case::<CarvalhoRoucairol>::complete(3).requests(&requests)), 1);
        assert_eq!(most(Case::<TokenRing>::directed_ring(3).requests(&requests)), 2);
        let plane = Case::<Maekawa>::complete(3).set("quorums", "plane");
        assert_eq!(most(plane.requests(&requests)), 1);
        for arbitration in ["round-robin", "smallest"] {
            let case = Case::<Singhal>::complete(3).set("arbitration", arbitration);
            assert_eq!(most(case.requests(&requests)), 2, "{arbitration}");
        }
    }
}

#[test]
fn by_nearest_arbitration_the_far_one_is_overtaken_as_often_as_the_others_ask() {
    let often = [2, 3, 4, 5].map(|often| {
        let case = Case::<Singhal>::complete(3).set("arbitration", "nearest");
        most(case.requests(&[often, often, 1]))
    });
    assert_eq!(often, [3, 5, 7, 9]);
}
