//! Fences at resources.

mod postgresql;
mod server;

use konklave::fence::{FenceGate, FencedFile, HEADER, HeaderError, SQL};
use konklave::testing::Cluster;
use konklave::{Handover, Token};
use rusqlite::{Connection, named_params};

fn tokens() -> (Token, Token) {
    let old = Token { generation: 1, epoch: 9, k: 7 << 20 };
    (old, Token { epoch: 10, k: 1 << 20, ..old })
}

#[test]
fn header_is_checked() {
    let (old, new) = tokens();
    let mut gate = FenceGate::default();
    assert_eq!(HEADER, "Konklave-Token");
    assert_eq!(gate.admit_header(Some(&old.to_string())), Ok(old));
    assert_eq!(gate.admit_header(Some(&format!(" {} ", new.to_hex()))), Ok(new));
    let stale = gate.admit_header(Some(&old.to_hex())).unwrap_err();
    assert!(matches!(stale, HeaderError::Stale(_)));
    let statuses = [None, Some("x"), Some(""), Some("1.2.3")]
        .map(|value| gate.admit_header(value).unwrap_err().status());
    assert_eq!(statuses, [400, 400, 400, 409]);
}

#[test]
fn stale_token_does_not_write_file() {
    let folder = std::env::temp_dir().join(format!("konklave-fence-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (old, new) = tokens();
    let file = FencedFile::new(folder.join("report"));
    file.write(old, b"old").unwrap().unwrap();
    file.write(old, b"old again").unwrap().unwrap();
    // Another process opens the same file.
    let other = FencedFile::new(folder.join("report"));
    other.write(new, b"new").unwrap().unwrap();
    assert!(file.write(old, b"late").unwrap().is_err());
    assert_eq!(std::fs::read(folder.join("report")).unwrap(), b"new");
    // A fence written by hand may be longer than ours.
    std::fs::write(folder.join("report.fence"), format!("{new}{:>40}", "")).unwrap();
    file.write(new, b"newer").unwrap().unwrap();
    assert_eq!(std::fs::read_to_string(folder.join("report.fence")).unwrap(), new.to_hex());
    file.write(new, b"newest").unwrap().unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn stale_token_does_not_change_row() {
    let database = Connection::open_in_memory().unwrap();
    let create = "CREATE TABLE account
        (id INTEGER PRIMARY KEY, balance INTEGER, fence TEXT NOT NULL DEFAULT '')";
    database.execute(create, []).unwrap();
    database.execute("INSERT INTO account (id, balance) VALUES (1, 100)", []).unwrap();
    let write = |balance: i64, token: Token| {
        let values = named_params! { ":balance": balance, ":token": token.to_hex(), ":id": 1 };
        database.execute(SQL, values).unwrap()
    };
    // Tokens of a real group: an isolated holder, and the one after it.
    let cluster = Cluster::new(3);
    cluster.block_on(async {
        let first =
            cluster.node(0).lock("account").handover(Handover::Fast).acquire().await.unwrap();
        assert_eq!(write(90, first.token()), 1);
        cluster.isolate(0);
        let second =
            cluster.node(1).lock("account").handover(Handover::Fast).acquire().await.unwrap();
        assert_eq!(write(80, second.token()), 1);
        assert_eq!(write(70, first.token()), 0, "it held the lock in the past");
        assert_eq!(write(60, second.token()), 1);
    });
    let balance: i64 =
        database.query_row("SELECT balance FROM account", [], |row| row.get(0)).unwrap();
    assert_eq!(balance, 60);
}

#[test]
fn fenced_file_keeps_mode_and_symbolic_link() {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};
    let folder = std::env::temp_dir().join(format!("konklave-private-{}", std::process::id()));
    fs::create_dir_all(folder.join("real")).unwrap();
    let (old, new) = tokens();
    let (real, link) = (folder.join("real/secret"), folder.join("link"));
    fs::write(&real, "first").unwrap();
    fs::set_permissions(&real, fs::Permissions::from_mode(0o600)).unwrap();
    symlink("real/secret", &link).unwrap();
    FencedFile::new(&link).write(new, b"second").unwrap().unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::read(&real).unwrap(), b"second");
    assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o7777, 0o600);
    // A file has one fence, by whatever name.
    assert!(FencedFile::new(&real).write(old, b"late").unwrap().is_err());
    // A link to a file that does not exist yet.
    symlink("real/later", folder.join("dangling")).unwrap();
    FencedFile::new(folder.join("dangling")).write(new, b"there").unwrap().unwrap();
    assert_eq!(fs::read(folder.join("real/later")).unwrap(), b"there");
    // A cycle of links is an error.
    symlink("ring", folder.join("ring")).unwrap();
    assert!(FencedFile::new(folder.join("ring")).write(new, b"x").is_err());
    fs::remove_dir_all(&folder).unwrap();
}
