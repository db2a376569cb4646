//! The token.

use konklave_process::ProcessId;
use serde::{Deserialize, Serialize};

/// How many numbers a token asks for at most, as in Corosync. A token that grows with the losses
/// would itself get lost.
const LACKING: usize = 30;

/// The right to give numbers, and the state of the ring.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Token {
    /// How many times it was passed on.
    pub serial: u32,
    /// The last number given.
    pub seq: u32,
    /// All received up to: every member has all messages up to here, once two visits have shown it.
    pub aru: u32,
    /// The lagging member that lowered `aru`: only this member may raise it.
    pub signed: Option<ProcessId>,
    /// The numbers of missing messages, in order.
    pub lacking: Vec<u32>,
    /// How many messages were sent on the last round.
    pub flow: u32,
    /// For how many visits nothing was sent, asked for or missing.
    pub idle: u32,
}

impl Token {
    /// Adds numbers of missing messages, up to the limit.
    pub(super) fn ask(&mut self, seqs: impl Iterator<Item = u32>) {
        for seq in seqs {
            if self.lacking.len() >= LACKING {
                return;
            }
            if let Err(place) = self.lacking.binary_search(&seq) {
                self.lacking.insert(place, seq);
            }
        }
    }

    /// Updates `aru`: member `me` has all messages up to `own`, and the last number was `arrived` when
    /// the token arrived there. With `silent`, a lag does not lower it (a mistake).
    pub(super) fn mark(&mut self, me: ProcessId, arrived: u32, own: u32, silent: bool) {
        if own < self.aru && !silent {
            // This member lags behind all others: the mark falls back to it.
            (self.aru, self.signed) = (own, Some(me));
        } else if self.signed == Some(me) {
            self.aru = own;
            if own == self.seq {
                self.signed = None;
            }
        } else if self.aru == arrived && self.signed.is_none() {
            // No member lags: the mark follows the new messages.
            self.aru = self.seq;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_asks_for_no_more_than_fits() {
        let mut token = Token { lacking: vec![5], ..Token::default() };
        token.ask([5, 3, 9].into_iter());
        assert_eq!(token.lacking, [3, 5, 9]);
        token.ask(10..1000);
        assert_eq!(token.lacking.len(), LACKING);
    }

    #[test]
    fn a_lagging_member_lowers_the_mark_and_only_it_raises_it() {
        let (p, q) = (ProcessId(1), ProcessId(2));
        let mut token = Token { seq: 9, aru: 9, ..Token::default() };
        token.mark(p, 9, 4, false);
        assert_eq!((token.aru, token.signed), (4, Some(p)));
        token.mark(q, 9, 9, false);
        assert_eq!((token.aru, token.signed), (4, Some(p)));
        token.mark(p, 9, 9, false);
        assert_eq!((token.aru, token.signed), (9, None));
    }

    #[test]
    fn without_a_lag_the_mark_follows_the_last_number() {
        let mut token = Token { seq: 6, aru: 4, ..Token::default() };
        token.mark(ProcessId(0), 4, 6, false);
        assert_eq!(token.aru, 6);
        token.seq = 8;
        token.mark(ProcessId(0), 8, 8, false);
        assert_eq!(token.aru, 6, "what came between is not known to be everywhere");
    }
}
