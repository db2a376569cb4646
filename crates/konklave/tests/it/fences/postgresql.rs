//! The fence statement in PostgreSQL, with its own client.

use std::time::{Duration, Instant};

use konklave::Token;
use konklave::fence::{COLUMN, SQL};

use super::server::{Server, Session};

fn accounts(language: Option<&str>) -> Option<(Server, Session)> {
    let server = Server::new(language)?;
    let mut session = server.session();
    let create =
        format!("CREATE TABLE account (id INTEGER PRIMARY KEY, balance INTEGER, {COLUMN});");
    assert_eq!(session.ask(&create), ["CREATE TABLE"]);
    session.ask("INSERT INTO account (id, balance) VALUES (1, 100), (2, 100);");
    Some((server, session))
}

/// The statement with its values filled in.
fn write(balance: u32, token: Token) -> String {
    let token = token.to_hex();
    format!("\\set id 1\n\\set balance {balance}\n\\set token '''{token}'''\n{SQL};")
}

fn balances(session: &mut Session) -> Vec<String> {
    session.ask("SELECT balance FROM account ORDER BY id;")
}

fn tokens() -> (Token, Token) {
    let old = Token { generation: 1, epoch: 9, k: 7 << 20 };
    (old, Token { epoch: 10, k: 1 << 20, ..old })
}

#[test]
fn stale_token_does_not_change_row() {
    let Some((_server, mut session)) = accounts(None) else { return };
    let (old, new) = tokens();
    assert_eq!(session.ask(&write(90, old)), ["UPDATE 1"]);
    assert_eq!(session.ask(&write(80, new)), ["UPDATE 1"]);
    assert_eq!(session.ask(&write(70, old)), ["UPDATE 0"]);
    assert_eq!(session.ask(&write(60, new)), ["UPDATE 1"], "the same holder may come again");
    assert_eq!(balances(&mut session), ["60", "100"]);
}

/// As drivers do: values apart from the text.
#[test]
fn the_statement_can_be_prepared() {
    let Some((_server, mut session)) = accounts(None) else { return };
    let (old, new) = tokens();
    let numbered = SQL.replace(":balance", "$1").replace(":token", "$2").replace(":id", "$3");
    assert_eq!(session.ask(&format!("PREPARE fenced AS {numbered};")), ["PREPARE"]);
    for (token, changed) in [(new, "UPDATE 1"), (old, "UPDATE 0"), (new, "UPDATE 1")] {
        let hex = token.to_hex();
        assert_eq!(session.ask(&format!("EXECUTE fenced(50, '{hex}', 1);")), [changed]);
    }
}

#[test]
fn collation_does_not_change_order_of_tokens() {
    let Some((_server, mut session)) = accounts(Some("da")) else { return };
    // In Danish `aa` comes last, as å.
    assert_eq!(session.ask("SELECT 'aa' < 'ab';"), ["f"]);
    let (old, new) = (Token { k: 0xaa, ..Token::default() }, Token { k: 0xab, ..Token::default() });
    assert_eq!(session.ask(&write(80, new)), ["UPDATE 1"]);
    assert_eq!(session.ask(&write(70, old)), ["UPDATE 0"]);
    assert_eq!(session.ask(&write(60, new)), ["UPDATE 1"]);
}

/// A later holder's transaction is open when a former holder writes.
#[test]
fn stale_token_is_refused_after_waiting_for_row() {
    let Some((server, mut later)) = accounts(None) else { return };
    let (old, new) = tokens();
    for (level, answer) in [("READ COMMITTED", &["UPDATE 0"][..]), ("REPEATABLE READ", &[])] {
        let (mut past, mut watcher) = (server.session(), server.session());
        // The former holder does not see the later write yet: it has to wait for the row, and check again.
        assert_eq!(later.ask("UPDATE account SET fence = '';"), ["UPDATE 2"]);
        past.ask(&format!("SET default_transaction_isolation = '{level}';"));
        assert_eq!(later.ask("BEGIN;"), ["BEGIN"]);
        assert_eq!(later.ask(&write(80, new)), ["UPDATE 1"]);
        past.say(&write(70, old));
        waits(&mut watcher);
        assert_eq!(later.ask("COMMIT;"), ["COMMIT"]);
        // In the second case it is an error: the row has changed since the transaction began.
        assert_eq!(past.hear(), answer, "{level}");
        assert_eq!(balances(&mut watcher), ["80", "100"]);
    }
    // The other way round, both write, the later holder last.
    let mut past = server.session();
    assert_eq!(past.ask("UPDATE account SET fence = '';\nBEGIN;"), ["UPDATE 2", "BEGIN"]);
    assert_eq!(past.ask(&write(50, old)), ["UPDATE 1"]);
    later.say(&write(40, new));
    waits(&mut server.session());
    assert_eq!(past.ask("COMMIT;"), ["COMMIT"]);
    assert_eq!(later.hear(), ["UPDATE 1"]);
    assert_eq!(balances(&mut later), ["40", "100"]);
}

/// Waits until a session is blocked on a row.
fn waits(watcher: &mut Session) {
    let start = Instant::now();
    while watcher.ask("SELECT count(*) FROM pg_locks WHERE NOT granted;") != ["1"] {
        assert!(start.elapsed() < Duration::from_secs(60), "nobody waits");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Two sessions write as fast as they can, with tokens that go up and down: the stored token only goes up.
#[test]
fn racing_writers_never_lower_the_fence() {
    let Some((server, mut session)) = accounts(None) else { return };
    session.ask(
        "CREATE TABLE history (number BIGSERIAL, fence TEXT);
         CREATE FUNCTION note() RETURNS TRIGGER LANGUAGE plpgsql AS
           'BEGIN INSERT INTO history (fence) VALUES (NEW.fence); RETURN NEW; END';
         CREATE TRIGGER note AFTER UPDATE ON account FOR EACH ROW EXECUTE FUNCTION note();",
    );
    let racers = [1_u64, 2].map(|who| {
        let mut racer = server.session();
        // Rising overall, with steps back, and never equal to the other session's.
        let token = |i: u64| Token { k: 2 * (i + 40 * (i % 3)) + who, ..Token::default() };
        let all: Vec<String> = (0..400).map(|i| write(i as u32, token(i))).collect();
        racer.say(&all.join("\n"));
        racer
    });
    let answers = racers.map(|mut racer| racer.hear());
    for answer in &answers {
        assert_eq!(answer.len(), 400);
        assert!(answer.iter().any(|line| line == "UPDATE 0"), "nobody was ever too late");
    }
    let changed = answers.iter().flatten().filter(|line| *line == "UPDATE 1").count();
    let history = session.ask("SELECT fence FROM history ORDER BY number;");
    assert_eq!(history.len(), changed);
    assert!(history.is_sorted(), "a lower token came after a higher one");
    assert_eq!(session.ask("SELECT fence FROM account WHERE id = 1;")[..], history[changed - 1..]);
}
