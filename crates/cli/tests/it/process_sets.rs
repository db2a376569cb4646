//! `list` shows the sets of processes that quorum algorithms and Singhal's start with.

use serde_json::Value;

use super::konklave_line;

/// The lines of `list` that show the sets named `name`.
fn shown(line: &str, name: &str) -> Vec<String> {
    let listed = konklave_line(line);
    assert_eq!(listed.code, 0, "{line}: {}", listed.err);
    let start = format!("  {name}(");
    listed.out.lines().filter(|l| l.starts_with(&start)).map(str::to_owned).collect()
}

#[test]
fn quorums_of_the_lecture_are_shown_member_by_member() {
    let sets = shown("list maekawa -n 13 --set quorums=13", "S");
    assert_eq!(sets.len(), 13);
    assert_eq!(sets[0], "  S(0)     p0  p1  p2  p3");
    assert_eq!(sets[1], "  S(1)         p1          p4          p7          p10");
    let listed = konklave_line("list maekawa -n 13 --set quorums=13 --format json");
    let sheet: Value = serde_json::from_str(&listed.out).unwrap();
    let sets = sheet["process_sets"]["S"].as_array().unwrap();
    let members = |set: &Value| set.as_array().unwrap().clone();
    for (p, one) in sets.iter().enumerate() {
        assert!(members(one).contains(&p.into()), "S({p}) lacks p{p}: {one}");
        for other in sets {
            let common = members(one).iter().filter(|q| members(other).contains(q)).count();
            assert!(common > 0, "{one} and {other} do not meet");
        }
    }
}

#[test]
fn list_names_the_example_of_the_sources_where_its_size_fits() {
    let said = "the example of the sources: --set quorums=13";
    for (line, shown) in [
        ("list maekawa -n 13", true),
        ("list cao-singhal -n 13", true),
        ("list maekawa -n 13 --set failed=for-good", true),
        ("list maekawa -n 13 --set quorums=plane", false),
        ("list maekawa -n 13 --set quorums=13", false),
        ("list maekawa -n 12", false),
        ("list maekawa", false),
    ] {
        let listed = konklave_line(line);
        assert_eq!(listed.code, 0, "{line}: {}", listed.err);
        assert_eq!(listed.out.contains(said), shown, "{line}: {}", listed.out);
    }
}

#[test]
fn sets_of_singhal_form_a_triangle() {
    let sets = shown("list singhal -n 4", "R");
    assert_eq!(sets, ["  R(0)", "  R(1)     p0", "  R(2)     p0 p1", "  R(3)     p0 p1 p2"]);
    assert_eq!(shown("list singhal -n 1", "R"), ["  R(0)"]);
}

#[test]
fn sanders_shows_the_processes_asked_and_those_informed() {
    for name in ["R", "I"] {
        assert_eq!(shown("list sanders -n 4", name).len(), 4, "{name}");
    }
    // Too many to show: the message says where they are.
    let many = konklave_line("list maekawa -n 91 --set quorums=plane");
    assert!(many.out.contains("91 sets: `--format json` lists them"), "{}", many.out);
}
