//! Values of `--set`: values that make no sense are refused, and nothing panics.

use std::collections::BTreeSet;

use konklave_algorithms::detector::{heartbeat::Heartbeat, phi_accrual::PhiAccrual};
use konklave_algorithms::election::{
    adoption::Adoption, bully::Bully, bully_1982::Bully1982, chang_roberts::ChangRoberts,
    dolev_klawe_rodeh::DolevKlaweRodeh, extinction::Extinction, firewire::FireWire,
    franklin::Franklin, hirschberg_sinclair::HirschbergSinclair, invitation::Invitation,
    itai_rodeh::ItaiRodeh, quorum::Quorum, ring_list::RingList, tree_wave::TreeWave,
    virtual_tree::VirtualTree, virtual_tree_wave::VirtualTreeWave,
};
use konklave_algorithms::group::{
    forming::Forming, leader::Leader, lifted::Lifted, lock_table::LockTable,
    virtual_synchrony::VirtualSynchrony,
};
use konklave_algorithms::multicast::{
    ack::Ack, best_effort::BestEffort, causal::Causal, fifo::Fifo, isis::Isis,
    lamport_order::LamportOrder, nack::Nack, sequencer::Sequencer, srm::Srm,
    token_order::TokenOrder,
};
use konklave_algorithms::mutex::{
    cao_singhal::CaoSinghal, carvalho_roucairol::CarvalhoRoucairol, central::Central,
    lamport::Lamport, maekawa::Maekawa, naimi_trehel::NaimiTrehel, neilsen_mizuno::NeilsenMizuno,
    raymond::Raymond, ricart_agrawala::RicartAgrawala,
    ricart_agrawala_acknowledged::RicartAgrawalaAcknowledged,
    ricart_agrawala_token::RicartAgrawalaToken, sanders::Sanders, singhal::Singhal,
    suzuki_kasami::SuzukiKasami, token_ring::TokenRing, voting::Voting,
};
use konklave_algorithms::{Algorithm, Setup, Switch};
use konklave_process::topology::Spec;
use konklave_process::{Group, Rng};
use konklave_testkit::Bench;

/// Numbers that can be 0: what that means stands in their data sheets.
const MAY_BE_ZERO: &[(&str, &str)] = &[
    ("ack", "fanout"),
    ("ack", "jitter"),
    ("ack", "limit"),
    ("ack", "share"),
    ("bully", "ping"),
    ("bully-1982", "check"),
    ("firewire", "long"),
    ("firewire", "look"),
    ("firewire", "short"),
    ("firewire", "timeout"),
    ("forming", "alone"),
    ("forming", "heartbeat"),
    ("invitation", "max-count"),
    ("leader", "heartbeat"),
    ("leader", "lease"),
    ("lifted", "heartbeat"),
    ("lock-table", "heartbeat"),
    ("nack", "beats"),
    ("nack", "stops"),
    ("quorum", "drift"),
    ("quorum", "max-beats"),
    ("quorum", "max-term"),
    ("raymond", "greedy"),
    ("srm", "c1"),
    ("srm", "c2"),
    ("srm", "d1"),
    ("srm", "d2"),
    ("srm", "scope"),
    ("srm", "sessions"),
    ("token-ring", "patience"),
    ("virtual-synchrony", "heartbeat"),
    ("virtual-tree", "root"),
    ("virtual-tree-wave", "root"),
];

/// Values of the right type that make no sense.
const SENSELESS: &[(&str, &str, &str)] = &[
    ("ack", "share", "101"),
    ("itai-rodeh", "range", "1"),
    ("phi-accrual", "ticks", "1001"),
    ("quorum", "drift", "100"),
    ("firewire", "short", "261"),
    ("firewire", "short-max", "239"),
    ("firewire", "long-max", "569"),
    ("bully", "ping", "3"),
    ("forming", "alone", "4"),
    ("forming", "founders", "2"),
    ("forming", "founders", "5"),
    ("virtual-tree", "root", "4"),
    ("lifted", "joiners", "0,1,2,3"),
    ("lifted", "joiners", "9"),
    ("lock-table", "ask", "permit-0"),
    ("lock-table", "leavers", "all"),
    ("virtual-synchrony", "reform", "-1"),
    ("virtual-synchrony", "joiners", "0,1,2,3"),
    ("maekawa", "quorums", "cube"),
    ("maekawa", "quorums", "0:0;1:1"),
    ("sanders", "structure", "0"),
    ("voting", "votes", "1,1"),
    ("voting", "votes", "0,0,0,0"),
    ("ricart-agrawala", "clocks", "1,2,3,4,5"),
    ("ricart-agrawala", "clocks", "-1"),
];

/// Texts that are never a value, unless any text is one.
const NO_VALUES: &[&str] =
    &["", "-1", "1.5", "1e3", " 1", "x", "<number>", "<text>", "16777216", "4294967296"];

/// Texts that may be a value.
const NUMBERS: &[&str] = &["0", "1", "2", "1000000", "16777215"];

#[derive(Default)]
struct Table {
    seen: BTreeSet<&'static str>,
    wrong: Vec<String>,
}

fn setup<P: Algorithm>() -> Setup {
    let spec = Spec::default_for(P::SHEET.topologies[0]);
    let built = spec.build(4, &Rng::new(1), |_| unreachable!("these are in no file"));
    Setup::new(Group::of(4), built.expect("four nodes have every shape").topology)
}

impl Table {
    /// Tries every switch of one algorithm.
    fn algorithm<P: Algorithm>(&mut self) {
        let name = P::SHEET.name;
        self.seen.insert(name);
        for switch in P::SHEET.switches {
            let mut wrong = |value: &str, what: &str| {
                self.wrong.push(format!("{name} --set {}={value} {what}", switch.name));
            };
            for value in NO_VALUES {
                if switch.accepts(value) && (value.is_empty() || !is_text(switch)) {
                    wrong(value, "is taken for a value");
                }
            }
            for value in switch.values.iter().filter(|value| !value.starts_with('<')) {
                if !switch.accepts(value) {
                    wrong(value, "is no value, though the data sheet has it");
                }
            }
            for value in NUMBERS.iter().filter(|value| switch.accepts(value)) {
                let refused = tried::<P>(switch, value).is_err();
                let may_be_zero = MAY_BE_ZERO.contains(&(name, switch.name));
                if *value == "0" && refused == may_be_zero && !is_text(switch) {
                    wrong(value, if refused { "is refused" } else { "is not refused" });
                }
            }
        }
        for (_, switch, value) in SENSELESS.iter().filter(|(algorithm, ..)| *algorithm == name) {
            let known = P::SHEET.switches.iter().find(|s| s.name == *switch);
            let known = known.unwrap_or_else(|| panic!("{name} has no switch {switch}"));
            match tried::<P>(known, value) {
                Err(why) if !why.is_empty() => {}
                Ok(()) | Err(_) => self.wrong.push(format!("{name}: {switch}={value} passes")),
            }
        }
    }
}

fn is_text(switch: &Switch) -> bool {
    switch.values.contains(&"<text>")
}

/// Builds and starts a group in which this is chosen, or says why not.
fn tried<P: Algorithm>(switch: &Switch, value: &str) -> Result<(), String> {
    if !switch.accepts(value) {
        return Err("no value".into());
    }
    let mut setup = setup::<P>();
    setup.chosen.insert(switch.name, value.to_owned());
    P::check_setup(&setup).map_err(|why| why.to_string())?;
    for &p in setup.group.members() {
        Bench::new(P::new(p, &setup), p, &setup.group).start();
    }
    Ok(())
}

#[test]
fn nonsense_is_refused_without_a_panic() {
    let mut table = Table::default();
    macro_rules! all {
        ($($algorithm:ident)*) => { $(table.algorithm::<$algorithm>();)* };
    }
    all! {
        Adoption Bully Bully1982 ChangRoberts DolevKlaweRodeh Extinction FireWire Franklin
        HirschbergSinclair Invitation ItaiRodeh Quorum RingList TreeWave VirtualTree
        VirtualTreeWave Forming Leader Lifted LockTable VirtualSynchrony Ack BestEffort Causal Fifo Isis
        LamportOrder Nack Sequencer Srm TokenOrder CaoSinghal CarvalhoRoucairol Central Lamport
        Maekawa NaimiTrehel NeilsenMizuno Raymond RicartAgrawala RicartAgrawalaAcknowledged
        RicartAgrawalaToken Sanders Singhal SuzukiKasami TokenRing Voting Heartbeat PhiAccrual
    }
    assert!(table.wrong.is_empty(), "{}", table.wrong.join("\n"));
    // None of the algorithms was left out.
    let all = [
        konklave_builtin_election::ALGORITHMS,
        konklave_builtin_group::ALGORITHMS,
        konklave_builtin_group::DETECTORS,
        konklave_builtin_multicast::ALGORITHMS,
        konklave_builtin_mutex::ALGORITHMS,
    ];
    for name in all.concat().iter().map(|algorithm| algorithm.sheet().name) {
        assert!(table.seen.contains(name), "{name} is not in the table");
    }
}
