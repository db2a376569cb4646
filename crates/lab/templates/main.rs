// The command line of Konklave, with `my-algorithm` beside the built-in algorithms.

use std::process::ExitCode;

use konklave_lab::Catalog;
use my_algorithm::MyAlgorithm;

fn main() -> ExitCode {
    konklave_lab::main(Catalog::builtin().with::<MyAlgorithm>())
}
