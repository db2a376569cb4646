//! Judges a log that lock holders wrote: one holder at a time, growing tokens, served in order of request.

use std::collections::BTreeMap;

use konklave::Token;

/// Something that a holder wrote, in the order of the file that all write to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Entry {
    /// `in NAME TOKEN PID`
    In(String, Token, i32),
    /// `out NAME TOKEN`
    Out(String, Token),
    /// `overlap NAME PID`: a new holder found the previous one alive.
    Overlap(String, i32),
}

/// Reads a history.
pub(crate) fn parse(text: &str) -> Vec<Entry> {
    let entry = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        Some(match words[..] {
            ["in", name, token, pid] => {
                Entry::In(name.into(), token.parse().ok()?, pid.parse().ok()?)
            }
            ["out", name, token] => Entry::Out(name.into(), token.parse().ok()?),
            ["overlap", name, pid] => Entry::Overlap(name.into(), pid.parse().ok()?),
            _ => return None,
        })
    };
    text.lines().map(|line| entry(line).unwrap_or_else(|| panic!("no entry: {line}"))).collect()
}

/// Checks a history: the number of grants, or the first contradiction.
pub(crate) fn judge(history: &[Entry]) -> Result<usize, String> {
    let mut inside: BTreeMap<&str, Token> = BTreeMap::new();
    let mut highest: BTreeMap<&str, Token> = BTreeMap::new();
    let mut entries = 0;
    for (i, entry) in history.iter().enumerate() {
        match entry {
            Entry::Overlap(name, pid) => {
                return Err(format!("entry {i}: {name}: {pid} was still alive"));
            }
            Entry::In(name, token, _) => {
                entries += 1;
                if let Some(last) = highest.insert(name, *token)
                    && last >= *token
                {
                    return Err(format!("entry {i}: {name}: token {token} after {last}"));
                }
                // A killed holder wrote no end. The next holder checked that it was dead.
                inside.insert(name, *token);
            }
            Entry::Out(name, token) => match inside.remove(name.as_str()) {
                Some(holder) if holder == *token => {}
                holder => {
                    return Err(format!(
                        "entry {i}: {name}: {token} wrote its end while {holder:?} was inside"
                    ));
                }
            },
        }
    }
    Ok(entries)
}

/// The command that a holder runs: it looks whether the one before it is dead (be it
/// unburied), and writes down what it does.
pub(crate) fn command(folder: &str, hold: &str) -> String {
    format!(
        "d={folder}; n=$KONKLAVE_LOCK; if test -s $d/holder.$n; then p=$(cat $d/holder.$n); \
         case \"$(cut -d' ' -f3 /proc/$p/stat 2>/dev/null)\" in ''|Z|X) ;; \
         *) echo overlap $n $p >> $d/history;; esac; fi; \
         echo $$ > $d/holder.$n; echo in $n $KONKLAVE_TOKEN $$ >> $d/history; \
         {hold}; echo out $n $KONKLAVE_TOKEN >> $d/history; : > $d/holder.$n"
    )
}

#[test]
fn judge_finds_each_violation() {
    let judged = |text: &str| judge(&parse(text));
    assert_eq!(judged("in a 1.1.1 7\nout a 1.1.1\nin a 1.1.2 8\nin b 1.1.1 9"), Ok(3));
    // Killed inside.
    assert_eq!(judged("in a 1.1.1 7\nin a 1.2.2 8\nout a 1.2.2"), Ok(2));
    assert!(judged("in a 1.1.2 7\nout a 1.1.2\nin a 1.1.2 8").is_err(), "the same token again");
    assert!(judged("in a 1.2.2 7\nout a 1.2.2\nin a 1.1.9 8").is_err(), "a token of the past");
    assert!(judged("in a 1.1.1 7\nin a 1.1.2 8\nout a 1.1.1").is_err(), "two inside");
    assert!(judged("out a 1.1.1").is_err(), "out without in");
    assert!(judged("in a 1.1.1 7\noverlap a 7").is_err(), "alive");
}
