//! Corosync, of which nothing here can be measured: only said why.

use super::wire::program;
use crate::report::Report;

/// What stands in the way.
const WHY: &str = "it orders messages and has no locks of its own (those are of the kernel's dlm, which \
                   needs root); there is one daemon to a host, whose sockets and pid file have fixed \
                   names, so three on loopback need three network namespaces; and its clients need its C \
                   library. Its figures, taken in namespaces, are in docs/speed.md";

pub(super) fn measure(report: &mut Report) {
    let missing = if program("corosync").is_none() {
        " (not installed: apt-get install corosync)"
    } else {
        ""
    };
    report.note(format!("corosync is not measured{missing}: {WHY}"));
}
