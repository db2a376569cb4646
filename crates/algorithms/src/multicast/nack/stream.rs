//! The receiver's side: the messages of one sender, which are missing, and when to ask for them.

use std::collections::BTreeMap;

use konklave_process::{Context, ProcessId};
use serde::Serialize;

use super::{Message, Nack, ROUND_TRIP, Timer};
use crate::multicast::{Indication, Note, Numbers, Unit};

/// The stream of one sender.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize)]
pub struct Stream {
    life: u32,
    received: Numbers,
    /// Messages that arrived before one of their predecessors, by place.
    #[serde(rename = "early")]
    out_of_order: BTreeMap<u32, u32>,
    /// The highest known place of the stream.
    high: u32,
    /// How many requests were sent since the last new message.
    tries: u32,
    /// Whether a request is due.
    asking: bool,
}

impl Stream {
    /// Whether no message up to the highest known place is missing.
    pub(super) fn is_complete(&self) -> bool {
        self.received.upto() >= self.high
    }
}

impl Nack {
    /// The stream of this incarnation of `from`; none if the incarnation is over. A restarted process
    /// takes part from the first message that it receives.
    fn stream(&mut self, from: ProcessId, life: u32, first: u32) -> Option<&mut Stream> {
        let late = self.life > 0;
        let base = if late { first.saturating_sub(1) } else { 0 };
        let new = |base| Stream { life, received: Numbers::first(base), ..Stream::default() };
        let stream = self.streams.entry(from).or_insert_with(|| new(base));
        if life > stream.life {
            *stream = new(0);
        }
        (life == stream.life).then_some(stream)
    }

    pub(super) fn on_data(
        &mut self,
        from: ProcessId,
        life: u32,
        seq: u32,
        number: u32,
        repair: bool,
        ctx: &mut Context<'_, Self>,
    ) {
        let Some(stream) = self.stream(from, life, seq) else { return };
        if !stream.received.insert(seq) {
            if repair {
                ctx.indicate(Indication::Note(Note::Unwanted(Unit { from, number })));
            }
            return;
        }
        stream.out_of_order.insert(seq, number);
        stream.tries = 0;
        Self::deliver(stream, from, ctx);
        self.note_highest(from, seq, ctx);
    }

    pub(super) fn on_heartbeat(
        &mut self,
        from: ProcessId,
        life: u32,
        high: u32,
        ctx: &mut Context<'_, Self>,
    ) {
        if self.stream(from, life, high + 1).is_some() {
            self.note_highest(from, high, ctx);
        }
    }

    /// Whether no message of this incarnation of `from` is known to be missing.
    pub(super) fn has_complete(&self, from: ProcessId, life: u32) -> bool {
        self.streams.get(&from).is_some_and(|stream| stream.life == life && stream.is_complete())
    }

    /// All messages below `below` are gone: reports the missing ones, and delivers those behind them.
    pub(super) fn on_gone(
        &mut self,
        from: ProcessId,
        life: u32,
        below: u32,
        ctx: &mut Context<'_, Self>,
    ) {
        let Some(stream) = self.stream(from, life, below) else { return };
        let lost: Vec<u32> = stream.received.missing(below.saturating_sub(1)).collect();
        Self::skip(stream, from, &lost, true, ctx);
        self.note_highest(from, 0, ctx);
    }

    fn skip(
        stream: &mut Stream,
        from: ProcessId,
        lost: &[u32],
        tell: bool,
        ctx: &mut Context<'_, Self>,
    ) {
        for &number in lost {
            stream.received.insert(number);
            if tell {
                ctx.indicate(Indication::Gone(Unit { from, number }));
            }
        }
        Self::deliver(stream, from, ctx);
    }

    fn deliver(stream: &mut Stream, from: ProcessId, ctx: &mut Context<'_, Self>) {
        while let Some(entry) = stream.out_of_order.first_entry()
            && *entry.key() <= stream.received.upto()
        {
            ctx.indicate(Indication::Delivered(Unit { from, number: entry.remove() }));
        }
    }

    /// The stream goes at least up to `high`: notes the missing messages, and sets the timer to ask.
    fn note_highest(&mut self, from: ProcessId, high: u32, ctx: &mut Context<'_, Self>) {
        let Some(stream) = self.streams.get_mut(&from) else { return };
        let before = stream.high;
        stream.high = high.max(before);
        for number in stream.received.missing(stream.high).filter(|seq| *seq > before) {
            ctx.indicate(Indication::Note(Note::Missing(Unit { from, number })));
        }
        match (stream.is_complete(), stream.asking) {
            (true, true) => {
                stream.asking = false;
                stream.tries = 0;
                ctx.cancel_timer(Timer::Ask(from));
            }
            (false, false) => {
                stream.asking = true;
                // A message that was only overtaken arrives meanwhile; so may a repair for another member.
                let wait = if self.settings.exponential {
                    self.settings.unit * spread(ctx.group_size(), ctx.choose(1 << 10)) / 1024
                } else {
                    self.settings.unit
                };
                ctx.set_timer(Timer::Ask(from), wait);
            }
            (true, false) | (false, true) => {}
        }
    }

    /// Asks for all missing messages, or gives them up after the last try.
    pub(super) fn ask(&mut self, from: ProcessId, ctx: &mut Context<'_, Self>) {
        let (unit, most) = (self.settings.unit, self.settings.tries);
        let reports = self.reports_gone();
        let Some(stream) = self.streams.get_mut(&from) else { return };
        let missing: Vec<u32> = stream.received.missing(stream.high).collect();
        if stream.tries >= most {
            stream.asking = false;
            stream.tries = 0;
            return Self::skip(stream, from, &missing, reports, ctx);
        }
        stream.tries += 1;
        for &number in &missing {
            ctx.indicate(Indication::Note(Note::Asked(Unit { from, number })));
        }
        ctx.send(from, Message::Nack { life: stream.life, ranges: ranges(&missing) });
        let patience = (ROUND_TRIP + 1) << (stream.tries - 1).min(4);
        ctx.set_timer(Timer::Ask(from), unit * patience);
    }
}

/// Consecutive numbers as ranges.
fn ranges(numbers: &[u32]) -> Vec<(u32, u32)> {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for &x in numbers {
        match ranges.last_mut() {
            Some((_, high)) if *high + 1 == x => *high = x,
            _ => ranges.push((x, x)),
        }
    }
    ranges
}

/// The truncated exponential delay of RFC 5401 among `n` members, in 1/1024 T, from ten random bits.
/// Few members draw a short delay, and the repair for them spares the requests of the others.
pub(super) fn spread(n: usize, draw: u32) -> u32 {
    let most = f64::from(4 * ROUND_TRIP);
    let l = (n as f64).ln() + 1.0;
    let tail = l.exp() - 1.0;
    let x = f64::from(draw) / 1023.0 * (l / most) + l / (most * tail);
    let delay = most / l * (x * tail * (most / l)).ln();
    (delay.clamp(0.0, most) * 1024.0).round() as u32 + 1
}
