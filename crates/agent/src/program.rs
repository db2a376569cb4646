//! The name of the program that hosts these commands, for hints.

use std::sync::OnceLock;

static NAME: OnceLock<String> = OnceLock::new();

/// The name that users type: `konklave`, unless [`name_program`] set another one.
pub(crate) fn program() -> &'static str {
    NAME.get().map_or("konklave", String::as_str)
}

/// Sets the name that hints have. Only the first call has an effect.
pub fn name_program(name: &str) {
    // A later call finds the name in use.
    let _ = NAME.set(name.to_owned());
}
