//! One member of a group in an operating system process of its own.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::time::Duration;

use konklave_algorithms::detector::Indication;
use konklave_algorithms::detector::phi_accrual::PhiAccrual;
use konklave_algorithms::erased;
use konklave_net::{MemberConfig, News, Sockets};
use konklave_process::{AnyData, ProcessId};
use serde::Serialize;
use serde_json::Value;

use crate::{Entry, Error, Plan};

/// The parameters of one member, and the receiver of its events.
pub struct MemberPlan<'a> {
    /// Which member.
    pub me: ProcessId,
    /// T, for timeouts.
    pub unit: Duration,
    /// At which address of this machine it listens.
    pub listen: Ipv4Addr,
    /// Where all are reached by one datagram; connections, if there is no such address.
    pub multicast: Option<SocketAddrV4>,
    /// Given where this member listens, says where all do.
    pub meet: &'a mut dyn FnMut(SocketAddr) -> Result<BTreeMap<ProcessId, SocketAddr>, Error>,
    /// Receives the indications of the algorithm.
    pub tell: &'a mut dyn FnMut(Told),
}

/// An indication to the application of a member.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Told {
    /// The member whose application gets the indication.
    pub node: u32,
    /// When, in ms since its start.
    pub at: f64,
    /// The indication.
    pub told: Value,
}

/// A frame of a member is no longer than this.
const FRAME_LIMIT: usize = 1 << 20;

/// Runs one member, with a φ accrual detector beside it, until the time is up.
pub(crate) fn member(entry: &Entry, plan: &Plan, member: MemberPlan<'_>) -> Result<(), Error> {
    let algorithm = entry.algorithm;
    let mut setup = plan.setup.clone();
    setup.unit = member.unit;
    let usage = |e: konklave_algorithms::SetupError| Error::Usage(e.to_string());
    algorithm.check_setup(&setup).map_err(usage)?;
    let me = member.me;
    if !setup.group.contains(me) {
        return Err(Error::Usage(format!("--me: {me} is not a member of the group")));
    }
    let unavailable = |e: std::io::Error| Error::Unavailable(format!("cannot listen: {e}"));
    let sockets = match member.multicast {
        Some(all) => Sockets::multicast(member.listen, all),
        None => Sockets::streams(member.listen),
    };
    let sockets = sockets.map_err(unavailable)?;
    let addresses = (member.meet)(sockets.address().map_err(unavailable)?)?;
    if let Some(missing) = setup.group.members().iter().find(|p| !addresses.contains_key(p)) {
        return Err(Error::Data(format!("stdin: the address of {missing} is missing")));
    }
    let config = MemberConfig {
        group: setup.group.clone(),
        me,
        seed: plan.config.seed,
        time_limit: member.unit.mul_f64(plan.config.time_limit.min(1e6)),
        frame_limit: FRAME_LIMIT,
    };
    let news = |indication: &AnyData| match indication.get() {
        Indication::Suspect(peer) => Some(News::Suspect(*peer)),
        Indication::Restore(peer) => Some(News::Trust(*peer)),
    };
    let chosen = std::mem::take(&mut setup.chosen);
    let detector = erased::<PhiAccrual>().process(me, &setup);
    setup.chosen = chosen;
    let application = algorithm.application(&plan.workload, &setup);
    let process = algorithm.process(me, &setup);
    let node = konklave_net::Member::new(config, process, detector, news, application);
    node.run(sockets, &addresses, &mut |at, told| {
        let told = serde_json::to_value(told).unwrap_or_default();
        (member.tell)(Told { node: me.0, at: at.as_secs_f64() * 1e3, told });
    })
    .map_err(unavailable)
}
