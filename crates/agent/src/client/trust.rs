//! Whether a socket belongs to an agent that this user can believe.
//!
//! In a folder where all users may write, another user can put a socket at the expected path, and grant every
//! lock to everyone. So a client looks at the way to the socket, and at the user who listens there.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use nix::unistd::User;

use crate::failure::Failure;

/// Names the user of the agent, where neither root nor the own user made its folder.
const AGENT_USER: &str = "KONKLAVE_AGENT_USER";
/// The most symbolic links on the way.
const LINKS: usize = 40;

/// Refuses an agent of the user `listener` at `socket`, unless root, the own user, the user of
/// `KONKLAVE_AGENT_USER`, or an owner on the way to the socket runs it.
pub(super) fn check(socket: &Path, listener: u32) -> Result<(), Failure> {
    let named = std::env::var(AGENT_USER).ok().filter(|name| !name.is_empty());
    let named = named.map(|name| number(&name)).transpose()?;
    let own = [0, nix::unistd::geteuid().as_raw()];
    let trusted: Vec<u32> = own.into_iter().chain(named).collect();
    let why = match owners(socket, trusted) {
        Ok(owners) if owners.contains(&listener) => return Ok(()),
        Ok(_) => format!("user {} listens there", called(listener)),
        Err(Untrusted::Owner { place, user }) => {
            let place = place.display();
            format!("{place} belongs to user {}, and any user could make it", called(user))
        }
        Err(Untrusted::Unreadable(why)) => format!("cannot read the owners of its folders: {why}"),
    };
    Err(Failure::Forbidden(format!(
        "the socket {} may be that of an impostor: {why}\n  \
         name the right socket:   --socket PATH, or KONKLAVE_SOCKET\n  \
         or the agent's user:     {AGENT_USER}",
        socket.display()
    )))
}

/// Why no owner is known.
#[derive(Debug)]
enum Untrusted {
    /// This part of the way belongs to a user who is not trusted, in a folder where others may write.
    Owner {
        place: PathBuf,
        user: u32,
    },
    Unreadable(io::Error),
}

/// The trusted users, and the owners of what only trusted users can have put on the way to `path`.
fn owners(path: &Path, mut trusted: Vec<u32>) -> Result<Vec<u32>, Untrusted> {
    let path = std::path::absolute(path).map_err(Untrusted::Unreadable)?;
    let (mut at, mut links) = (PathBuf::from("/"), 0);
    let mut rest = parts(&path);
    while let Some(part) = rest.pop_front() {
        if part == ".." {
            at.pop();
            continue;
        }
        let folder = fs::metadata(&at).map_err(Untrusted::Unreadable)?;
        let place = at.join(&part);
        let facts = fs::symlink_metadata(&place).map_err(Untrusted::Unreadable)?;
        if folder.mode() & 0o022 == 0 {
            // Only the owner of the folder can have put it here, and that owner is trusted.
            trusted.push(facts.uid());
        } else if !trusted.contains(&facts.uid()) {
            return Err(Untrusted::Owner { place, user: facts.uid() });
        }
        if !facts.is_symlink() {
            at = place;
            continue;
        }
        links += 1;
        if links > LINKS {
            return Err(Untrusted::Unreadable(io::Error::other("too many symbolic links")));
        }
        let target = fs::read_link(&place).map_err(Untrusted::Unreadable)?;
        if target.is_absolute() {
            at = PathBuf::from("/");
        }
        let mut longer = parts(&target);
        longer.append(&mut rest);
        rest = longer;
    }
    Ok(trusted)
}

fn parts(path: &Path) -> VecDeque<OsString> {
    let part = |part: Component<'_>| match part {
        Component::Normal(_) | Component::ParentDir => Some(part.as_os_str().to_owned()),
        Component::Prefix(_) | Component::RootDir | Component::CurDir => None,
    };
    path.components().filter_map(part).collect()
}

fn number(name: &str) -> Result<u32, Failure> {
    name.parse().or_else(|_| match User::from_name(name) {
        Ok(Some(user)) => Ok(user.uid.as_raw()),
        Ok(None) | Err(_) => {
            Err(Failure::Config(format!("{AGENT_USER}: this machine has no user `{name}`")))
        }
    })
}

fn called(user: u32) -> String {
    match User::from_uid(user.into()) {
        Ok(Some(known)) => format!("{user} ({})", known.name),
        Ok(None) | Err(_) => user.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn own() -> u32 {
        nix::unistd::geteuid().as_raw()
    }

    fn folder(name: &str, mode: u32) -> PathBuf {
        let folder =
            std::env::temp_dir().join(format!("konklave-trust-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(folder.join("inner")).expect("a folder");
        fs::set_permissions(&folder, fs::Permissions::from_mode(mode)).expect("ours");
        fs::write(folder.join("inner/socket"), "").expect("a file");
        folder
    }

    #[test]
    fn way_through_folders_of_trusted_users_is_trusted() {
        let shared = folder("shared", 0o1777);
        let found = owners(&shared.join("inner/socket"), vec![0, own()]).expect("all ours");
        assert!(found.contains(&own()));
        // A stranger made the folder, where all may write. Only root can show it.
        if nix::unistd::chown(&shared.join("inner"), Some(4242.into()), None).is_ok() {
            let way = shared.join("inner/socket");
            let denied = owners(&way, vec![0, own()]);
            assert!(matches!(denied, Err(Untrusted::Owner { user: 4242, .. })), "{denied:?}");
            assert!(owners(&way, vec![0, own(), 4242]).is_ok());
        }
        fs::remove_dir_all(shared).expect("ours");
    }

    #[test]
    fn links_are_followed_and_counted() {
        let there = folder("links", 0o755);
        symlink("inner", there.join("relative")).expect("a link");
        symlink(there.join("inner"), there.join("absolute")).expect("a link");
        symlink("loop", there.join("loop")).expect("a link");
        for way in ["relative/socket", "absolute/socket", "inner/../absolute/./socket"] {
            assert!(owners(&there.join(way), vec![0, own()]).is_ok(), "{way}");
        }
        for way in ["loop/socket", "missing"] {
            let found = owners(&there.join(way), vec![0, own()]);
            assert!(matches!(found, Err(Untrusted::Unreadable(_))), "{way}: {found:?}");
        }
        fs::remove_dir_all(there).expect("ours");
    }

    #[test]
    fn agent_of_another_user_is_refused_with_way_out() {
        let there = folder("other", 0o755);
        let socket = there.join("inner/socket");
        assert!(check(&socket, own()).is_ok() && check(&socket, 0).is_ok());
        let Err(Failure::Forbidden(why)) = check(&socket, 4_000_000) else { panic!("believed") };
        assert!(why.contains("user 4000000 listens there") && why.contains(AGENT_USER), "{why}");
        fs::remove_dir_all(there).expect("ours");
    }
}
