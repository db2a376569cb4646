//! The state of one node during an audit.

use serde_json::Value;

use super::{Wrong, wrong};
use crate::{EffectRecord, Header, InputRecord, Memory, Step};

/// The state that decides which steps a node can make next.
#[derive(Debug)]
pub(super) struct Node<'a> {
    pub(super) up: bool,
    /// The number of pauses that have not ended.
    asleep: u32,
    /// Whether it has started before.
    started: bool,
    /// Whether it ever crashed.
    fell: bool,
    /// It has restarted and has not made its first step.
    recovers: Option<Memory>,
    /// The record that it saved last.
    saved: Option<&'a Value>,
    /// The running timers, each with the time when it was set and its nanoseconds.
    timers: Vec<(&'a Value, u64, u64)>,
}

impl Default for Node<'_> {
    fn default() -> Self {
        Self {
            up: true,
            asleep: 0,
            started: false,
            fell: false,
            recovers: None,
            saved: None,
            timers: Vec::new(),
        }
    }
}

impl<'a> Node<'a> {
    pub(super) fn has_timers(&self) -> bool {
        !self.timers.is_empty()
    }

    /// Whether a detector has a reason to suspect it: it crashed, or never started.
    pub(super) fn is_notable(&self) -> bool {
        self.fell || !self.started
    }

    /// It makes a step.
    pub(super) fn input(&mut self, me: u32, step: &'a Step, header: &Header) -> Result<(), Wrong> {
        let input = || format!("a step of p{me}");
        if !self.up {
            return Err(wrong(
                format!("p{me} is down"),
                input(),
                "nothing of it until it restarts",
            ));
        }
        if self.asleep > 0 {
            return Err(wrong(format!("p{me} sleeps"), input(), "nothing of it until it wakes"));
        }
        match (&step.input, self.recovers.take()) {
            (InputRecord::Recover { saved }, Some(memory)) => {
                let kept = self.saved.filter(|_| memory != Memory::Nothing);
                if saved.as_ref() != kept {
                    let show = |v: Option<&Value>| v.map_or("nothing".into(), Value::to_string);
                    return Err(wrong(
                        "it comes up with what it saved",
                        show(saved.as_ref()),
                        show(kept),
                    ));
                }
            }
            (InputRecord::Recover { .. }, None) => {
                return Err(wrong(
                    "it recovers from nothing",
                    input(),
                    "a crash and a restart before",
                ));
            }
            (_, Some(_)) => {
                return Err(wrong(
                    format!("p{me} restarted"),
                    input(),
                    "that it recovers, first of all",
                ));
            }
            (InputRecord::Start, None) if self.started => {
                return Err(wrong(format!("p{me} starts twice"), input(), "one start"));
            }
            (InputRecord::Start, None) => {}
            (_, None) if !self.started => {
                return Err(wrong(format!("p{me} has not started"), input(), "its start first"));
            }
            (InputRecord::Timer(timer), None) => self.ring(me, timer, step.at, header)?,
            (_, None) => {}
        }
        self.started = true;
        Ok(())
    }

    /// A timer runs out.
    fn ring(&mut self, me: u32, timer: &Value, at: u64, header: &Header) -> Result<(), Wrong> {
        let Some(i) = self.timers.iter().position(|(name, ..)| *name == timer) else {
            let running: Vec<&Value> = self.timers.iter().map(|(name, ..)| *name).collect();
            let running = serde_json::to_string(&running).unwrap_or_default();
            return Err(wrong(
                format!("a timer of p{me} runs out that does not run"),
                timer,
                format!("one of {running}"),
            ));
        };
        let (_, since, after) = self.timers.swap_remove(i);
        // Ticks of real worlds are nanoseconds, and no clock is early.
        let real = !matches!(&*header.world, "sim" | "check");
        let due = since.saturating_add(after);
        if real && at < due && header.time == "T" {
            return Err(wrong(
                format!("a timer of p{me} runs out too early"),
                at,
                format!("{due} or later"),
            ));
        }
        Ok(())
    }

    /// It does something else than to send.
    pub(super) fn effect(&mut self, at: u64, effect: &'a EffectRecord) {
        match effect {
            EffectRecord::SetTimer { timer, after_ns } => {
                self.timers.retain(|(name, ..)| *name != timer);
                self.timers.push((timer, at, *after_ns));
            }
            EffectRecord::Cancel { timer } => self.timers.retain(|(name, ..)| *name != timer),
            EffectRecord::Save(record) => self.saved = Some(record),
            EffectRecord::Send { .. } | EffectRecord::Indicate(_) | EffectRecord::Unexpected(_) => {
            }
        }
    }

    pub(super) fn crash(&mut self, me: u32) -> Result<(), Wrong> {
        if !self.up {
            return Err(wrong(
                format!("p{me} is down already"),
                format!("a crash of p{me}"),
                "none",
            ));
        }
        (self.up, self.asleep, self.recovers) = (false, 0, None);
        self.fell = true;
        self.timers.clear();
        Ok(())
    }

    pub(super) fn restart(&mut self, me: u32, memory: Memory) -> Result<(), Wrong> {
        // A process that was down from the start has never started before.
        if self.up && self.started {
            return Err(wrong(
                format!("p{me} is up"),
                format!("a restart of p{me}"),
                "a crash before",
            ));
        }
        (self.up, self.recovers) = (true, Some(memory));
        if memory == Memory::Nothing {
            self.saved = None;
        }
        Ok(())
    }

    pub(super) fn pause(&mut self, me: u32, asleep: bool) -> Result<(), Wrong> {
        if !self.up || (!asleep && self.asleep == 0) {
            let before = if asleep { "it is up" } else { "it sleeps" };
            let said = format!("p{me} {}", if asleep { "falls asleep" } else { "wakes" });
            return Err(wrong("that cannot be", said, format!("so only while {before}")));
        }
        self.asleep = if asleep { self.asleep + 1 } else { self.asleep - 1 };
        Ok(())
    }
}
