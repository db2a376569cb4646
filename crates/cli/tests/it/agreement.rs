//! The four tables agree: `guarantees`, `tolerance`, `compare` and `reproduce` say the same of the same fault.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use konklave_catalog::guarantees::CONDITIONS;
use serde_json::Value;

use super::konklave_line;

fn json(line: &str) -> Value {
    let said = konklave_line(&format!("{line} --format json"));
    serde_json::from_str(&said.out).unwrap_or_else(|why| panic!("{line}: {why}: {}", said.err))
}

/// The cells of the committed table of guarantees, by algorithm, property and condition.
struct Guarantees(BTreeMap<(String, String, &'static str), Value>, BTreeMap<String, u64>);

impl Guarantees {
    fn read() -> Self {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../book/guarantees.json");
        let text = fs::read_to_string(file).expect("the document is there");
        let rows: Vec<Value> = serde_json::from_str(&text).expect("rows of guarantees");
        let (mut cells, mut nodes) = (BTreeMap::new(), BTreeMap::new());
        for row in rows {
            let name = row["algorithm"].as_str().expect("a name").to_owned();
            nodes.insert(name.clone(), row["nodes"].as_u64().expect("a size"));
            let property = row["property"].as_str().expect("a property");
            for (condition, cell) in CONDITIONS.iter().zip(row["cells"].as_array().expect("cells"))
            {
                cells.insert((name.clone(), property.to_owned(), *condition), cell.clone());
            }
        }
        Self(cells, nodes)
    }

    /// Whether the property is kept in the whole group; none if it is undecided there or the role does not
    /// exist.
    fn keeps(&self, algorithm: &str, property: &str, condition: &'static str) -> Option<bool> {
        let cell = &self.0[&(algorithm.to_owned(), property.to_owned(), condition)];
        let nodes = self.1[algorithm];
        let in_group = |kind: &str| cell[kind]["nodes"] == nodes;
        match () {
            () if in_group("yes") => Some(true),
            () if in_group("no") => Some(false),
            () => None,
        }
    }

    /// Whether the table says that the fault never strikes.
    fn never(&self, algorithm: &str, condition: &'static str) -> bool {
        self.0[&(algorithm.to_owned(), "deadlock".to_owned(), condition)] == "never"
    }

    fn locks(&self) -> impl Iterator<Item = (&str, u64)> {
        let locks = self.1.iter().filter(|(name, _)| name.starts_with("mutex/"));
        locks.map(|(name, nodes)| (name.as_str(), *nodes))
    }
}

/// The conditions that crash a process, and the roles of `tolerance` that they stand for.
const CRASHES: &[(&str, &[&str])] = &[
    ("crash: idle", &["idle"]),
    ("crash: waiting", &["waiting"]),
    ("crash: holder", &["holder"]),
    ("crash: arbiter", &["arbiter", "on-path"]),
    ("crash: coordinator", &["coordinator"]),
    ("crash: idle, with the token", &["keeper"]),
];

/// How many of these faults did no harm, how many were tried, and whether all were safe.
fn sum<'a>(rows: impl Iterator<Item = &'a Value>) -> (u64, u64, bool) {
    rows.fold((0, 0, true), |(harmless, tried, safe), row| {
        let count = |name: &str| row[name].as_u64().expect("a count");
        (harmless + count("harmless"), tried + count("tried"), safe && row["safe"] == true)
    })
}

#[test]
fn tolerance_and_guarantees_agree_on_every_role_and_on_losses() {
    let guarantees = Guarantees::read();
    let (mut compared, mut wrong) = (0, Vec::new());
    for (lock, nodes) in guarantees.locks() {
        let rows = json(&format!("tolerance {lock} -n {nodes}"));
        let rows = rows.as_array().expect("rows");
        let crashes = CRASHES.iter().map(|(condition, roles)| {
            let is_meant = |row: &&Value| roles.iter().any(|role| row["fault"]["crash"] == *role);
            (*condition, sum(rows.iter().filter(is_meant)))
        });
        let losses = sum(rows.iter().filter(|row| row["fault"].get("loss").is_some()));
        for (condition, (harmless, tried, safe)) in crashes.chain([("one loss", losses)]) {
            if tried == 0 {
                continue;
            }
            // A dash says that no process ever has the role, so `tolerance` finds none either.
            if guarantees.never(lock, condition) {
                wrong.push(format!("{lock}, {condition}: never, but tolerance tried {tried}"));
            }
            let served = harmless == tried;
            for (property, found) in [("deadlock", served), ("exclusion", safe)] {
                match guarantees.keeps(lock, property, condition) {
                    Some(kept) if kept != found => wrong.push(format!(
                        "{lock}, {condition}: guarantees keeps {property}: {kept}, tolerance: {harmless} of {tried}, safe: {safe}"
                    )),
                    Some(_) => compared += 1,
                    None => {}
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(compared > 100, "only {compared} cells were compared");
}

#[test]
fn compare_counts_the_faults_of_tolerance() {
    let all = json("compare mutex central suzuki-kasami voting -n 5 --seeds 1 --loads low");
    for line in all["lines"].as_array().expect("lines") {
        let lock = line["algorithm"].as_str().expect("a name");
        let rows = json(&format!("tolerance {lock} -n 5"));
        let rows = rows.as_array().expect("rows");
        for (fault, name) in [("crash", "crashes"), ("loss", "losses")] {
            let of = rows.iter().filter(|row| row["fault"].get(fault).is_some());
            let (harmless, tried, _) = sum(of);
            let found = &line["endurance"];
            assert_eq!(found[name], harmless, "{lock}: {name}");
            assert_eq!(found[format!("{name}_tried")], tried, "{lock}: {name}");
        }
        let harmless = rows.iter().filter(|row| row["harmless"] == row["tried"]);
        let survives = line["endurance"]["survives"].as_array().expect("words");
        assert_eq!(survives.len(), harmless.count(), "{lock}: {survives:?}");
        assert!(survives.iter().all(|words| words.as_str().unwrap_or("").contains(" tried")));
    }
}

/// A row says what happens in its own workload: every lost message and every crash is repeated by `run`.
#[test]
fn compare_tries_every_fault_in_the_workload_of_its_row() {
    for (algorithm, n, options) in [
        ("ring-list", 6, "-n 6 --initiators 2"),
        ("bully", 6, "-n 6 --initiators 2"),
        // It takes 1670 T to notice that there is no root, and may contend for ever.
        ("firewire", 3, "-n 3 --topology path --initiators all"),
    ] {
        let all = json(&format!("compare election {algorithm} {options} --seeds 1"));
        let line = &all["lines"][0];
        let report = json(&format!("run {algorithm} {options} --seed 1"));
        let sent = report["messages"]["sent"].as_u64().expect("a count");
        let survived = |fault: String, survivors: u64| {
            let report = json(&format!("run {algorithm} {options} --seed 1 --fault {fault}"));
            report["verdict"] == "ok" && report["election"]["agreeing"] == survivors
        };
        let losses = (1..=sent).filter(|k| survived(format!("lose:#{k}"), n)).count() as u64;
        let endurance = &line["endurance"];
        assert_eq!(endurance["losses_tried"], sent, "{algorithm}");
        assert_eq!(endurance["losses"], losses, "{algorithm}");
        let steps = report["steps"].as_u64().expect("a count");
        let moments = (1..steps).flat_map(|step| (0..n).map(move |p| format!("crash:{p}@#{step}")));
        let crashes = moments.filter(|fault| survived(fault.clone(), n - 1)).count() as u64;
        assert_eq!(endurance["crashes_tried"], n * (steps - 1), "{algorithm}");
        if algorithm == "firewire" {
            assert!(losses > 0 && losses < sent, "{losses} of {sent} losses do no harm");
        }
        assert_eq!(endurance["crashes"], crashes, "{algorithm}");
        let survives = endurance["survives"].as_array().expect("words");
        let expected = u64::from(losses == sent) + u64::from(crashes == n * (steps - 1));
        assert_eq!(survives.len() as u64, expected, "{algorithm}: {survives:?}");
    }
}

/// A cell of the table of guarantees: algorithm, property, condition, and whether it is said to be kept.
type SaidOfCell = (&'static str, &'static str, &'static str, bool);

/// Statements of the sources, and the cells of the table of guarantees that they speak of.
const SAID: &[(&str, &[SaidOfCell])] = &[
    (
        "central-correct",
        &[("central", "exclusion", "FIFO", true), ("central", "deadlock", "FIFO", true)],
    ),
    ("central-order", &[("central", "order", "FIFO", false)]),
    ("central-crash", &[("central", "deadlock", "crash: idle", true)]),
    ("central-server", &[("central", "deadlock", "crash: coordinator", false)]),
    ("central-inside", &[("central", "deadlock", "crash: holder", false)]),
    ("central-loss", &[("central", "deadlock", "one loss", false)]),
    ("lamport-fifo", &[("lamport", "exclusion", "reordering", false)]),
    (
        "lamport-crash",
        &[
            ("lamport", "deadlock", "crash: idle", false),
            ("lamport", "deadlock", "crash: waiting", false),
            ("lamport", "deadlock", "crash: holder", false),
        ],
    ),
    (
        "ricart-agrawala-fifo",
        &[
            ("ricart-agrawala", "exclusion", "reordering", true),
            ("ricart-agrawala", "deadlock", "reordering", true),
        ],
    ),
    ("ricart-agrawala-group-1", &[("ricart-agrawala", "order", "FIFO", true)]),
    (
        "ricart-agrawala-crash",
        &[
            ("ricart-agrawala", "deadlock", "crash: idle", false),
            ("ricart-agrawala", "deadlock", "crash: arbiter", false),
            ("ricart-agrawala", "deadlock", "crash: waiting", false),
            ("ricart-agrawala", "deadlock", "crash: holder", false),
        ],
    ),
    (
        "no-loss",
        &[
            ("central", "deadlock", "one loss", false),
            ("ricart-agrawala", "deadlock", "one loss", false),
            ("token-ring", "deadlock", "one loss", false),
        ],
    ),
    ("token-ring-order", &[("token-ring", "order", "FIFO", false)]),
    ("token-ring-one", &[("token-ring", "exclusion", "FIFO", true)]),
    (
        "suzuki-kasami-crash",
        &[
            ("suzuki-kasami", "deadlock", "crash: waiting", false),
            ("suzuki-kasami", "deadlock", "crash: holder", false),
            ("suzuki-kasami", "deadlock", "crash: idle, with the token", false),
            ("suzuki-kasami", "deadlock", "crash: idle", true),
        ],
    ),
    ("raymond-crash", &[("raymond", "deadlock", "crash: arbiter", false)]),
];

#[test]
fn reproduce_and_guarantees_agree() {
    let guarantees = Guarantees::read();
    let rows = json("reproduce");
    let rows = rows.as_array().expect("rows");
    let verdict = |name: &str| {
        let row = rows.iter().find(|row| row["name"] == name);
        row.unwrap_or_else(|| panic!("no statement {name}"))["verdict"].as_str()
    };
    let mut compared = 0;
    for (name, cells) in SAID {
        for &(lock, property, condition, said) in *cells {
            let lock = format!("mutex/{lock}");
            if let Some(kept) = guarantees.keeps(&lock, property, condition) {
                let is_so = kept == said;
                assert_eq!(
                    verdict(name) == Some("confirmed"),
                    is_so,
                    "{name}: {lock}, {property}, {condition}: guarantees says {kept}"
                );
                compared += 1;
            }
        }
    }
    assert!(compared > 20, "only {compared} cells were compared");
    // With a detector, no crash stops a token ring; without one, every crash does.
    assert_eq!(verdict("token-ring-crash"), Some("qualified"));
    for (condition, _) in CRASHES {
        assert_ne!(guarantees.keeps("mutex/token-ring", "deadlock", condition), Some(false));
    }
}

#[test]
fn voting_is_judged_where_a_majority_is_not_all() {
    let guarantees = Guarantees::read();
    let rows = guarantees.0.iter().filter(|((name, ..), _)| name == "mutex/voting");
    for ((_, property, condition), cell) in rows {
        let sizes = ["yes", "no", "bypass"].map(|kind| cell[kind]["nodes"].as_u64());
        let nodes = sizes.into_iter().flatten().next();
        assert!(nodes.is_none_or(|n| n >= 3), "{property}, {condition}: {cell}");
    }
}

/// `compare` asks for more than termination: every live process must name one live leader. So it may find harm
/// where `guarantees` finds none, but not the other way round.
#[test]
fn compare_finds_harm_in_elections_where_guarantees_does() {
    let guarantees = Guarantees::read();
    let elections = guarantees.1.iter().filter(|(name, _)| name.starts_with("election/"));
    let mut compared = 0;
    for (election, nodes) in elections {
        let breaks =
            |condition| guarantees.keeps(election, "termination", condition) == Some(false);
        let crash = CRASHES.iter().any(|(condition, _)| breaks(condition));
        let faults = [("losses", breaks("one loss")), ("crashes", crash)];
        if faults.iter().all(|(_, breaks)| !breaks) {
            continue;
        }
        let all = json(&format!("compare election {election} -n {nodes} --seeds 1"));
        // The checker tries every set of processes that start; a row has one of them.
        let lines = all["lines"].as_array().expect("lines");
        for (name, _) in faults.iter().filter(|(_, breaks)| *breaks) {
            let tried = format!("{name}_tried");
            let fails = |line: &Value| {
                line["endurance"][*name].as_u64() < line["endurance"][&tried].as_u64()
            };
            assert!(lines.iter().any(fails), "{election}: {name}");
            compared += 1;
        }
    }
    assert!(compared > 10, "only {compared} cells were compared");
}
