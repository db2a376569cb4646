//! The program on its own: `cargo run -p konklave-ring --example ring -- 8 -n 3 --sleep 0 --log`.

use std::io;
use std::process::{ExitCode, exit};

use clap::Parser;
use konklave_ring::{Flags, Stop, run};

static STOP: Stop = Stop::new();

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    flags: Flags,
}

fn main() -> ExitCode {
    let cli = Cli::try_parse().unwrap_or_else(|e| {
        let _ = e.print();
        exit(if e.use_stderr() { 64 } else { 0 })
    });
    ctrlc::set_handler(|| STOP.signal()).expect("this is the only handler");
    match run(&cli.flags, &mut io::stdout(), &mut io::stderr(), &STOP) {
        Ok(outcome) => ExitCode::from(outcome.exit_code()),
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}
