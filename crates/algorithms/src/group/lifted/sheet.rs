//! The data sheet.

use konklave_process::topology::Shape;

use super::any::NAMES;
use crate::{Assumption, DataSheet, Guarantee, Mistake, Switch};

pub(super) const THAW: Mistake = Mistake {
    name: "thaw",
    what: "messages of the algorithm within are taken in after the promise",
    breaks: "mutual exclusion",
    caught_by: "-n 3 --requests 1,1,1 --set reform=0 --set retry=off",
};
pub(super) const OLD_VIEW: Mistake = Mistake {
    name: "old-view",
    what: "messages of an earlier view are taken in after the next one has begun",
    breaks: "mutual exclusion",
    caught_by: "-n 3 --requests 1,1,1 --set reform=0 --set retry=off --property exclusion",
};
pub(super) const OWN_SUMMARY: Mistake = Mistake {
    name: "own-summary",
    what: "each starts the next view from what it knows itself, not from what was decided",
    breaks: "mutual exclusion",
    caught_by: "-n 3 --requests 1,1,0 --set reform=0 --set retry=off",
};
pub(super) const SAME_BASE: Mistake = Mistake {
    name: "same-base",
    what: "tokens do not start above those of the last view",
    breaks: "growing fences",
    caught_by: "-n 3 --requests 2,1,0 --set reform=0 --set retry=off",
};
pub(super) const NO_WAIT: Mistake = Mistake {
    name: "no-wait",
    what: "with leases, a lock that an excluded member may hold is granted at once",
    breaks: "mutual exclusion",
    caught_by: "-n 3 --requests 0,1,1 --break 1 --synchronous --clock 1 --time-limit 1 --set safety=lease --set lease=20 --set retry=off --set mutex=naimi-trehel --property exclusion",
};

pub(super) const SHEET: DataSheet = DataSheet {
    name: "lifted",
    title: "Lifted mutual exclusion",
    idea: "Inside a view nobody fails, so any classic algorithm will do; a view change stops it and \
           starts it anew from who held and who waited.",
    source: "after virtual synchrony; the algorithms within have their own",
    assumes: &[Assumption::UniqueIds, Assumption::Reliable],
    topologies: &[Shape::Complete],
    winner: None,
    costs: &[],
    guarantees: &[Guarantee::MutualExclusion, Guarantee::DeadlockFree, Guarantee::StarvationFree],
    fence: Some("generation and epoch of the view, count of entries in it"),
    mistakes: &[THAW, OLD_VIEW, OWN_SUMMARY, SAME_BASE, NO_WAIT],
    switches: &[
        Switch { name: "mutex", values: NAMES, what: "the algorithm within" },
        Switch {
            name: "safety",
            values: &["fast", "lease"],
            what: "lease: nobody enters while an excluded member may be inside",
        },
        Switch { name: "lease", values: &["20", "<number>"], what: "how long a lease lasts, in T" },
        Switch {
            name: "heartbeat",
            values: &["0", "<number>"],
            what: "the period in T; 0: nothing is sent again, and only the host's detector tells who is dead",
        },
        Switch { name: "retry", values: &["on", "off"], what: "whether attempts are repeated" },
        Switch { name: "names", values: &["1", "<number>"], what: "how many locks are used" },
        Switch { name: "joiners", values: &["none", "<text>"], what: "who joins later" },
        Switch { name: "leavers", values: &["none", "<text>"], what: "who leaves in the end" },
        Switch { name: "reform", values: &["none", "<text>"], what: "who asks for a new view" },
        Switch { name: "rejoin", values: &["off", "on"], what: "whether the excluded come again" },
    ],
};
