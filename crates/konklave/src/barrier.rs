//! Barriers: nobody passes before a given number of parties has arrived.

use std::sync::Arc;

use tokio::sync::oneshot;

use crate::core::Party;
use crate::lock::check_name;
use crate::{Error, Session};

/// One party at a barrier. It can wait again and again, once at a time; a clone is another party.
#[derive(Debug)]
pub struct Barrier {
    session: Session,
    name: String,
    of: u32,
    party: Arc<Party>,
}

impl Clone for Barrier {
    fn clone(&self) -> Self {
        Self::new(self.session.clone(), &self.name, self.of)
    }
}

impl Barrier {
    pub(crate) fn new(session: Session, name: &str, of: u32) -> Self {
        Self { session, name: name.into(), of, party: Arc::default() }
    }

    /// Returns when all parties have arrived. A party that gives up, or whose node is gone, no longer counts.
    ///
    /// Cancel safe: if the barrier opens for this party after its future was dropped, the next wait returns at
    /// once.
    ///
    /// [`Error::Lost`]: this node was excluded in the meantime, so it is unknown whether the barrier opened.
    pub async fn wait(&self) -> Result<(), Error> {
        let name = check_name(self.name.as_str())?;
        if self.of == 0 {
            return Err(Error::Config(format!("{name}: a barrier needs at least one party")));
        }
        let shared = self.session.shared();
        let (reply, answer) = oneshot::channel();
        let session = self.session.number();
        let number = shared.with(|core, _| core.arrive(session, name, self.of, &self.party, reply));
        let mut waiting = Waiting { barrier: self, number, answer, answered: false };
        let answer = (&mut waiting.answer).await;
        waiting.answered = true;
        answer.map_err(|_| Error::Left)?
    }
}

/// An arrival; withdrawn if it is dropped without an answer.
struct Waiting<'a> {
    barrier: &'a Barrier,
    number: u64,
    answer: oneshot::Receiver<Result<(), Error>>,
    answered: bool,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if self.answered {
            return;
        }
        self.barrier.session.shared().with(|core, _| core.depart(self.number));
        // The barrier may have opened just before.
        if let Ok(Ok(())) = self.answer.try_recv() {
            self.barrier.party.open();
        }
    }
}
