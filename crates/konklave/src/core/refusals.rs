//! Who was refused, or refused us: told once, and then rarely. Whoever is refused calls again and again.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Core;
use crate::status::Event;

/// How long the same is not told again.
const QUIET: Duration = Duration::from_secs(60);
/// How many different ones are kept in mind: strangers may think of more.
const KEPT: usize = 64;

#[derive(Default)]
pub(super) struct Refusals {
    /// Why a connection last came to nothing, since the last view.
    last: Option<String>,
    /// For a place and a reason: when it was told, and how often it has happened since.
    told: BTreeMap<(String, String), (Duration, u64)>,
}

impl Refusals {
    pub(super) fn last(&self) -> Option<&str> {
        self.last.as_deref()
    }

    /// A view began: what kept us apart may be over.
    pub(super) fn on_view(&mut self) {
        self.last = None;
    }

    /// A connection came about: who is refused after that is news.
    pub(super) fn on_peer(&mut self) {
        self.told.clear();
    }

    /// How often it happened untold, if it is to be told now.
    fn note(&mut self, place: &str, reason: &str, now: Duration) -> Option<u64> {
        let key = (place.to_owned(), reason.to_owned());
        if let Some((told, again)) = self.told.get_mut(&key) {
            if now < *told + QUIET {
                *again += 1;
                return None;
            }
            *told = now;
            return Some(std::mem::take(again));
        }
        if self.told.len() >= KEPT
            && let Some(oldest) = self.told.iter().min_by_key(|(_, (told, _))| *told)
        {
            let oldest = oldest.0.clone();
            self.told.remove(&oldest);
        }
        self.told.insert(key, (now, 0));
        Some(0)
    }
}

impl Core {
    /// We called there in vain.
    pub(crate) fn refused(&mut self, address: String, reason: String, now: Duration) {
        let place = address.clone();
        self.tell_refusal(&place, address, reason, now);
    }

    /// Someone called us in vain, from a place that is another each time: a port, a conversation.
    pub(crate) fn refused_stranger(&mut self, from: String, reason: String, now: Duration) {
        let host = from.rsplit_once([':', '.']).map_or(&*from, |(host, _)| host).to_owned();
        self.tell_refusal(&host, from, reason, now);
    }

    fn tell_refusal(&mut self, place: &str, address: String, reason: String, now: Duration) {
        self.refusals.last = Some(format!("{address}: {reason}"));
        if let Some(again) = self.refusals.note(place, &reason, now) {
            self.tell(Event::Refused { address, reason, again });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_is_told_once_a_minute_with_how_often_it_was() {
        let mut refusals = Refusals::default();
        let at = Duration::from_secs;
        assert_eq!(refusals.note("a", "key", at(1)), Some(0));
        for second in 2..61 {
            assert_eq!(refusals.note("a", "key", at(second)), None, "{second}");
        }
        assert_eq!(refusals.note("b", "key", at(60)), Some(0), "another place");
        assert_eq!(refusals.note("a", "version", at(60)), Some(0), "another reason");
        assert_eq!(refusals.note("a", "key", at(61)), Some(59));
        assert_eq!(refusals.note("a", "key", at(62)), None);
        refusals.on_peer();
        assert_eq!(refusals.note("a", "key", at(63)), Some(0), "after a connection it is news");
    }

    #[test]
    fn strangers_take_no_room() {
        let mut refusals = Refusals::default();
        for n in 0..10 * KEPT as u64 {
            assert_eq!(refusals.note("a", &n.to_string(), Duration::from_millis(n)), Some(0));
        }
        assert_eq!(refusals.told.len(), KEPT);
    }
}
