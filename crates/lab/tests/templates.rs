//! The crates that `new` writes compile with the present API, and their own tests pass. (That they also build
//! outside the workspace is tested in `crates/cli/tests/it/new.rs`.)

#![allow(
    unreachable_pub,
    dead_code,
    reason = "the sources of programs and libraries are modules here"
)]

/// One kind of crate: its library under the name that its tests use, its tests, its program.
macro_rules! new_crate {
    ($name:ident, $library:ident, $tests:literal) => {
        mod $name {
            use super::$library as my_algorithm;

            include!($tests);

            mod program {
                use super::super::$library as my_algorithm;

                include!("../templates/main.rs");
            }

            #[test]
            fn catalog_finds_it_beside_the_built_in_algorithms() {
                let catalog = konklave_lab::Catalog::builtin().with::<MyAlgorithm>();
                catalog.check().expect("no name is taken");
                let entry = catalog.find("my-algorithm").expect("the new algorithm");
                assert!(catalog.problems().contains(&entry.problem));
            }
        }
    };
}

// Their format is that of a crate of its own.
#[rustfmt::skip]
#[path = "../templates/election/lib.rs"]
mod election_library;
#[rustfmt::skip]
#[path = "../templates/multicast/lib.rs"]
mod multicast_library;
#[rustfmt::skip]
#[path = "../templates/mutex/lib.rs"]
mod mutex_library;
#[rustfmt::skip]
#[path = "../templates/own/lib.rs"]
mod own_library;

new_crate!(election, election_library, "../templates/election/test.rs");
new_crate!(multicast, multicast_library, "../templates/multicast/test.rs");
new_crate!(mutex, mutex_library, "../templates/mutex/test.rs");
new_crate!(own, own_library, "../templates/own/test.rs");

mod own_problem {
    use konklave_catalog::{CheckOptions, CheckPlan, Checked, Entry, Scenario};
    use konklave_lab::Catalog;

    use super::own_library::MyAlgorithm;

    fn entry() -> Entry {
        Catalog::builtin().with::<MyAlgorithm>().find("my-algorithm").expect("it is there").clone()
    }

    fn check(property: &str) -> Result<Checked, konklave_catalog::Error> {
        let entry = entry();
        let plan = entry.plan(Scenario { nodes: Some(2), ..Scenario::default() })?;
        let properties = vec![property.to_owned()];
        let options = CheckOptions { properties, ..CheckOptions::default() };
        entry.check(&plan, &CheckPlan { options, ..CheckPlan::default() }, &mut |_| true)
    }

    #[test]
    fn properties_of_the_problem_are_judged_by_name_and_number() {
        let verdict = |property| check(property).expect(property).report.property;
        assert_eq!(verdict("counted"), None);
        assert_eq!(verdict("limit:2"), None);
        assert_eq!(verdict("limit:1").as_deref(), Some("limit"));
        for (property, reason) in [
            ("limit", "a number is missing, as in limit:2"),
            ("counted:3", "takes no argument `3`"),
            ("limti:3", "did you mean `limit`?"),
        ] {
            let told = check(property).expect_err(property).to_string();
            assert!(told.contains(reason), "{told}");
        }
        let test = check("limit:1").expect("it is judged").test.expect("a finite run");
        assert!(test.contains("case.watch.numbers.insert(\"limit\", 1);"), "{test}");
    }

    #[test]
    fn costs_show_the_measures_of_the_problem() {
        let rows = entry().costs(&[3], 1).expect("it runs");
        let all = rows.last().expect("the standard workloads");
        assert_eq!((all.entries, all.sync_delay), (Some(3), None));
        assert!(all.wait.is_some_and(|wait| wait > 0.0 && wait < 2.0), "{all:?}");
        let table = entry().lock_costs(3, 1).expect("it runs").expect("a group of three");
        assert_eq!((table.entry.min, table.entry.max), (0.0, 2.0));
        assert_eq!((table.response, table.busy_response), (None, None), "it is not measured");
    }

    #[test]
    fn pictures_show_the_conditions_of_the_problem() {
        let plan =
            entry().plan(Scenario { nodes: Some(3), ..Scenario::default() }).expect("a plan");
        let run = entry().simulate(&plan, true).expect("it runs").run.expect("it was recorded");
        let catalog = Catalog::builtin().with::<MyAlgorithm>();
        let conditions = catalog.conditions(&run.header);
        let options = konklave_trace::diagram::Options::of(conditions);
        let diagram = konklave_trace::diagram::layout(&run, &options);
        assert!(diagram.bars.iter().any(|bar| bar.tooltip.contains("waits for the value")));
        assert!(diagram.legend.iter().any(|key| key.text == "waits for the value"));
    }
}
