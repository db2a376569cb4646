//! Options of `new`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::output::Format;

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  konklave new my-election                           an election on a ring, in ./my-election
  konklave new my-lock --problem mutex
  konklave new tally --problem own --path ../tally   a problem of its own, with clients and judge
  konklave new my-lock --lab ~/src/konklave/crates/lab
Then:
  cd my-election && cargo run -- check my-election -n 3
Exit codes: 0 written · 64 a name that cannot be used · 66 no konklave-lab in --lab, or the
sources of this program are gone (name them with --lab)
73 the folder exists already or cannot be written")]
pub(crate) struct NewArgs {
    /// Name of the crate and of the algorithm: letters, digits, `-` and `_`
    pub(crate) name: String,
    /// Problem that the algorithm solves
    #[arg(long, value_enum, default_value_t)]
    pub(crate) problem: Kind,
    /// Folder to create [default: ./NAME]
    #[arg(long, value_name = "DIR")]
    pub(crate) path: Option<PathBuf>,
    /// Folder of the crate konklave-lab to depend on [default: that of the sources this program was
    /// built from]
    #[arg(long, value_name = "DIR")]
    pub(crate) lab: Option<PathBuf>,
    /// Output format
    #[arg(long, env = "KONKLAVE_FORMAT", value_enum, default_value_t)]
    pub(crate) format: Format,
}

/// The template of a new crate.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Kind {
    /// An election on a ring
    #[default]
    Election,
    /// A lock granted by a coordinator
    Mutex,
    /// Multicast in FIFO order
    Multicast,
    /// A problem of its own: a counter that loses no increment
    Own,
}
