//! The name of this program, as users type it.

use std::sync::OnceLock;

static NAME: OnceLock<String> = OnceLock::new();

/// The name of this program: `konklave`, unless [`name_program`] set another one.
pub fn program() -> &'static str {
    NAME.get().map_or("konklave", String::as_str)
}

/// Sets the name of this program, before it prints anything. Only the first call has an effect.
pub fn name_program(name: &str) {
    // A later call finds the name in use.
    let _ = NAME.set(name.to_owned());
}
