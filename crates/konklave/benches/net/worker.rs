//! Worker processes: they take a command per line of standard input, and answer with a line of JSON. Our
//! members and the peers' clients take the same commands.

use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use serde_json::Value;

/// The longest time for a command.
const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) struct Worker {
    child: Child,
    orders: ChildStdin,
    answers: mpsc::Receiver<Value>,
}

impl Worker {
    pub(crate) fn start(command: &mut Command) -> io::Result<Self> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let orders = child.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
        let output = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
        let (to, answers) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let Ok(answer) = serde_json::from_str(&line) else { continue };
                if to.send(answer).is_err() {
                    break;
                }
            }
        });
        Ok(Self { child, orders, answers })
    }

    pub(crate) fn order(&mut self, order: &str) -> io::Result<()> {
        writeln!(self.orders, "{order}")
    }

    pub(crate) fn answer(&self) -> io::Result<Value> {
        let answer = self.answers.recv_timeout(PATIENCE);
        answer.map_err(|error| io::Error::other(format!("no answer: {error}")))
    }

    pub(crate) fn ask(&mut self, order: &str) -> io::Result<Value> {
        self.order(order)?;
        self.answer()
    }

    /// kill -9.
    pub(crate) fn kill(&mut self) -> io::Result<()> {
        self.child.kill()
    }

    pub(crate) fn pid(&self) -> i32 {
        self.child.id().cast_signed()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A number in an answer.
pub(crate) fn number(answer: &Value, name: &str) -> f64 {
    answer[name].as_f64().unwrap_or(f64::NAN)
}
