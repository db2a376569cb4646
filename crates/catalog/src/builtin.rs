//! The algorithms that come with Konklave, by problem.

use konklave_algorithms::detector::{heartbeat::Heartbeat, phi_accrual::PhiAccrual};
use konklave_algorithms::election::{
    adoption::Adoption, bully::Bully, bully_1982::Bully1982, chang_roberts,
    chang_roberts::ChangRoberts, dolev_klawe_rodeh::DolevKlaweRodeh, extinction::Extinction,
    firewire::FireWire, franklin::Franklin, hirschberg_sinclair::HirschbergSinclair,
    invitation::Invitation, itai_rodeh::ItaiRodeh, quorum::Quorum, ring_list::RingList,
    tree_wave::TreeWave, virtual_tree::VirtualTree, virtual_tree_wave::VirtualTreeWave,
};
use konklave_algorithms::group::{
    leader::Leader, lifted::Lifted, lock_table::LockTable, virtual_synchrony::VirtualSynchrony,
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

use crate::Entry;

/// All of them, each problem's in the order of their names.
pub(crate) fn entries() -> Vec<Entry> {
    [elections(), groups(), multicasts(), locks(), detectors()].concat()
}

fn elections() -> Vec<Entry> {
    vec![
        Entry::new::<Adoption>(),
        Entry::new::<Bully>(),
        Entry::new::<Bully1982>(),
        Entry::new::<ChangRoberts>().hardened::<chang_roberts::hardened::Hardened>(),
        Entry::new::<DolevKlaweRodeh>(),
        Entry::new::<Extinction>(),
        Entry::new::<FireWire>(),
        Entry::new::<Franklin>(),
        Entry::new::<HirschbergSinclair>(),
        Entry::new::<Invitation>(),
        Entry::new::<ItaiRodeh>(),
        Entry::new::<Quorum>(),
        Entry::new::<RingList>(),
        Entry::new::<TreeWave>(),
        Entry::new::<VirtualTree>(),
        Entry::new::<VirtualTreeWave>(),
    ]
}

fn groups() -> Vec<Entry> {
    vec![
        Entry::new::<Leader>(),
        Entry::new::<Lifted>(),
        Entry::new::<LockTable>(),
        Entry::new::<VirtualSynchrony>(),
    ]
}

fn multicasts() -> Vec<Entry> {
    vec![
        Entry::new::<Ack>(),
        Entry::new::<BestEffort>(),
        Entry::new::<Causal>(),
        Entry::new::<Fifo>(),
        Entry::new::<Isis>(),
        Entry::new::<LamportOrder>(),
        Entry::new::<Nack>(),
        Entry::new::<Sequencer>(),
        Entry::new::<Srm>(),
        Entry::new::<TokenOrder>(),
    ]
}

fn locks() -> Vec<Entry> {
    vec![
        Entry::new::<CaoSinghal>(),
        Entry::new::<CarvalhoRoucairol>(),
        Entry::new::<Central>(),
        Entry::new::<Lamport>(),
        Entry::new::<Maekawa>(),
        Entry::new::<NaimiTrehel>(),
        Entry::new::<NeilsenMizuno>(),
        Entry::new::<Raymond>(),
        Entry::new::<RicartAgrawala>(),
        Entry::new::<RicartAgrawalaAcknowledged>(),
        Entry::new::<RicartAgrawalaToken>(),
        Entry::new::<Sanders>(),
        Entry::new::<Singhal>(),
        Entry::new::<SuzukiKasami>(),
        Entry::new::<TokenRing>(),
        Entry::new::<Voting>(),
    ]
}

fn detectors() -> Vec<Entry> {
    vec![Entry::new::<Heartbeat>(), Entry::new::<PhiAccrual>()]
}
