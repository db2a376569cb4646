//! Signals: by default the program removes unfinished files and ends; a command may set its own handler.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use konklave_catalog::Error;

type Hook = Box<dyn Fn() + Send>;

static DRAFTS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
static HOOK: Mutex<Option<Hook>> = Mutex::new(None);
static HANDLER: OnceLock<Result<(), String>> = OnceLock::new();

fn drafts() -> MutexGuard<'static, Vec<PathBuf>> {
    DRAFTS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn hook() -> MutexGuard<'static, Option<Hook>> {
    HOOK.lock().unwrap_or_else(PoisonError::into_inner)
}

fn install() -> Result<(), Error> {
    let installed = HANDLER.get_or_init(|| {
        let handler = ctrlc::set_handler(|| match &*hook() {
            Some(act) => act(),
            None => leave(),
        });
        handler.map_err(|e| e.to_string())
    });
    installed.clone().map_err(|e| Error::Unavailable(format!("cannot catch interrupts: {e}")))
}

/// Sets the handler of signals.
pub(crate) fn on_signal(act: impl Fn() + Send + 'static) -> Result<(), Error> {
    *hook() = Some(Box::new(act));
    install()
}

/// Removes unfinished files and ends the program.
pub(crate) fn leave() -> ! {
    for draft in drafts().drain(..) {
        let _ = std::fs::remove_file(draft);
    }
    std::process::exit(130)
}

/// Registers an unfinished file, which an interrupt removes.
pub(crate) fn begun(draft: &Path) {
    drafts().push(draft.to_owned());
    // Without a handler, an interrupt leaves the file behind, which does no harm.
    let _ = install();
}

/// Unregisters a file that is finished or removed.
pub(crate) fn done(draft: &Path) {
    drafts().retain(|other| other != draft);
}
