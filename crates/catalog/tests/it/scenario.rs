//! Scenario files.

use konklave_catalog::Scenario;

#[test]
fn a_file_reads_like_the_options() {
    let text = "algorithm = \"mutex/central\"\nnodes = 4\nfaults = [\"crash:2@3\"]\nfifo = false\n";
    let scenario = Scenario::parse(text, "s.toml").unwrap();
    assert_eq!(scenario.nodes, Some(4));
    assert_eq!(scenario.to_args(), "-n 4 --no-fifo --fault crash:2@3");
}

#[test]
fn an_unknown_key_is_named_with_its_line() {
    let error = Scenario::parse("nodes = 3\nnoodles = 4\n", "s.toml").unwrap_err().to_string();
    assert!(error.starts_with("s.toml:2: unknown key `noodles`"), "{error}");
    assert!(error.contains("nodes"), "{error}");
    let error = Scenario::parse("nodes = \"x\"\n", "s.toml").unwrap_err().to_string();
    assert!(error.starts_with("s.toml:1: invalid type"), "{error}");
    assert!(error.ends_with("expected a whole number from 0 on"), "{error}");
}

#[test]
fn the_command_line_goes_before_the_file() {
    let line = Scenario { nodes: Some(3), no_fifo: true, ..Scenario::default() };
    let file = Scenario { nodes: Some(9), seed: Some(7), fifo: Some(true), ..Scenario::default() };
    let both = line.or(file);
    assert_eq!((both.nodes, both.seed, both.fifo), (Some(3), Some(7), Some(false)));
}
