//! `PostgreSQL`: advisory locks of a session. One server, no replication, no token to check.

use std::fs;
use std::io::{self, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::wire::{call, strange};
use super::{Client, Peer};

pub(super) struct PostgreSql;

impl Peer for PostgreSql {
    fn name(&self) -> &'static str {
        "postgresql"
    }

    fn package(&self) -> &'static str {
        "postgresql"
    }

    /// Debian has one directory per version: take the highest.
    fn program(&self) -> Option<PathBuf> {
        let versions = fs::read_dir("/usr/lib/postgresql").ok()?.flatten();
        let version = |path: &PathBuf| path.file_name()?.to_str()?.parse::<u32>().ok();
        let newest = versions.map(|entry| entry.path()).max_by_key(version)?;
        Some(newest.join("bin/postgres")).filter(|file| file.is_file())
    }

    fn servers(&self) -> usize {
        1
    }

    fn ports(&self) -> usize {
        1
    }

    fn prepare(&self, i: usize, folder: &Path, ports: &[Vec<u16>]) -> io::Result<Command> {
        let program = self.program().ok_or(io::ErrorKind::NotFound)?;
        let data = folder.join("data");
        // The server refuses to run as root.
        let user = if rustix::process::getuid().is_root() { Some(postgres()?) } else { None };
        if let Some((uid, gid)) = user {
            chown(folder, Some(uid), Some(gid))?;
        }
        if let Some(parent) = folder.parent() {
            fs::set_permissions(parent, fs::Permissions::from_mode(0o755))?;
        }
        let mut initdb = become_user(&program.with_file_name("initdb"), user);
        initdb.args(["-A", "trust", "-U", "postgres", "--no-sync", "-D"]).arg(&data);
        let made = initdb.current_dir(folder).output()?;
        if !made.status.success() {
            return Err(strange(String::from_utf8_lossy(&made.stderr)));
        }
        let mut command = become_user(&program, user);
        command.arg("-D").arg(&data).args(["-h", "127.0.0.1", "-k", ""]);
        command.arg("-p").arg(ports[i][0].to_string());
        Ok(command)
    }

    fn connect(
        &self,
        ports: &[u16],
        _: Duration,
        patience: Duration,
    ) -> io::Result<Box<dyn Client>> {
        let port = *ports.first().ok_or(io::ErrorKind::NotFound)?;
        let mut stream = call(port, patience)?;
        let who = b"user\0postgres\0database\0postgres\0\0";
        let length = (who.len() as u32 + 8).to_be_bytes();
        stream.write_all(&[&length[..], &196_608_u32.to_be_bytes(), who].concat())?;
        let mut session = Session { stream: BufReader::new(stream), prepared: Vec::new(), held: 0 };
        session.finish()?;
        Ok(Box::new(session))
    }

    /// The only server: its locks end with it.
    fn leader(&self, _: &[u16]) -> io::Result<Option<usize>> {
        Ok(None)
    }
}

/// Debian's user for it.
fn postgres() -> io::Result<(u32, u32)> {
    let users = fs::read_to_string("/etc/passwd")?;
    let line = users.lines().find(|line| line.starts_with("postgres:"));
    let ids = line.and_then(|line| {
        let mut fields = line.split(':').skip(2).map(str::parse);
        Some((fields.next()?.ok()?, fields.next()?.ok()?))
    });
    ids.ok_or_else(|| strange("there is no user postgres"))
}

fn become_user(program: &Path, user: Option<(u32, u32)>) -> Command {
    let Some((uid, gid)) = user else { return Command::new(program) };
    let mut command = Command::new("setpriv");
    command.args([&format!("--reuid={uid}"), &format!("--regid={gid}"), "--clear-groups"]);
    command.arg(program);
    command
}

/// A message: kind, length, body.
fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u32 + 4).to_be_bytes();
    [&[kind][..], &length, body].concat()
}

struct Session {
    stream: BufReader<TcpStream>,
    /// The locks with prepared statements: statement `2i` takes lock `i`, `2i + 1` releases it.
    prepared: Vec<String>,
    held: usize,
}

impl Session {
    /// Reads until the server is ready for the next query.
    fn finish(&mut self) -> io::Result<()> {
        loop {
            let mut kind = [0];
            self.stream.read_exact(&mut kind)?;
            let mut length = [0; 4];
            self.stream.read_exact(&mut length)?;
            let rest = u32::from_be_bytes(length).saturating_sub(4);
            let mut body = vec![0; rest.min(1 << 20) as usize];
            self.stream.read_exact(&mut body)?;
            match kind[0] {
                b'Z' => return Ok(()),
                b'E' => return Err(strange(String::from_utf8_lossy(&body).replace('\0', " "))),
                _ => {}
            }
        }
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.get_mut().write_all(bytes)?;
        self.finish()
    }

    /// The number of a lock; prepares its statements.
    fn prepare(&mut self, lock: &str) -> io::Result<usize> {
        if let Some(known) = self.prepared.iter().position(|name| name == lock) {
            return Ok(known);
        }
        let i = self.prepared.len();
        // The server computes the key of a name.
        for (number, call) in [(2 * i, "pg_advisory_lock"), (2 * i + 1, "pg_advisory_unlock")] {
            let body = format!("s{number}\0SELECT {call}(hashtext('{lock}'))\0\0\0");
            self.send(&[message(b'P', body.as_bytes()), message(b'S', &[])].concat())?;
        }
        self.prepared.push(lock.into());
        Ok(i)
    }

    fn execute(&mut self, number: usize) -> io::Result<()> {
        // No parameters, no result formats, all rows.
        let bind = message(b'B', format!("\0s{number}\0\0\0\0\0\0\0").as_bytes());
        let execute = message(b'E', &[0, 0, 0, 0, 0]);
        self.send(&[bind, execute, message(b'S', &[])].concat())
    }
}

impl Client for Session {
    fn acquire(&mut self, lock: &str) -> io::Result<()> {
        let i = self.prepare(lock)?;
        self.execute(2 * i)?;
        self.held = i;
        Ok(())
    }

    fn release(&mut self) -> io::Result<()> {
        self.execute(2 * self.held + 1)
    }
}
