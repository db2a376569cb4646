//! When the certificates of this agent end, for `doctor` and the metrics.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::clock::Day;
use crate::protocol::{Finding, counted};

/// So many days before its end, a certificate is reported as a fault.
const EARLY: u64 = 14;

/// The ends of the certificates, in seconds since 1970.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::daemon) struct Certificates {
    own: u64,
    authority: u64,
}

impl Certificates {
    #[cfg_attr(not(feature = "tls"), expect(dead_code, reason = "this build has no certificates"))]
    pub(in crate::daemon) fn new((own, authority): (u64, u64)) -> Self {
        Self { own, authority }
    }

    /// The name and the end of each certificate.
    pub(super) fn ends(self) -> [(&'static str, u64); 2] {
        [("own", self.own), ("authority", self.authority)]
    }

    /// A line of `doctor` for each certificate.
    pub(super) fn findings(self, now: SystemTime) -> Vec<Finding> {
        let now = now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let finding = |(what, end): (&str, u64)| {
            let day = Day::of(UNIX_EPOCH + Duration::from_secs(end.min(u64::MAX >> 24)));
            let days = end.saturating_sub(now) / 86_400;
            let whose = if what == "own" { "the certificate" } else { "that of the authority" };
            let renew = "konklave keys tls --renew FOLDER NAME, copy the files, then HUP";
            let (well, detail) = match (end <= now, days < EARLY) {
                (true, _) => (false, format!("{whose} ended on {day}: renew it: {renew}")),
                (false, true) => {
                    let left = counted(days, "day");
                    (false, format!("{whose} ends on {day}, in {left}: renew it: {renew}"))
                }
                (false, false) => (true, format!("{whose} is valid until {day}")),
            };
            Finding { what: "certificate".into(), well, detail }
        };
        self.ends().map(finding).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificate_is_reported_two_weeks_before_its_end() {
        let now = UNIX_EPOCH + Duration::from_secs(20_776 * 86_400);
        let found = |days: u64| {
            let own = days * 86_400;
            Certificates { own, authority: 30_000 * 86_400 }.findings(now).remove(0)
        };
        for (days, well, says) in [
            (20_000, false, "ended on 2024-10-04"),
            (20_776, false, "ended on 2026-11-19"),
            (20_777, false, "in 1 day:"),
            (20_789, false, "ends on 2026-12-02, in 13 days"),
            (20_790, true, "valid until 2026-12-03"),
        ] {
            let finding = found(days);
            assert_eq!(finding.well, well, "{days}: {}", finding.detail);
            assert!(finding.detail.contains(says), "{}", finding.detail);
        }
        let endless = Certificates { own: u64::MAX, authority: u64::MAX };
        assert!(endless.findings(now).iter().all(|finding| finding.well));
    }
}
