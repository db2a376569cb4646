//! Barriers: nobody passes before a given number of parties has arrived.

use tokio::sync::oneshot;

use crate::lock::check_name;
use crate::{Error, Session};

/// A barrier for a number of parties. It can be used again and again.
#[derive(Clone, Debug)]
pub struct Barrier {
    session: Session,
    name: String,
    of: u32,
}

impl Barrier {
    pub(crate) fn new(session: Session, name: &str, of: u32) -> Self {
        Self { session, name: name.into(), of }
    }

    /// Returns when all parties have arrived. A party that gives up, or whose node is gone, no longer counts.
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
        let number = shared.with(|core, _| core.arrive(session, name, self.of, reply));
        let depart = DepartOnDrop { session: &self.session, number };
        let answer = answer.await.map_err(|_| Error::Left)?;
        // Answered: there is nothing to withdraw.
        std::mem::forget(depart);
        answer
    }
}

struct DepartOnDrop<'a> {
    session: &'a Session,
    number: u64,
}

impl Drop for DepartOnDrop<'_> {
    fn drop(&mut self) {
        self.session.shared().with(|core, _| core.depart(self.number));
    }
}
