//! What only the types of an algorithm can answer.
//!
//! The search knows numbers. What they stand for, a craft knows: it runs the handlers, once for each
//! local state and input, and writes what came of it into the tables.

use konklave_process::Violation;

use crate::expand::{Node, Rules};
use crate::reduce::Commutation;
use crate::tables::{Miss, Tables};

pub(crate) trait Craft {
    /// The states in which everyone has come up, one for each series of draws, and what is wrong
    /// with them.
    fn starts(&mut self, tables: &mut Tables, rules: &Rules) -> Vec<(Node, Option<Violation>)>;

    /// Works out what was missed.
    fn resolve(&mut self, miss: Miss, tables: &mut Tables);

    /// Whether all that `miss` asks about has a number: so it is, unless the question is of another
    /// model.
    fn knows(&self, miss: Miss) -> bool;

    /// Compares what was taken to commute; says whether some of it does not.
    fn commute(&mut self, known: &mut Commutation, tables: &mut Tables) -> bool;

    /// What a reaction that breaks something breaks.
    fn violation(&self, reaction: u32) -> Violation;

    /// Judges an end: nothing more can happen to these locals.
    fn judge_end(&mut self, locals: &[u32], ambient: u32, tables: &mut Tables)
    -> Option<Violation>;

    /// Forgets all that has a number.
    fn forget(&mut self);

    /// Stands for all that has a number, in order.
    fn digest(&self) -> u64;

    /// About how many bytes all values take, not counting what they own.
    fn bytes(&self) -> usize;
}
