//! The delays of messages.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use konklave_process::topology::Hops;
use konklave_process::{Group, ProcessId, Rng};

/// A model of delays, in units of T.
#[derive(Clone, PartialEq, Debug)]
pub enum Delay {
    /// Always this long.
    Constant(f64),
    /// Uniform between these bounds.
    Uniform(f64, f64),
    /// Exponential with this mean.
    Exponential(f64),
    /// Log-normal, with a long tail: the median, and the standard deviation of the logarithm.
    LogNormal(f64, f64),
    /// A constant for each link listed, and a default for all others.
    PerLink(BTreeMap<(ProcessId, ProcessId), f64>, f64),
    /// One T for each link of the topology on the shortest path.
    Hops(Arc<Hops>),
}

impl Default for Delay {
    fn default() -> Self {
        Self::Constant(1.0)
    }
}

/// The longest delay allowed: more would overflow the clock of a long run.
const LONGEST: f64 = 1e9;

impl Delay {
    /// A delay for a message, in units of T.
    #[inline]
    pub fn draw(&self, from: ProcessId, to: ProcessId, rng: &mut Rng) -> f64 {
        match self {
            Self::Constant(t) => *t,
            Self::Uniform(low, high) => low + (high - low) * rng.unit(),
            Self::Exponential(mean) => mean * rng.exponential(),
            Self::LogNormal(median, sigma) => (median * (sigma * rng.normal()).exp()).min(LONGEST),
            Self::PerLink(links, default) => *links.get(&(from, to)).unwrap_or(default),
            Self::Hops(hops) => f64::from(hops.between(from, to)),
        }
    }

    /// The longest possible delay, if there is a bound.
    pub fn longest(&self) -> Option<f64> {
        match self {
            Self::Constant(t) => Some(*t),
            Self::Uniform(_, high) => Some(*high),
            Self::Exponential(_) | Self::LogNormal(..) | Self::Hops(_) => None,
            Self::PerLink(links, default) => Some(links.values().copied().fold(*default, f64::max)),
        }
    }

    /// Whether the delay of each link is constant, so that channels keep their order by themselves.
    pub fn is_constant(&self) -> bool {
        matches!(self, Self::Constant(_) | Self::PerLink(..) | Self::Hops(_))
    }

    /// Parses delays of links between members of `group`: lines `from to delay` and `default delay`, each at
    /// most once. `file` names the source in errors.
    pub fn parse_links(text: &str, file: &str, group: &Group) -> Result<Self, String> {
        let (mut links, mut default) = (BTreeMap::new(), None);
        for (i, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default().trim();
            let words: Vec<&str> = line.split_whitespace().collect();
            let wrong = |why: String| Err(format!("{file}:{}: {why}", i + 1));
            let time = |word: &str| word.parse().ok().filter(|t| (0.0..=LONGEST).contains(t));
            let id = |word: &str| word.trim_start_matches('p').parse().ok().map(ProcessId);
            let twice = match words[..] {
                [] => None,
                ["default", t] if time(t).is_some() => default.replace((time(t), i)),
                [from, to, t] if id(from).and(id(to)).and(time(t)).is_some() => {
                    let (from, to) = (id(from).unwrap_or_default(), id(to).unwrap_or_default());
                    if let Some(stranger) = [from, to].into_iter().find(|p| !group.contains(*p)) {
                        return wrong(format!("{stranger} is not a member of the group"));
                    }
                    if from == to {
                        return wrong(format!("{from} has no link to itself"));
                    }
                    links.insert((from, to), (time(t), i))
                }
                _ => {
                    return wrong(format!("expected {LINES} (delays in T), found `{line}`"));
                }
            };
            if let Some((_, before)) = twice {
                return wrong(format!("`{line}` repeats line {}", before + 1));
            }
        }
        if links.is_empty() && default.is_none() {
            return Err(format!("{file}:1: expected lines {LINES} (delays in T), found none"));
        }
        let delay = |(t, _): (Option<f64>, usize)| t.unwrap_or(1.0);
        let links = links.into_iter().map(|(link, t)| (link, delay(t))).collect();
        Ok(Self::PerLink(links, default.map_or(1.0, delay)))
    }
}

/// The lines of a file of delays.
const LINES: &str = "`from to delay` or `default delay`";

impl fmt::Display for Delay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constant(t) => write!(f, "constant:{t}"),
            Self::Uniform(low, high) => write!(f, "uniform:{low}..{high}"),
            Self::Exponential(mean) => write!(f, "exponential:{mean}"),
            Self::LogNormal(median, sigma) => write!(f, "log-normal:{median},{sigma}"),
            Self::PerLink(links, default) => {
                write!(f, "links:{} (default {default})", links.len())
            }
            Self::Hops(_) => f.write_str("hops"),
        }
    }
}

/// The forms of `--delay`, for help texts and errors.
pub const FORMS: &str = "constant[:T], uniform[:LOW..HIGH], exponential[:MEAN], log-normal[:MEDIAN,SIGMA] (in T), hops (one T for each link of the topology on the way), or a file of links (lines `from to delay` and `default delay`)";

impl FromStr for Delay {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| format!("`{text}` is not a delay: {why}; delays are {FORMS}");
        let (kind, args) = text.split_once(':').map_or((text, None), |(k, a)| (k, Some(a)));
        let number = |word: &str| {
            let t: f64 = word
                .trim()
                .trim_end_matches('T')
                .parse()
                .map_err(|_| wrong(&format!("`{word}` is not a number")))?;
            if (0.0..=LONGEST).contains(&t) {
                Ok(t)
            } else {
                Err(wrong(&format!("{word} is not between 0 and {LONGEST}")))
            }
        };
        match kind {
            "constant" | "fixed" => Ok(Self::Constant(number(args.unwrap_or("1"))?)),
            "uniform" => {
                let args = args.unwrap_or("0.001..2");
                let Some((low, high)) = args.split_once("..").or_else(|| args.split_once(','))
                else {
                    return Err(wrong("it needs LOW..HIGH"));
                };
                let (low, high) = (number(low)?, number(high)?);
                if low > high {
                    return Err(wrong(&format!("{low} is more than {high}")));
                }
                Ok(Self::Uniform(low, high))
            }
            "exponential" | "exp" => Ok(Self::Exponential(number(args.unwrap_or("1"))?)),
            "log-normal" | "lognormal" => {
                let args = args.unwrap_or("1,0.5");
                let Some((median, sigma)) = args.split_once(',') else {
                    return Err(wrong("it needs MEDIAN,SIGMA"));
                };
                Ok(Self::LogNormal(number(median)?, number(sigma)?))
            }
            _ => match kind.parse::<f64>() {
                Ok(_) if args.is_none() => Ok(Self::Constant(number(kind)?)),
                _ => Err(wrong(&format!("`{kind}` is unknown"))),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_are_parsed_as_they_are_written() {
        for text in ["constant:1", "uniform:0.5..1.5", "exponential:1", "log-normal:1,0.5"] {
            assert_eq!(text.parse::<Delay>().unwrap().to_string(), text);
        }
        assert_eq!("2.5".parse(), Ok(Delay::Constant(2.5)));
    }

    #[test]
    fn errors_name_the_valid_delays() {
        for text in ["warp", "uniform:3..1", "constant:-1", "constant:x", "uniform:7", "exp:nan"] {
            let error = text.parse::<Delay>().unwrap_err();
            assert!(error.contains("constant[:T]") && error.contains(text), "{error}");
        }
    }

    #[test]
    fn links_have_their_own_delays() {
        let read = |text: &str| Delay::parse_links(text, "net", &Group::of(3));
        let delay = read("# two hosts\n0 1 2.5\ndefault 3\n").unwrap();
        let mut rng = Rng::new(1);
        assert_eq!(delay.draw(ProcessId(0), ProcessId(1), &mut rng), 2.5);
        assert_eq!(delay.draw(ProcessId(1), ProcessId(0), &mut rng), 3.0);
        assert_eq!(delay.longest(), Some(3.0));
        for (text, found) in [
            ("0 1\n", "net:1: expected"),
            ("# nothing\n\n", "net:1: expected lines"),
            ("0 1 2\n0 9 2\n", "net:2: p9 is not a member"),
            ("0 1 2\n1 0 2\n0 1 2\n", "net:3: `0 1 2` repeats line 1"),
            ("default 1\ndefault 2\n", "net:2: `default 2` repeats line 1"),
            ("1 1 2\n", "net:1: p1 has no link to itself"),
            ("0 1 -2\n", "net:1: expected"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.starts_with(found), "{error}");
        }
    }

    #[test]
    fn drawn_delays_have_the_mean_of_their_distribution() {
        let mut rng = Rng::new(5);
        for (text, mean) in [("uniform:0..2", 1.0), ("exp:1", 1.0), ("log-normal:1,0.5", 1.133)] {
            let delay: Delay = text.parse().unwrap();
            let p = ProcessId(0);
            let sum: f64 = (0..100_000).map(|_| delay.draw(p, p, &mut rng)).sum();
            assert!((sum / 1e5 - mean).abs() < 0.02, "{text}: {}", sum / 1e5);
        }
    }
}
