//! Tests symmetry against an independent count: all states of the plain rules are printed, and the *text* is
//! renamed. The search must count as many states as there are texts that differ under renaming.

use std::collections::{BTreeSet, HashSet};
use std::fmt::Debug;

use konklave_algorithms::election::itai_rodeh::ItaiRodeh;
use konklave_algorithms::mutex::{
    central::Central, naimi_trehel::NaimiTrehel, raymond::Raymond, ricart_agrawala::RicartAgrawala,
    suzuki_kasami::SuzukiKasami, token_ring::TokenRing,
};
use konklave_algorithms::{Algorithm, Setup};
use konklave_process::{Group, Portable, Topology};

use crate::draws::Draws;
use crate::state::{Content, State};
use crate::stateright_oracle::{everyone, model};
use crate::{Model, Options, Outcome, Report};

/// Renames `p0`, `p1`, … in a text and sorts what is in braces, since sets and maps have no order.
fn renamed(text: &str, to: &[u32]) -> String {
    let mut chars = text.chars().peekable();
    let (mut out, mut before) = (String::new(), ' ');
    while let Some(c) = chars.next() {
        let begins = c == 'p' && !before.is_alphanumeric() && before != '_';
        before = c;
        out.push(c);
        if !begins || !chars.peek().is_some_and(char::is_ascii_digit) {
            continue;
        }
        let mut number = String::new();
        while let Some(digit) = chars.next_if(char::is_ascii_digit) {
            number.push(digit);
        }
        out.push_str(&to[number.parse::<usize>().unwrap()].to_string());
        before = '0';
    }
    ordered(&mut out.chars())
}

/// Reads up to the closing bracket and sorts what is in braces.
fn ordered(chars: &mut impl Iterator<Item = char>) -> String {
    let (mut parts, mut part) = (Vec::new(), String::new());
    while let Some(c) = chars.next() {
        match c {
            '{' | '[' | '(' => {
                let inner = ordered(chars);
                let mut inner: Vec<&str> = inner.split('\u{1}').map(str::trim).collect();
                if c == '{' {
                    inner.sort_unstable();
                }
                part.push(c);
                part.push_str(&inner.join(";"));
                part.push('}');
            }
            '}' | ']' | ')' => break,
            ',' => parts.push(std::mem::take(&mut part)),
            other => part.push(other),
        }
    }
    parts.push(part);
    parts.join("\u{1}")
}

fn text(value: &impl Debug, to: &[u32]) -> String {
    // `Few` is a small set that the judges of locks keep as a sorted list.
    renamed(&format!("{value:?}").replace("Few([", "Few({"), to)
}

/// A whole state as text, with places renamed.
fn state_text(state: &State, fifo: bool, to: &[u32]) -> String {
    let n = to.len();
    let place = |p: u32| to[p as usize];
    let mut processes: Vec<_> =
        (0u32..).zip(&state.processes).map(|(p, process)| (place(p), text(process, to))).collect();
    processes.sort_unstable();
    let mut flight: Vec<_> = state
        .flight
        .iter()
        .map(|f| {
            let content = match &f.content {
                Content::Message(message) => text(message, to),
                Content::Stamp(stamp) => format!("stamp {stamp}"),
            };
            ((place(f.channel.0), place(f.channel.1)), content, text(&f.tag, to))
        })
        .collect();
    if fifo {
        flight.sort_by_key(|(channel, ..)| *channel);
    } else {
        flight.sort_unstable();
    }
    let mut timers: Vec<_> =
        state.timers.iter().map(|(p, timer, left)| (place(*p), text(timer, to), *left)).collect();
    timers.sort_unstable();
    let mut saved: Vec<_> =
        (0u32..).zip(&state.saved).map(|(p, saved)| (place(p), text(saved, to))).collect();
    saved.sort_unstable();
    let mut news: Vec<_> =
        state.news.iter().map(|(p, peer, up)| (place(*p), place(peer.0), *up)).collect();
    news.sort_by_key(|(to, about, _)| (*to, *about));
    let down = (0..n).filter(|p| state.down >> p & 1 == 1).map(|p| to[p]).collect::<BTreeSet<_>>();
    let cut = (0..n * n)
        .filter(|c| state.cut != 0 && state.cut >> c & 1 == 1)
        .map(|c| (to[c / n], to[c % n]));
    let cut = cut.collect::<BTreeSet<_>>();
    let broken = (0..n * n)
        .filter(|c| state.broken != 0 && state.broken >> c & 1 == 1)
        .map(|c| (to[c / n], to[c % n]));
    let broken = broken.collect::<BTreeSet<_>>();
    let rest = (state.spent, state.sent, down, cut, broken, timers, saved, news);
    format!(
        "{processes:?} {flight:?} {} {} {rest:?}",
        text(&state.ledger.application, to),
        text(state.ledger.monitor(), to)
    )
}

/// All states by the plain rules, up to the depth of the search.
fn all(model: &Model) -> Vec<State> {
    let (mut known, mut found) = (HashSet::new(), Vec::new());
    let mut draws = Draws::default();
    loop {
        let (state, _) = model.initial(&mut draws, &mut None);
        if known.insert(state.fingerprint(model.options.fifo)) {
            found.push(state);
        }
        if !draws.advance() {
            break;
        }
    }
    let (mut at, mut depth, mut actions) = (0, 0, Vec::new());
    let mut level = found.len();
    while at < found.len() {
        if at == level {
            (depth, level) = (depth + 1, found.len());
        }
        if depth == model.options.max_depth {
            break;
        }
        model.actions(&found[at], &mut actions);
        for &action in &actions {
            let mut draws = Draws::default();
            loop {
                let mut next = found[at].clone();
                let _ = model.apply(&mut next, action, &mut draws, &mut None);
                if known.insert(next.fingerprint(model.options.fifo)) {
                    found.push(next);
                }
                if !draws.advance() {
                    break;
                }
            }
        }
        at += 1;
    }
    found
}

fn setup(topology: Topology) -> Setup {
    Setup::new(Group::of(topology.len()), topology)
}

fn explore<P: Algorithm + Portable>(
    setup: &Setup,
    requests: &[u32],
    options: &Options,
    symmetry: bool,
    threads: usize,
) -> Report {
    let options = Options { symmetry, threads, ..options.clone() };
    model::<P>(setup, &everyone(setup, requests), options).explore(|_| true)
}

/// All permutations that move only these places.
fn moving(n: u32, places: &[u32]) -> Vec<Vec<u32>> {
    let Some((last, rest)) = places.split_last() else { return vec![(0..n).collect()] };
    let mut found = Vec::new();
    for permutation in moving(n, rest) {
        for place in places {
            let mut other = permutation.clone();
            other.swap(*place as usize, *last as usize);
            found.push(other);
        }
    }
    found
}

fn turning(n: u32) -> Vec<Vec<u32>> {
    (0..n).map(|turn| (0..n).map(|place| (place + turn) % n).collect()).collect()
}

/// Compares the search with the states by the plain rules, renamed by these permutations.
fn compare<P: Algorithm + Portable>(
    setup: &Setup,
    requests: &[u32],
    options: &Options,
    group: &[Vec<u32>],
) {
    let all = all(&model::<P>(setup, &everyone(setup, requests), options.clone()));
    let least = |state| group.iter().map(|to| state_text(state, options.fifo, to)).min();
    let kinds: HashSet<_> = all.iter().map(least).collect();
    let full = explore::<P>(setup, requests, options, false, 1);
    let few = explore::<P>(setup, requests, options, true, 1);
    let name = format!("{} {requests:?} {options:?}", P::SHEET.name);
    let found = few.symmetry.as_ref().expect("it was asked for");
    assert_eq!(found.permutations, group.len(), "{name}: {found:?}");
    assert_eq!(full.states, all.len() as u64, "{name}");
    assert_eq!(few.states, kinds.len() as u64, "{name}: one of each kind");
    assert!(group.len() == 1 || few.states < full.states, "{name}");
    assert_eq!(few.depth, full.depth, "{name}");
    let verdict = |report: &Report| std::mem::discriminant(&report.outcome);
    assert_eq!(verdict(&few), verdict(&full), "{name}: the same verdict");
    // With reduction besides: no more states, as many kinds of ends, the same verdict.
    let reduced =
        explore::<P>(setup, requests, &Options { reduce: true, ..options.clone() }, true, 1);
    assert_eq!(verdict(&reduced), verdict(&few), "{name}: reduced");
    if !matches!(few.outcome, Outcome::Violated(_)) && options.max_depth == u32::MAX {
        assert_eq!(reduced.ends, few.ends, "{name}: reduced");
    }
    assert!(reduced.states <= few.states, "{name}: reduced");
    let both = explore::<P>(setup, requests, options, true, 2);
    let counts = |report: &Report| (report.states, report.transitions, report.ends);
    assert_eq!(counts(&both), counts(&few), "{name}: on two threads");
}

#[test]
fn search_visits_one_state_of_each_orbit() {
    for fifo in [true, false] {
        let options = Options { fifo, ..Options::default() };
        let four = setup(Topology::complete(4));
        let star = setup(Topology::star(4));
        let but_the_first = moving(4, &[1, 2, 3]);
        compare::<Central>(&four, &[1; 4], &options, &but_the_first);
        compare::<Central>(&four, &[1, 1, 1, 2], &options, &moving(4, &[1, 2]));
        compare::<NaimiTrehel>(&four, &[1; 4], &options, &but_the_first);
        compare::<Raymond>(&star, &[1; 4], &options, &but_the_first);
        // Processes that compare ids, or stand in a line, are not interchangeable.
        let three = setup(Topology::complete(3));
        compare::<RicartAgrawala>(&three, &[1; 3], &options, &moving(3, &[]));
        compare::<SuzukiKasami>(&three, &[1; 3], &options, &moving(3, &[]));
        let ring = setup(Topology::directed_ring(3));
        compare::<TokenRing>(&ring, &[1; 3], &options, &moving(3, &[]));
        // Anonymous processes on a ring can be rotated. They may draw forever, so the depth is limited.
        let some = Options { max_depth: 9, ..options };
        compare::<ItaiRodeh>(&ring, &[], &some, &turning(3));
    }
}

#[test]
fn search_visits_one_state_of_each_orbit_under_every_fault() {
    let unjudged = vec!["nothing".to_owned()];
    let plain = Options { properties: unjudged, ..Options::default() };
    let three = setup(Topology::complete(3));
    let last_two = moving(3, &[1, 2]);
    for options in [
        Options { crashes: 1, restarts: 1, ..plain.clone() },
        Options { crashes: 1, detector: false, fifo: false, ..plain.clone() },
        Options { losses: 1, duplicates: 1, ..plain.clone() },
        Options { losses: 1, duplicates: 1, fifo: false, ..plain.clone() },
        Options { cuts: 1, ..plain.clone() },
        Options { breaks: 1, ..plain.clone() },
        Options { breaks: 1, crashes: 1, restarts: 1, ..plain.clone() },
        Options { app_messages: 1, count_messages: true, ..plain.clone() },
    ] {
        compare::<NaimiTrehel>(&three, &[1; 3], &options, &last_two);
        compare::<Central>(&three, &[1; 3], &options, &last_two);
    }
}

#[test]
fn witnesses_with_symmetry_are_as_short() {
    fn go<P: Algorithm + Portable>(topology: Topology, requests: &[u32]) -> usize {
        let mut found = 0;
        for mistake in P::SHEET.mistakes {
            let setup = Setup { mistake: Some(mistake.name), ..setup(topology.clone()) };
            for losses in [0, 1] {
                let options = Options { losses, ..Options::default() };
                let full = explore::<P>(&setup, requests, &options, false, 1);
                let few = explore::<P>(&setup, requests, &options, true, 1);
                let reduce = Options { reduce: true, ..options.clone() };
                let reduced = explore::<P>(&setup, requests, &reduce, true, 1);
                let kind = |report: &Report| std::mem::discriminant(&report.outcome);
                assert_eq!(kind(&reduced), kind(&few), "{}: reduced", mistake.name);
                match (&full.outcome, &few.outcome) {
                    (Outcome::Violated(one), Outcome::Violated(other)) => {
                        assert_eq!(one.len(), other.len(), "{}", mistake.name);
                        assert_eq!(one.violation.property, other.violation.property);
                        found += 1;
                    }
                    (Outcome::Exhausted, Outcome::Exhausted) => {}
                    other => panic!("{}: {other:?}", mistake.name),
                }
            }
        }
        found
    }
    let found = [
        go::<Central>(Topology::complete(3), &[1; 3]),
        go::<NaimiTrehel>(Topology::complete(3), &[1; 3]),
        go::<Raymond>(Topology::star(3), &[1; 3]),
    ];
    assert!(found.iter().sum::<usize>() > 3, "{found:?}");
}

#[test]
fn violation_names_the_process_of_the_run_that_is_shown() {
    // The client whose grant is lost waits forever; the violation must name this client.
    let four = setup(Topology::complete(4));
    let options = Options { losses: 1, ..Options::default() };
    let few = explore::<Central>(&four, &[0, 1, 1, 1], &options, true, 1);
    let Outcome::Violated(witness) = few.outcome else { panic!("a lost message blocks") };
    let asked = witness.moments.iter().find_map(|moment| match moment {
        crate::Moment::Step { at, input: konklave_process::Input::Request(_), .. } => Some(*at),
        _ => None,
    });
    let asked = asked.expect("someone asked");
    assert!(witness.violation.detail.contains(&asked.to_string()), "{:?}", witness.violation);
}

#[test]
fn report_says_why_processes_are_not_interchangeable() {
    let three = setup(Topology::complete(3));
    let found = explore::<RicartAgrawala>(&three, &[1; 3], &Options::default(), true, 1);
    let found = found.symmetry.expect("it was asked for");
    assert_eq!((found.permutations, found.classes.len()), (1, 0));
    assert!(found.refuted.is_some_and(|why| why.contains(": they do not")));
    // A single process has no permutations.
    let one = setup(Topology::complete(1));
    let found = explore::<RicartAgrawala>(&one, &[1], &Options::default(), true, 1);
    let found = found.symmetry.expect("it was asked for");
    assert_eq!((found.permutations, found.refuted), (1, None));
    // Symmetry was not asked for.
    let found = explore::<RicartAgrawala>(&one, &[1], &Options::default(), false, 1);
    assert_eq!(found.symmetry, None);
}
