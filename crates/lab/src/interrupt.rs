//! What a signal does: what is half written goes, unless the command has something better to do.

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

/// From now on a signal does this.
pub(crate) fn on_signal(act: impl Fn() + Send + 'static) -> Result<(), Error> {
    *hook() = Some(Box::new(act));
    install()
}

/// Ends the program; nothing half written stays.
pub(crate) fn leave() -> ! {
    for draft in drafts().drain(..) {
        let _ = std::fs::remove_file(draft);
    }
    std::process::exit(130)
}

/// This file is being written, and is of no use until it is done.
pub(crate) fn begun(draft: &Path) {
    drafts().push(draft.to_owned());
    // Without a handler, an interrupt leaves it behind: untidy, no more.
    let _ = install();
}

/// It is done, or gone.
pub(crate) fn done(draft: &Path) {
    drafts().retain(|other| other != draft);
}
