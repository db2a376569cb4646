//! The rights of users at the socket: by user and group, as the kernel reports them.

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use nix::unistd::{Gid, User, getgrouplist};

use super::rejected::called;
use crate::protocol::Request;

/// The rights of a client. Each role has the rights of all roles before it, too.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Role {
    /// Look: `status`, `who`, `why`, `members`, `watch`, `record`, `doctor`.
    Observe,
    /// Hold locks and slots, lead, send and receive messages.
    Hold,
    /// Take grants from others: `revoke`, `step-down`.
    Operate,
}

impl Role {
    /// The role that a request needs.
    #[must_use]
    pub fn needed(request: &Request) -> Self {
        match request {
            Request::Hello { .. }
            | Request::KeepAlive { .. }
            | Request::Status { .. }
            | Request::Why { .. }
            | Request::Watch
            | Request::Record
            | Request::Examine
            | Request::Metrics => Self::Observe,
            Request::Acquire { .. }
            | Request::Resume { .. }
            | Request::Release { .. }
            | Request::Send { .. }
            | Request::Receive { .. } => Self::Hold,
            Request::Revoke { .. } => Self::Operate,
        }
    }
}

/// A client that may use the agent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Admitted {
    /// Its rights.
    pub role: Role,
    /// Its user.
    pub user: u32,
}

impl Admitted {
    /// Why the client may not make a request, if so.
    #[must_use]
    pub fn objection(&self, request: &Request) -> Option<String> {
        let needed = Role::needed(request);
        if needed <= self.role {
            return None;
        }
        let (may, may_not, list) = match needed {
            Role::Operate => ("use", "take locks from others", "operate"),
            Role::Hold | Role::Observe => {
                ("look at", "hold locks, lead or exchange messages", "allow")
            }
        };
        let user = called(Some(self.user));
        Some(format!(
            "{user} may {may} this agent, but not {may_not}: the users and groups in --{list}-users and \
             --{list}-groups may, as may the agent's own user and root"
        ))
    }
}

/// Users, and groups of users.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Users {
    /// Users, by number.
    pub users: Vec<u32>,
    /// Groups, by number.
    pub groups: Vec<u32>,
}

impl Users {
    fn include(&self, user: u32, group: u32) -> bool {
        self.users.contains(&user)
            || self.groups.contains(&group)
            || !self.groups.is_empty() && groups_of(user).any(|g| self.groups.contains(&g))
    }

    fn is_empty(&self) -> bool {
        self.users.is_empty() && self.groups.is_empty()
    }
}

/// Which users may do what, besides the agent's own user and root, who may do everything.
#[derive(Clone, Debug, Default)]
pub struct AccessPolicy {
    /// Users with the role [`Role::Observe`].
    pub observe: Users,
    /// Users with the role [`Role::Hold`].
    pub hold: Users,
    /// Users with the role [`Role::Operate`].
    pub operate: Users,
}

impl AccessPolicy {
    pub(super) fn role(&self, user: u32, group: u32) -> Option<Role> {
        if user == 0 || user == nix::unistd::geteuid().as_raw() {
            return Some(Role::Operate);
        }
        [(Role::Operate, &self.operate), (Role::Hold, &self.hold), (Role::Observe, &self.observe)]
            .into_iter()
            .find_map(|(role, users)| users.include(user, group).then_some(role))
    }

    /// Whether other users than the agent's own and root may use it.
    pub(super) fn open(&self) -> bool {
        !(self.observe.is_empty() && self.hold.is_empty() && self.operate.is_empty())
    }
}

/// All groups of a user. The group under which its process runs may differ.
fn groups_of(user: u32) -> impl Iterator<Item = u32> {
    let user = User::from_uid(user.into()).ok().flatten();
    let groups = user.and_then(|user| {
        let name = CString::new(user.name).ok()?;
        getgrouplist(&name, user.gid).ok()
    });
    groups.into_iter().flatten().map(Gid::as_raw)
}

/// An access policy that can be replaced while the agent runs, and the sockets whose permissions follow it.
#[derive(Clone, Debug, Default)]
pub struct SharedAccessPolicy(Arc<RwLock<(AccessPolicy, Vec<SocketPlace>)>>);

/// A socket, and its folder if the folder contains nothing else.
#[derive(Clone, Debug)]
pub(super) struct SocketPlace {
    pub(super) socket: PathBuf,
    pub(super) folder: Option<PathBuf>,
}

impl SocketPlace {
    /// Sets the permissions of socket and folder. They only let other users reach the socket: the agent checks
    /// the credentials of each client.
    fn mark(&self, open: bool) -> io::Result<()> {
        let (socket, folder) = if open { (0o666, 0o711) } else { (0o600, 0o700) };
        fs::set_permissions(&self.socket, fs::Permissions::from_mode(socket))?;
        match &self.folder {
            Some(path) => fs::set_permissions(path, fs::Permissions::from_mode(folder)),
            None => Ok(()),
        }
    }

    /// A folder on the path to the socket that only its owner may enter, if there is one.
    fn obstacle(&self) -> Option<String> {
        let way = fs::canonicalize(&self.socket).unwrap_or_else(|_| self.socket.clone());
        let shut =
            |folder: &&Path| fs::metadata(folder).is_ok_and(|facts| facts.mode() & 0o011 == 0);
        let folder = way.ancestors().skip(1).find(shut)?.display();
        Some(format!(
            "{folder}: only its owner can enter, so the users that it admits cannot reach \
             the socket: chmod 711 {folder}"
        ))
    }
}

impl SharedAccessPolicy {
    /// Shares `policy`.
    #[must_use]
    pub fn new(policy: AccessPolicy) -> Self {
        Self(Arc::new(RwLock::new((policy, Vec::new()))))
    }

    /// Replaces the policy for new clients. An error means that the permissions of a socket could not be set.
    pub fn replace(&self, policy: AccessPolicy) -> io::Result<()> {
        let mut shared = self.0.write().unwrap_or_else(PoisonError::into_inner);
        shared.0 = policy;
        let open = shared.0.open();
        shared.1.iter().try_for_each(|place| place.mark(open))
    }

    /// Applies the policy to another socket, too.
    pub(super) fn add_socket(&self, place: SocketPlace) -> io::Result<()> {
        let mut shared = self.0.write().unwrap_or_else(PoisonError::into_inner);
        place.mark(shared.0.open())?;
        shared.1.push(place);
        Ok(())
    }

    /// Why allowed users cannot reach a socket, if so.
    #[must_use]
    pub fn obstacle(&self) -> Option<String> {
        let shared = self.0.read().unwrap_or_else(PoisonError::into_inner);
        shared.1.iter().filter(|_| shared.0.open()).find_map(SocketPlace::obstacle)
    }

    pub(super) fn ask<T>(&self, question: impl FnOnce(&AccessPolicy) -> T) -> T {
        question(&self.0.read().unwrap_or_else(PoisonError::into_inner).0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy() -> AccessPolicy {
        let only = |user| Users { users: vec![user], groups: vec![user + 1000] };
        AccessPolicy { observe: only(70_001), hold: only(70_002), operate: only(70_003) }
    }

    #[test]
    fn user_has_highest_role_that_lists_it_or_its_group() {
        let policy = policy();
        for (user, group, role) in [
            (0, 0, Some(Role::Operate)),
            (nix::unistd::geteuid().as_raw(), 1, Some(Role::Operate)),
            (70_001, 1, Some(Role::Observe)),
            (70_009, 71_001, Some(Role::Observe)),
            (70_002, 1, Some(Role::Hold)),
            (70_001, 71_002, Some(Role::Hold)),
            (70_002, 71_003, Some(Role::Operate)),
            (70_009, 1, None),
        ] {
            assert_eq!(policy.role(user, group), role, "user {user}, group {group}");
        }
        assert!(policy.open() && !AccessPolicy::default().open());
    }

    #[test]
    fn objection_names_the_list_that_would_allow_it() {
        let token = None;
        let revoke = Request::Revoke { name: "a".into(), election: false, slots: false, token };
        let send = Request::Receive { group: "a".into() };
        let by = |role| Admitted { role, user: 70_001 };
        assert_eq!(by(Role::Operate).objection(&revoke), None);
        assert_eq!(by(Role::Hold).objection(&send), None);
        assert_eq!(by(Role::Observe).objection(&Request::Watch), None);
        for (role, request, list) in [
            (Role::Observe, &revoke, "--operate-users"),
            (Role::Hold, &revoke, "--operate-groups"),
            (Role::Observe, &send, "--allow-users"),
        ] {
            let why = by(role).objection(request).expect("it may not");
            assert!(why.contains("70001") && why.contains(list), "{why}");
        }
    }
}
