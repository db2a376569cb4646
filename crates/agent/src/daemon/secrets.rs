//! Checks the permissions of files with keys.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::config::Settings;

/// The files with keys.
pub(super) fn files(settings: &Settings) -> Vec<PathBuf> {
    let Settings { key_file, second_key_file, tls_key, nats_credentials, .. } = settings;
    [key_file, second_key_file, tls_key, nats_credentials].into_iter().flatten().cloned().collect()
}

/// The fault in the permissions of a key file, if there is one: everyone can read it, or others than its owner can write
/// it. The group may read it, because Kubernetes mounts secrets so.
pub(super) fn exposed(file: &Path) -> Option<String> {
    let facts = fs::metadata(file).ok().filter(fs::Metadata::is_file)?;
    let mode = facts.mode() & 0o777;
    let what = match (mode & 0o004, mode & 0o022) {
        (0, 0) => return None,
        (0, _) => "other users can change it",
        _ => "everyone on this machine can read it",
    };
    let file = file.display();
    Some(format!("{file}: {what} (mode {mode:03o}): create a new key, then chmod 400 {file}"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn key_file_is_exposed_if_others_can_read_or_write_it() {
        let file = std::env::temp_dir().join(format!("konklave-secret-{}", std::process::id()));
        fs::write(&file, "secret").expect("written");
        for (mode, well) in [
            (0o400, true),
            (0o600, true),
            (0o440, true),
            (0o640, true),
            (0o644, false),
            (0o404, false),
            (0o660, false),
            (0o602, false),
        ] {
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).expect("ours");
            assert_eq!(exposed(&file).is_none(), well, "{mode:o}: {:?}", exposed(&file));
        }
        fs::remove_file(&file).expect("ours");
        assert_eq!(exposed(&file), None, "reading a missing file reports it");
        assert_eq!(exposed(Path::new("/dev/null")), None, "not a regular file");
    }
}
