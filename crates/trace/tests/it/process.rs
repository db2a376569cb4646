//! A process that uses every input and effect there is.

use std::time::Duration;

use konklave_process::{
    AnyData, AnyProcess, Context, Effect, Group, Host, Input, Inspect, Process, ProcessId,
    Recordable,
};
use konklave_trace::{
    Entry, Footer, Header, IncidentKind, InputRecord, Memory, Recorder, Run, replay, text,
};
use serde::{Deserialize, Serialize};

/// Rolls dice, counts, and remembers the count.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
struct Dice {
    count: u32,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
enum Say {
    Rolled(u32),
    Hello,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
struct Nap;

impl Process for Dice {
    type Message = Say;
    type Timer = Nap;
    type Request = ();
    type Indication = (u32, String);
    type Record = ();
    fn on_start(&mut self, ctx: &mut Context<'_, Self>) {
        ctx.set_timer(Nap, Duration::from_millis(3));
    }
    fn on_request(&mut self, (): (), ctx: &mut Context<'_, Self>) {
        self.count = ctx.choose(6) + ctx.choose(6);
        ctx.save(());
        ctx.send_to_others(Say::Rolled(self.count));
        ctx.indicate((self.count, "so much & \"more\"".into()));
    }
    fn on_message(&mut self, _from: ProcessId, message: Say, ctx: &mut Context<'_, Self>) {
        match message {
            Say::Rolled(count) => self.count += count,
            Say::Hello => ctx.unexpected("a greeting"),
        }
    }
    fn on_timer(&mut self, timer: Nap, ctx: &mut Context<'_, Self>) {
        ctx.cancel_timer(timer);
    }
    fn on_recover(&mut self, saved: Option<()>, _ctx: &mut Context<'_, Self>) {
        self.count = if saved.is_some() { 100 } else { 0 };
    }
    fn on_suspect(&mut self, peer: ProcessId, _ctx: &mut Context<'_, Self>) {
        self.count = peer.0;
    }
}

impl Inspect for Dice {
    fn stamp(&self) -> u64 {
        12
    }
}

struct Watched<'a> {
    recorder: &'a mut Recorder<Run>,
    draws: Vec<u32>,
    ids: Vec<u64>,
}

impl<P: Recordable> Host<P> for Watched<'_> {
    fn perform(&mut self, effect: Effect<P>) {
        let id = self.recorder.effect(effect.view());
        self.ids.extend((id > 0).then_some(id));
    }
    fn choose(&mut self, _bound: u32) -> u32 {
        let drawn = self.draws.pop().unwrap_or(0);
        self.recorder.draw(drawn);
        drawn
    }
}

fn all_inputs() -> Run {
    let group = Group::of(2);
    let mut recorder = Recorder::new(Header::new("test/dice", vec![0, 1]));
    let mut dice = [Dice { count: 0 }, Dice { count: 0 }];
    let (p0, p1) = (ProcessId(0), ProcessId(1));
    let mut step = |recorder: &mut Recorder<Run>, at, p: ProcessId, input: Input<Dice>, id| {
        recorder.begin(at, p, input.view(), id);
        let process = &mut dice[p.0 as usize];
        let mut host = Watched { recorder, draws: vec![4, 5], ids: Vec::new() };
        process.handle(input, &mut Context::new(p, &group, &mut host));
        let ids = host.ids;
        recorder.end(process);
        ids
    };
    step(&mut recorder, 0, p0, Input::Start, 0);
    step(&mut recorder, 0, p1, Input::Start, 0);
    let ids = step(&mut recorder, 500, p0, Input::Request(()), 0);
    assert_eq!(ids, [1]);
    recorder.duplicated(500, ids[0]);
    let rolled = || Input::Message { from: p0, message: Say::Rolled(9) };
    step(&mut recorder, 1500, p1, rolled(), ids[0]);
    step(&mut recorder, 1600, p1, rolled(), ids[0]);
    step(&mut recorder, 2000, p1, Input::Message { from: p0, message: Say::Hello }, 0);
    step(&mut recorder, 3000, p0, Input::Timer(Nap), 0);
    recorder.incident(4000, IncidentKind::Crash(0));
    recorder.incident(5000, IncidentKind::Restart { node: 0, memory: Memory::Saved });
    step(&mut recorder, 5000, p0, Input::Recover(Some(())), 0);
    step(&mut recorder, 6000, p1, Input::Suspect(p0), 0);
    step(&mut recorder, 7000, p1, Input::Trust(p0), 0);
    let id = recorder.app_message(8000, p0, p1);
    step(&mut recorder, 9000, p1, Input::Stamp { from: p0, stamp: 12 }, id);
    recorder.finish(Some(Footer { verdict: "ok".into(), summary: serde_json::Value::Null }))
}

#[test]
fn every_input_and_effect_is_written_read_and_replayed() {
    let run = all_inputs();
    let read = Run::read("dice.run", run.to_text().as_bytes()).unwrap();
    assert_eq!(read, run);
    let fresh = || vec![AnyProcess::new(Dice { count: 0 }); 2];
    assert_eq!(replay(&read, fresh(), &Group::of(2)).unwrap().steps, 11);

    let mut other = read.clone();
    let Entry::Step(step) = &mut other.entries[2] else { panic!("the third entry is a step") };
    step.draws[1] = 3;
    let error = replay(&other, fresh(), &Group::of(2)).unwrap_err();
    assert_eq!(error.what, "effect 2 differs");
    step_of(&mut other, 2).draws = vec![5, 6];
    assert_eq!(replay(&other, fresh(), &Group::of(2)).unwrap_err().what, "chance differs");
    step_of(&mut other, 2).draws = vec![5];
    assert_eq!(replay(&other, fresh(), &Group::of(2)).unwrap_err().what, "draws differ");
}

#[test]
fn nothing_saved_is_told_from_a_record_without_content() {
    let run = all_inputs();
    let recovered = run.entries.iter().filter_map(Entry::step);
    let inputs: Vec<&InputRecord> = recovered.map(|step| &step.input).collect();
    let saved = InputRecord::Recover { saved: Some(serde_json::Value::Null) };
    assert!(inputs.contains(&&saved));
    let line = serde_json::to_string(&saved).unwrap();
    assert_eq!(line, "{\"recover\":{\"saved\":null}}");
    let dice = AnyProcess::new(Dice { count: 0 });
    assert_eq!(saved.to_input(&dice).unwrap(), Input::Recover(Some(AnyData::new(()))));
    let nothing: InputRecord = serde_json::from_str("{\"recover\":{}}").unwrap();
    assert_eq!(nothing.to_input(&dice).unwrap(), Input::Recover(None));
}

#[test]
fn story_has_a_sentence_for_every_input_and_effect() {
    let story = "   0 p0 starts
        sets its timer for 3 T
   0 p1 starts
        sets its timer for 3 T
 0.5 p0 makes a request
        draws 5 and 4
        saves an empty record
        sends Rolled(9) to p1
        indicates: (9, \"so much & \\\"more\\\"\")
 0.5 Rolled(9) from p0 to p1 is duplicated
 1.5 p1 receives Rolled(9) from p0
 1.6 p1 receives Rolled(9) from p0
   2 p1 receives Hello from p0
        meets an unexpected input: a greeting
   3 p0's timer fires
        cancels its timer
   4 p0 crashes
   5 p0 restarts with what it saved
   5 p0 recovers with an empty record
   6 p1 suspects p0
   7 p1 trusts p0 again
   8 p0 sends an application message to p1
   9 p1 receives an application message from p0, clock 12
";
    assert_eq!(text::transcript(&all_inputs(), &text::Options::default()), story);
}

/// One step of `p0` among `p0`, `p1`, `p2`, in the words of the story.
fn lines_of(input: serde_json::Value, effects: serde_json::Value) -> Vec<String> {
    let step = serde_json::json!({ "at": 0, "node": 0, "in": input, "do": effects });
    let step = serde_json::from_value(step).expect("a step");
    text::step_lines(&step, &Header::new("test/words", vec![0, 1, 2]), false)
}

#[test]
fn story_renders_maps_sets_options_and_nested_records() {
    let view = serde_json::json!({ "generation": 0, "epoch": 1, "coordinator": 2 });
    let lines = lines_of(
        serde_json::json!({ "message": { "from": 1, "id": 1, "body": {
            "Token": { "served": { "0": 1, "1": 0, "2": 3 }, "queue": [] } } } }),
        serde_json::json!([
            { "send": { "to": 1, "id": 2, "body": { "Group": { "Accept": {
                "view": view, "leader": 2, "next": null, "others": [], "is_last": true,
                "early": { "7": { "from": 1, "number": 4 } } } } } } },
            { "send": { "to": 2, "id": 3, "body": { "Lot": [1, null, [0, 2]] } } },
            { "set_timer": { "timer": { "Ask": { "from": 2, "number": 5 } }, "after_ns": 3_000_000 } },
            { "save": { "incarnation": 1, "awaiting": [0, 2] } },
            { "indicate": { "Granted": { "fence": [0, 3] } } },
            { "indicate": { "Following": { "leader": 1, "epoch": 4 } } },
            { "indicate": { "StepDown": { "view": view } } },
        ]),
    );
    let expected = [
        "p0 receives Token from p1 (served (p0: 1, p1: 0, p2: 3), queue empty)",
        "sends Group/Accept to p1 (view 1 of p2, leader p2, is last, early (7: message 4 of p1))",
        "sends Lot(1, none, (0, 2)) to p2",
        "sets timer Ask for 3 T (message 5 of p2)",
        "saves incarnation 1, awaiting (p0, p2)",
        "is granted, fence (0, 3)",
        "follows p1, epoch 4",
        "indicates: step down, view 1 of p2",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn long_values_lose_their_deepest_records_first() {
    let entry =
        |n: u32| serde_json::json!({ "position": n, "command": { "name": "a".repeat(20) } });
    let entries: Vec<_> = (0..9).map(entry).collect();
    let body = serde_json::json!({ "Sync": { "base": 7, "entries": entries } });
    let lines = lines_of(
        serde_json::json!({ "message": { "from": 1, "id": 1, "body": body } }),
        serde_json::json!([]),
    );
    assert_eq!(lines, ["p0 receives Sync from p1 (base 7, entries (9 entries))"]);
}

#[test]
fn debug_prints_every_input_and_effect_in_raw_values() {
    let story = "   0 p0 starts
        .. timer None in 3 T
   0 p1 starts
        .. timer None in 3 T
 0.5 p0 asked None
        ?? drew 5, 4
        .. saves None
        -> p1 Rolled(9)
        ** [9, \"so much & \\\"more\\\"\"]
 0.5 xx doubled: p0 -> p1 Rolled(9)
 1.5 p1 <- p0 Rolled(9)
 1.6 p1 <- p0 Rolled(9)
   2 p1 <- p0 Hello
        !! met a greeting
   3 p0 timer None
        .. cancels timer None
   4 xx p0 crashes
   5 xx p0 restarts and remembers what it saved
   5 p0 recovers with None
   6 p1 suspects p0
   7 p1 trusts p0
   8 p0 -> p1 message of the application
   9 p1 <- p0 message of the application at clock 12
";
    let options = text::Options { debug: true, ..text::Options::default() };
    assert_eq!(text::transcript(&all_inputs(), &options), story);
}

#[test]
fn a_picture_escapes_what_a_process_says() {
    let picture = konklave_trace::svg::draw(
        &all_inputs(),
        &konklave_trace::diagram::Options::of(crate::files::CONDITIONS),
    );
    assert!(picture.contains("so much &amp; \\&quot;more"));
    assert!(!picture.contains("much & "));
}

fn step_of(run: &mut Run, i: usize) -> &mut konklave_trace::Step {
    match &mut run.entries[i] {
        Entry::Step(step) => step,
        Entry::Incident(_) => panic!("entry {i} is a step"),
    }
}
