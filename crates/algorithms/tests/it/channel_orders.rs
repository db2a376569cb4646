//! Every algorithm of mutual exclusion, every run: which need FIFO channels, which keep
//! happened-before order, whose fence numbers grow. What the data sheets say is compared.

use std::collections::BTreeSet;

use konklave_algorithms::mutex::cao_singhal::CaoSinghal;
use konklave_algorithms::mutex::carvalho_roucairol::CarvalhoRoucairol;
use konklave_algorithms::mutex::central::Central;
use konklave_algorithms::mutex::lamport::Lamport;
use konklave_algorithms::mutex::maekawa::Maekawa;
use konklave_algorithms::mutex::naimi_trehel::NaimiTrehel;
use konklave_algorithms::mutex::neilsen_mizuno::NeilsenMizuno;
use konklave_algorithms::mutex::raymond::Raymond;
use konklave_algorithms::mutex::ricart_agrawala::RicartAgrawala;
use konklave_algorithms::mutex::ricart_agrawala_acknowledged::RicartAgrawalaAcknowledged;
use konklave_algorithms::mutex::ricart_agrawala_token::RicartAgrawalaToken;
use konklave_algorithms::mutex::sanders::Sanders;
use konklave_algorithms::mutex::singhal::Singhal;
use konklave_algorithms::mutex::suzuki_kasami::SuzukiKasami;
use konklave_algorithms::mutex::token_ring::TokenRing;
use konklave_algorithms::mutex::voting::Voting;
use konklave_algorithms::{Algorithm, Assumption};
use konklave_process::{Portable, Topology};
use konklave_testkit::Case;

/// Verdicts by algorithm, and of which algorithms there are any.
#[derive(Default)]
struct Table {
    seen: BTreeSet<&'static str>,
    wrong: Vec<String>,
}

impl Table {
    fn expect<P: Algorithm + Portable>(
        &mut self,
        case: Case<P>,
        what: &str,
        property: Option<&str>,
    ) {
        self.seen.insert(P::SHEET.name);
        let found = case.check();
        let expected = if property.is_some() { "violated" } else { "exhausted" };
        if (found.verdict, found.property) != (expected, property) {
            self.wrong.push(format!("{}, {what}: {found:?}", P::SHEET.name));
        }
    }

    /// Judges exclusion, tokens, fences, deadlock and rest, with FIFO channels and without.
    fn channels<P: Algorithm + Portable>(&mut self, case: Case<P>, without_fifo: Option<&str>) {
        assert!(P::SHEET.fence.is_some(), "{} has no fence number", P::SHEET.name);
        let needs_fifo = P::SHEET.assumes.contains(&Assumption::Fifo);
        assert_eq!(needs_fifo, without_fifo.is_some(), "the sheet of {} disagrees", P::SHEET.name);
        let case = case.fenced().synchronous();
        self.expect(case.clone(), "FIFO", None);
        self.expect(case.no_fifo(), "any order", without_fifo);
    }

    /// Judges happened-before order, with one message of the application.
    fn order<P: Algorithm + Portable>(&mut self, case: Case<P>, kept: bool) {
        let claimed = P::SHEET.claims_order(false);
        assert_eq!(claimed, kept, "the sheet of {} disagrees", P::SHEET.name);
        let mut case = case.ordered().synchronous();
        case.options.app_messages = 1;
        self.expect(case, "order", (!kept).then_some("happened-before order"));
    }

    /// All were as expected, and none of the algorithms was left out.
    #[track_caller]
    fn complete(self) {
        assert!(self.wrong.is_empty(), "{}", self.wrong.join("\n"));
        for name in
            konklave_builtin_mutex::ALGORITHMS.iter().map(|algorithm| algorithm.sheet().name)
        {
            assert!(self.seen.contains(name), "{name} is not in the table");
        }
    }
}

/// Three clients that need both arbiters, or one of them.
const ARBITERS: &str = "0:3,4;1:3,4;2:3";

#[test]
fn only_lamport_needs_fifo_channels_and_all_fences_grow() {
    let mut table = Table::default();
    table.channels(Case::<Central>::complete(3).requests(&[1, 2, 1]), None);
    let two_inside = Some("mutual exclusion");
    table.channels(Case::<Lamport>::complete(2).requests(&[2, 2]), two_inside);
    table.channels(Case::<Lamport>::complete(3).requests(&[1, 0, 1]), two_inside);
    table.channels(Case::<Lamport>::complete(3).set("acks", "suppressed"), two_inside);
    table.channels(Case::<RicartAgrawala>::complete(3).requests(&[2, 1, 1]), None);
    table.channels(Case::<RicartAgrawalaAcknowledged>::complete(3), None);
    table.channels(Case::<CarvalhoRoucairol>::complete(3).requests(&[2, 2, 2]), None);
    table.channels(Case::<Voting>::complete(3).requests(&[1, 1, 0]), None);
    let arbiters = Case::<Maekawa>::complete(5).set("quorums", ARBITERS);
    table.channels(arbiters.requests(&[1, 1, 2, 0, 0]), None);
    table.channels(Case::<Sanders>::complete(4), None);
    let arbiters = Case::<CaoSinghal>::complete(5).set("quorums", ARBITERS);
    table.channels(arbiters.requests(&[1, 1, 1, 0, 0]), None);
    table.channels(Case::<TokenRing>::directed_ring(3).requests(&[2, 1, 1]), None);
    table.channels(Case::<SuzukiKasami>::complete(3).requests(&[2, 2, 1]), None);
    table.channels(Case::<RicartAgrawalaToken>::complete(3).requests(&[2, 2, 1]), None);
    table.channels(Case::<Raymond>::on(Topology::path(4)).requests(&[1, 1, 2, 1]), None);
    table.channels(Case::<NaimiTrehel>::complete(4).requests(&[1, 2, 1, 1]), None);
    table.channels(Case::<NeilsenMizuno>::on(Topology::star(4)).requests(&[1, 2, 1, 1]), None);
    for arbitration in ["round-robin", "smallest", "nearest"] {
        let case = Case::<Singhal>::complete(3).set("arbitration", arbitration);
        table.channels(case.requests(&[2, 1, 2]), None);
    }
    table.complete();
}

#[test]
fn only_lamport_and_ricart_with_agrawala_keep_happened_before_order() {
    let mut table = Table::default();
    table.order(Case::<Lamport>::complete(3).requests(&[0, 1, 1]), true);
    table.order(Case::<Lamport>::complete(3).requests(&[0, 1, 1]).set("acks", "suppressed"), true);
    table.order(Case::<RicartAgrawala>::complete(3).requests(&[2, 1, 1]), true);
    table.order(Case::<RicartAgrawala>::complete(3).requests(&[2, 1, 1]).no_fifo(), true);
    table.order(Case::<RicartAgrawalaAcknowledged>::complete(3).requests(&[0, 1, 1]), true);
    table.order(Case::<Central>::complete(3).requests(&[0, 1, 1]), false);
    table.order(Case::<CarvalhoRoucairol>::complete(3).requests(&[0, 2, 1]), false);
    table.order(Case::<Voting>::complete(3).no_fifo(), false);
    let plane = Case::<Maekawa>::complete(7).set("quorums", "plane");
    table.order(plane.requests(&[1, 1, 0, 0, 0, 0, 0]), false);
    table.order(Case::<Sanders>::complete(4), false);
    let plane = Case::<CaoSinghal>::complete(7).set("quorums", "plane");
    table.order(plane.requests(&[1, 1, 0, 0, 0, 0, 0]), false);
    table.order(Case::<TokenRing>::directed_ring(3), false);
    table.order(Case::<SuzukiKasami>::complete(3).requests(&[0, 1, 1]), false);
    table.order(Case::<RicartAgrawalaToken>::complete(3).requests(&[0, 1, 1]), false);
    table.order(Case::<Raymond>::on(Topology::path(3)).requests(&[0, 1, 2]), false);
    table.order(Case::<NaimiTrehel>::complete(3).requests(&[0, 1, 1]), false);
    table.order(Case::<NeilsenMizuno>::on(Topology::path(3)), false);
    table.order(Case::<Singhal>::complete(3).requests(&[0, 1, 1]), false);
    table.complete();
}
