//! One of the built-in algorithms, chosen when the group is built.

use konklave_process::ProcessId;

use super::Inner;
use crate::group::within::any;
use crate::mutex::{
    Indication, Request, cao_singhal, central, lamport, maekawa, naimi_trehel, raymond,
    ricart_agrawala, sanders, singhal, suzuki_kasami,
};
use crate::{Algorithm, Setup};

// The first one is the default.
any! {
    Request => Indication;
    "naimi-trehel" NaimiTrehel naimi_trehel "Naimi–Tréhel.";
    "suzuki-kasami" SuzukiKasami suzuki_kasami "Suzuki–Kasami.";
    "raymond" Raymond raymond "Raymond.";
    "ricart-agrawala" RicartAgrawala ricart_agrawala "Ricart–Agrawala.";
    "maekawa" Maekawa maekawa "Maekawa.";
    "lamport" Lamport lamport "Lamport.";
    "central" Central central "A central coordinator.";
    "singhal" Singhal singhal "Singhal.";
    "sanders" Sanders sanders "Sanders.";
    "cao-singhal" CaoSinghal cao_singhal "Cao–Singhal.";
}

impl Inner for Any {
    fn build(me: ProcessId, setup: &Setup) -> Self {
        let chosen = setup.chosen.get("mutex").map_or(NAMES[0], String::as_str);
        Self::named(chosen, me, setup)
            .unwrap_or_else(|| Self::NaimiTrehel(Algorithm::new(me, setup)))
    }
}
