//! The evaluation slides, computed.

use konklave_catalog::tolerance::{Fault, Role, Row, Served, table, tolerance};

use crate::{catalog, find};

/// The table of one lock, in short.
fn served(name: &str) -> Vec<(String, Served)> {
    let rows = tolerance(find(name).unwrap(), 7, &[]).unwrap();
    println!("{}", table(&rows));
    rows.iter().map(|row| (row.fault.to_string(), row.served)).collect()
}

fn expect(name: &str, expected: &[(&str, Served)]) {
    let expected: Vec<_> = expected.iter().map(|(f, s)| ((*f).to_owned(), *s)).collect();
    assert_eq!(served(name), expected, "{name}");
}

#[test]
fn the_coordinator_is_the_weak_point_and_idle_clients_are_not() {
    expect(
        "central",
        &[
            ("crash: idle", Served::All),
            ("crash: coordinator", Served::Nobody),
            ("crash: waiting", Served::Nobody),
            ("crash: holder", Served::Nobody),
            ("loss: Grant", Served::Nobody),
            ("loss: Release", Served::Nobody),
            ("loss: Request", Served::AllButOne),
        ],
    );
}

#[test]
fn where_all_must_reply_each_is_a_weak_point() {
    expect(
        "ricart-agrawala",
        &[
            ("crash: idle", Served::Nobody),
            ("crash: arbiter", Served::Nobody),
            ("crash: waiting", Served::Nobody),
            ("crash: holder", Served::Nobody),
            ("loss: Reply", Served::Nobody),
            ("loss: Request", Served::Nobody),
        ],
    );
}

#[test]
fn a_broadcast_token_must_not_be_lost_but_a_request_may() {
    for name in ["suzuki-kasami", "ricart-agrawala-token"] {
        expect(
            name,
            &[
                ("crash: idle", Served::All),
                ("crash: idle, with the token", Served::Nobody),
                ("crash: waiting", Served::Nobody),
                ("crash: holder", Served::Nobody),
                ("loss: Request", Served::AllButOne),
                ("loss: Token", Served::Nobody),
            ],
        );
    }
}

#[test]
fn on_a_tree_the_whole_path_must_be_there() {
    expect(
        "raymond",
        &[
            ("crash: idle", Served::Nobody),
            ("crash: on the path", Served::Nobody),
            ("crash: idle, with the token", Served::Nobody),
            ("crash: waiting", Served::Nobody),
            ("crash: holder", Served::Nobody),
            ("loss: Request", Served::Some),
            ("loss: Token", Served::Nobody),
        ],
    );
    for name in ["naimi-trehel", "neilsen-mizuno"] {
        expect(
            name,
            &[
                ("crash: idle", Served::Some),
                ("crash: on the path", Served::Some),
                ("crash: idle, with the token", Served::Nobody),
                ("crash: waiting", Served::Nobody),
                ("crash: holder", Served::Nobody),
                ("loss: Request", Served::Some),
                ("loss: Token", Served::Nobody),
            ],
        );
    }
}

#[test]
fn a_crash_or_a_loss_blocks_but_lets_two_in_only_where_silence_counts_as_consent() {
    let mut unsafe_rows = Vec::new();
    for entry in catalog().entries().iter().filter(|entry| entry.problem.name == "mutex") {
        for row in tolerance(entry, 7, &[]).unwrap() {
            if !row.safe {
                unsafe_rows.push(format!("{}: {}", row.algorithm, row.fault));
            }
            assert!(row.tried > 0 && row.harmless <= row.tried);
        }
    }
    // A process that does not answer counts as one that consents, or as crashed. Which lost message shows it depends on
    // the delays of the sampled runs.
    let silent = ["mutex/lamport: loss: ", "mutex/ricart-agrawala-acknowledged: loss: "];
    let others: Vec<_> =
        unsafe_rows.iter().filter(|row| !silent.iter().any(|s| row.starts_with(s))).collect();
    assert!(others.is_empty(), "{others:?}");
    for start in silent {
        assert!(unsafe_rows.iter().any(|row| row.starts_with(start)), "{start}: {unsafe_rows:?}");
    }
}

#[test]
fn one_alone_has_nobody_to_fail_it() {
    let rows = tolerance(find("central").unwrap(), 1, &[]).unwrap();
    assert!(rows.iter().all(|row| row.served == Served::All), "{}", table(&rows));
}

#[test]
fn the_table_lines_up() {
    let row = Row {
        algorithm: "mutex/x".into(),
        fault: Fault::Crash(Role::IdleTokenHolder),
        tried: 4,
        harmless: 1,
        served: Served::AllButOne,
        waiting: 1,
        survivors: 6,
        safe: true,
        example: None,
    };
    let loss = Row { fault: Fault::Loss("Token".into()), served: Served::Nobody, ..row.clone() };
    assert_eq!(
        table(&[row, loss]),
        "                               served       harmless  safe\n\
         mutex/x\n  \
           crash: idle, with the token  all but one  1 of 4    yes\n  \
           loss: Token                  nobody       1 of 4    yes\n"
    );
}
