//! `ring`: the project report's program.

use std::io;

use konklave_ring::{Stop, run};

use crate::Done;
use crate::args::RingArgs;
use crate::failure::Failure;

static STOP: Stop = Stop::new();

pub(crate) fn ring(args: &RingArgs) -> Done {
    ctrlc::set_handler(|| STOP.signal())
        .map_err(|e| Failure::Other(format!("cannot catch interrupts: {e}"), 69))?;
    let outcome = run(&args.flags, &mut io::stdout(), &mut io::stderr(), &STOP)
        .map_err(|error| Failure::Other(error.to_string(), error.exit_code()))?;
    Ok(outcome.exit_code())
}
