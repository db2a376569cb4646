//! Faults, as data and as text.

use std::fmt;
use std::str::FromStr;

use konklave_process::{MAX_ID, ProcessId};

/// A fault and its time.
#[derive(Clone, PartialEq, Debug)]
pub struct Fault {
    /// The kind of fault.
    pub what: What,
    /// When it begins.
    pub when: When,
    /// When it ends, in T, for faults that last.
    pub until: Option<f64>,
}

/// When a fault begins.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum When {
    /// At this time, in T.
    Time(f64),
    /// Right after this many steps of the run.
    Step(u64),
}

/// The kinds of faults.
#[derive(Clone, PartialEq, Debug)]
pub enum What {
    /// A process crashes.
    Crash(ProcessId),
    /// A crashed process restarts; [`Memory`] says what it remembers.
    Restart(ProcessId, Memory),
    /// A process does nothing for a while; messages and timers wait.
    Pause(ProcessId),
    /// A channel loses all messages, from the first process to the second.
    Cut(ProcessId, ProcessId),
    /// A link breaks: messages in both directions are lost, and the detector makes each end suspect the
    /// other.
    Break(ProcessId, ProcessId),
    /// Messages between the sides are lost. Processes on no listed side form one more side.
    Partition(Vec<Vec<ProcessId>>),
    /// One message is lost, duplicated or delayed.
    Message(Selector, Mishap),
    /// The timers of a process run at this rate: 2 is twice as fast.
    Rate(ProcessId, f64),
    /// The failure detector of the first process wrongly suspects the second.
    Suspect(ProcessId, ProcessId),
}

/// What a restarted process remembers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Memory {
    /// Only the record it saved.
    Saved,
    /// Nothing.
    Nothing,
    /// Everything, as after a pause; but messages in between are lost.
    Everything,
}

/// Selects a message: the `nth` of all that match.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Selector {
    /// The sender; none: any.
    pub from: Option<ProcessId>,
    /// The receiver; none: any.
    pub to: Option<ProcessId>,
    /// The kind of message; none: any.
    pub kind: Option<String>,
    /// Counted from 1.
    pub nth: u64,
}

/// What happens to a message.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Mishap {
    /// The message is lost.
    Lose,
    /// The message arrives twice.
    Duplicate,
    /// The message takes this much longer, in T.
    Delay(f64),
}

/// The forms of `--fault`, for help texts and errors.
pub const FORMS: &str = "\
crash:NODE@TIME            a node crashes (TIME in T, or #K: after the K-th step)
restart:NODE@TIME[:MEMORY] it restarts and remembers what it `saved` (default), `nothing` or `everything`
pause:NODE@FROM-TO         a node does nothing for a while
cut:NODE>NODE@FROM[-TO]    messages from the first node to the second are lost
break:NODE-NODE@FROM[-TO]  a link breaks: messages both ways are lost, and its ends suspect each other
partition:A,B|C@FROM[-TO]  messages between the sides are lost
lose:[A>B][/KIND][#N]      the N-th message (from A to B, of this kind) is lost
duplicate:…                … arrives twice
delay:…+T                  … takes T longer
suspect:A>B@TIME           A's detector wrongly suspects B
rate:NODE*FACTOR           a node's timers run faster or slower";

impl FromStr for Fault {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        parse(text).map_err(|why| format!("`{text}` is not a fault: {why}; faults are\n{FORMS}"))
    }
}

fn parse(text: &str) -> Result<Fault, String> {
    let (kind, rest) = text.split_once(':').ok_or("it needs a kind and a colon")?;
    let lasting = |what: What, span: &str| -> Result<Fault, String> {
        let (from, to) = span.split_once('-').map_or((span, None), |(f, t)| (f, Some(t)));
        let until = to.map(time).transpose()?;
        let start = time(from)?;
        if until.is_some_and(|until| until <= start) {
            return Err(format!(
                "it ends at {}, which is not after its start",
                until.unwrap_or(0.0)
            ));
        }
        Ok(Fault { what, when: When::Time(start), until })
    };
    let at = || rest.rsplit_once('@').ok_or("it needs @TIME");
    match kind {
        "crash" => {
            let (who, when) = at()?;
            Ok(Fault { what: What::Crash(node(who)?), when: moment(when)?, until: None })
        }
        "restart" => {
            let (who, when) = at()?;
            let (when, memory) = when.split_once(':').map_or((when, "saved"), |(w, m)| (w, m));
            let memory = match memory {
                "saved" => Memory::Saved,
                "nothing" => Memory::Nothing,
                "everything" => Memory::Everything,
                other => {
                    return Err(format!("memory `{other}` is not saved, nothing or everything"));
                }
            };
            let what = What::Restart(node(who)?, memory);
            Ok(Fault { what, when: moment(when)?, until: None })
        }
        "pause" => {
            let (who, span) = at()?;
            let fault = lasting(What::Pause(node(who)?), span)?;
            fault.until.is_some().then_some(fault).ok_or("a pause needs an end".into())
        }
        "cut" => {
            let (link, span) = at()?;
            let (from, to) = link.split_once('>').ok_or("a cut needs FROM>TO")?;
            lasting(What::Cut(node(from)?, node(to)?), span)
        }
        "break" => {
            let (link, span) = at()?;
            let (one, other) = link.split_once('-').ok_or("a break needs NODE-NODE")?;
            lasting(What::Break(node(one)?, node(other)?), span)
        }
        "partition" => {
            let (sides, span) = at()?;
            let sides = sides
                .split('|')
                .map(|side| side.split(',').map(node).collect())
                .collect::<Result<Vec<Vec<_>>, String>>()?;
            lasting(What::Partition(sides), span)
        }
        "suspect" => {
            let (link, when) = at()?;
            let (who, whom) = link.split_once('>').ok_or("a suspicion needs WHO>WHOM")?;
            let what = What::Suspect(node(who)?, node(whom)?);
            Ok(Fault { what, when: moment(when)?, until: None })
        }
        "rate" => {
            let (who, factor) = rest.split_once('*').ok_or("a rate needs NODE*FACTOR")?;
            let rate: f64 = factor.parse().map_err(|_| format!("`{factor}` is not a number"))?;
            if !(0.001..=1000.0).contains(&rate) {
                return Err(format!("rate {rate} is not between 0.001 and 1000"));
            }
            let what = What::Rate(node(who)?, rate);
            Ok(Fault { what, when: When::Time(0.0), until: None })
        }
        "lose" => Ok(message(selector(rest)?, Mishap::Lose)),
        "duplicate" => Ok(message(selector(rest)?, Mishap::Duplicate)),
        "delay" => {
            let (which, more) = rest.rsplit_once('+').ok_or("a delay needs +T")?;
            Ok(message(selector(which)?, Mishap::Delay(time(more)?)))
        }
        other => Err(format!("`{other}` is unknown")),
    }
}

fn message(selector: Selector, mishap: Mishap) -> Fault {
    Fault { what: What::Message(selector, mishap), when: When::Time(0.0), until: None }
}

fn node(text: &str) -> Result<ProcessId, String> {
    let digits = text.trim().trim_start_matches('p');
    let id = digits.parse().ok().filter(|id| *id <= MAX_ID).map(ProcessId);
    id.ok_or_else(|| format!("`{text}` is not a node: ids go from 0 to {MAX_ID}"))
}

fn time(text: &str) -> Result<f64, String> {
    let t = text.trim().trim_end_matches('T').parse::<f64>().ok();
    t.filter(|t| (0.0..1e12).contains(t)).ok_or_else(|| format!("`{text}` is not a time in T"))
}

fn moment(text: &str) -> Result<When, String> {
    match text.strip_prefix('#') {
        Some(step) => {
            step.parse().map(When::Step).map_err(|_| format!("`{step}` is not a number of steps"))
        }
        None => time(text).map(When::Time),
    }
}

fn selector(text: &str) -> Result<Selector, String> {
    let (rest, nth) = match text.rsplit_once('#') {
        Some((rest, n)) => (
            rest,
            n.parse()
                .ok()
                .filter(|n| *n > 0)
                .ok_or_else(|| format!("`#{n}` is not a count from 1 on"))?,
        ),
        None => (text, 1),
    };
    let (link, kind) = rest.split_once('/').map_or((rest, None), |(l, k)| (l, Some(k.to_owned())));
    let (from, to) = match link.split_once('>') {
        Some((from, to)) => {
            let end = |text: &str| (!text.is_empty()).then(|| node(text)).transpose();
            (end(from)?, end(to)?)
        }
        None if link.is_empty() => (None, None),
        None => return Err(format!("`{link}` is not a link A>B")),
    };
    Ok(Selector { from, to, kind, nth })
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = match self.when {
            When::Time(t) => format!("{t}"),
            When::Step(k) => format!("#{k}"),
        };
        let span = self.until.map_or(at.clone(), |until| format!("{at}-{until}"));
        match &self.what {
            What::Crash(p) => write!(f, "crash:{}@{at}", p.0),
            What::Restart(p, Memory::Saved) => write!(f, "restart:{}@{at}", p.0),
            What::Restart(p, Memory::Nothing) => write!(f, "restart:{}@{at}:nothing", p.0),
            What::Restart(p, Memory::Everything) => write!(f, "restart:{}@{at}:everything", p.0),
            What::Pause(p) => write!(f, "pause:{}@{span}", p.0),
            What::Cut(a, b) => write!(f, "cut:{}>{}@{span}", a.0, b.0),
            What::Break(a, b) => write!(f, "break:{}-{}@{span}", a.0, b.0),
            What::Partition(sides) => {
                let side = |s: &Vec<ProcessId>| {
                    s.iter().map(|p| p.0.to_string()).collect::<Vec<_>>().join(",")
                };
                let sides: Vec<String> = sides.iter().map(side).collect();
                write!(f, "partition:{}@{span}", sides.join("|"))
            }
            What::Suspect(a, b) => write!(f, "suspect:{}>{}@{at}", a.0, b.0),
            What::Rate(p, rate) => write!(f, "rate:{}*{rate}", p.0),
            What::Message(selector, mishap) => {
                let (kind, more) = match mishap {
                    Mishap::Lose => ("lose", String::new()),
                    Mishap::Duplicate => ("duplicate", String::new()),
                    Mishap::Delay(t) => ("delay", format!("+{t}")),
                };
                let end = |p: Option<ProcessId>| p.map_or(String::new(), |p| p.0.to_string());
                let link = if selector.from.is_some() || selector.to.is_some() {
                    format!("{}>{}", end(selector.from), end(selector.to))
                } else {
                    String::new()
                };
                let which = selector.kind.as_ref().map_or(String::new(), |k| format!("/{k}"));
                write!(f, "{kind}:{link}{which}#{}{more}", selector.nth)
            }
        }
    }
}

impl Fault {
    /// Every process it names.
    pub fn nodes(&self) -> Vec<ProcessId> {
        match &self.what {
            What::Crash(p) | What::Restart(p, _) | What::Pause(p) | What::Rate(p, _) => vec![*p],
            What::Cut(a, b) | What::Break(a, b) | What::Suspect(a, b) => vec![*a, *b],
            What::Partition(sides) => sides.concat(),
            What::Message(selector, _) => selector.from.into_iter().chain(selector.to).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_parsed_as_they_are_written() {
        for text in [
            "crash:2@3",
            "crash:2@#17",
            "restart:2@8.5",
            "restart:2@8:nothing",
            "restart:2@8:everything",
            "pause:1@2-4",
            "cut:0>1@2",
            "cut:0>1@2-9",
            "break:0-1@2",
            "break:0-1@2-9",
            "partition:0,1|2@3-9",
            "suspect:0>2@1",
            "rate:3*0.5",
            "lose:#1",
            "lose:0>1/Token#2",
            "duplicate:>1#1",
            "delay:/Reply#3+2.5",
        ] {
            assert_eq!(text.parse::<Fault>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn errors_name_the_valid_faults() {
        for text in [
            "crash",
            "crash:2",
            "crash:x@1",
            "crash:1@soon",
            "pause:1@3",
            "pause:1@3-2",
            "boil:1@2",
            "lose:0-1",
            "lose:#0",
            "delay:#1",
            "rate:1*0",
            "restart:1@2:dreams",
            "cut:1@2",
            "break:1@2",
            "break:1>2@2",
        ] {
            let error = text.parse::<Fault>().unwrap_err();
            assert!(error.contains(text) && error.contains("crash:NODE@TIME"), "{error}");
        }
    }
}
