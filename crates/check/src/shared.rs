//! The parallel search: what all workers share, and what each of them does.
//!
//! A level is cut into batches. Each batch has three phases:
//! 1. *Expand*: all workers compute the successors of the batch's states.
//! 2. The first worker computes missing table entries and expands the states that needed them.
//! 3. *Insert*: all workers insert the successors, each worker into its own shards.
//!
//! Shards, batches and the order within them do not depend on the number of workers. So neither does
//! anything that the search finds.

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::expand::{Continuation, Expander, NumberedState, Rules, WORD};
use crate::store::{Batch, PREFETCH, SHARDS, Shard};
use crate::symmetry::Scratch;
use crate::tables::{Query, Tables};

/// The states of one level.
#[derive(Clone, Debug)]
pub(crate) struct Level {
    /// The number of its first state.
    pub(crate) base: u64,
    /// For each shard: the index of the level's first state there, and how many there are.
    pub(crate) ranges: Vec<(u64, u64)>,
    /// How many states it has in all shards.
    pub(crate) size: u64,
}

/// Where a state is: its position in its level, its shard, and its address in the shard's arena.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct StateLocation {
    pub(crate) position: u32,
    pub(crate) shard: u32,
    pub(crate) at: u32,
}

/// The results of one worker in one batch.
#[derive(Default)]
pub(crate) struct WorkerOutput {
    batch: Batch,
    pub(crate) transitions: u64,
    /// The ends, each with the number of messages sent; none where a client may ask again, so that the run
    /// need not end.
    pub(crate) ends: Vec<(StateLocation, Option<u32>)>,
    /// The states whose successors need a missing table entry.
    pub(crate) unfinished: Vec<StateLocation>,
    /// The first step that violates a property: position of its state, index of the step, reaction.
    pub(crate) broken: Option<(u32, u32, u32)>,
    /// Whether a state of the deepest level allowed has a successor.
    pub(crate) deeper: bool,
    numbered: NumberedState,
    expander: Expander,
    scratch: Scratch,
}

impl WorkerOutput {
    pub(crate) fn clear(&mut self) {
        self.batch.clear();
        self.ends.clear();
        self.unfinished.clear();
        self.broken = None;
    }
}

/// Adjacent states of a level that one worker expands.
#[derive(Clone, Copy)]
pub(crate) struct Block {
    pub(crate) shard: u32,
    pub(crate) at: u32,
    pub(crate) count: u32,
    pub(crate) position: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Task {
    Expand,
    Insert,
    Stop,
}

pub(crate) struct Job {
    pub(crate) task: Task,
    pub(crate) blocks: Vec<Block>,
    /// The number of the first state of the level.
    pub(crate) base: u64,
    /// Whether this is the deepest level allowed.
    pub(crate) deepest: bool,
}

/// All that workers share.
pub(crate) struct Shared {
    pub(crate) rules: Rules,
    pub(crate) tables: RwLock<Tables>,
    pub(crate) shards: Vec<RwLock<Shard>>,
    /// One for each worker, and a last one for the states that the first worker finishes for all.
    pub(crate) outputs: Vec<RwLock<WorkerOutput>>,
    pub(crate) job: RwLock<Job>,
}

pub(crate) fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    pub(crate) fn new(rules: Rules, workers: usize, tables: Tables) -> Self {
        let compact = rules.options.compact;
        Self {
            rules,
            tables: RwLock::new(tables),
            shards: (0..SHARDS).map(|_| RwLock::new(Shard::new(compact))).collect(),
            outputs: (0..=workers).map(|_| RwLock::default()).collect(),
            job: RwLock::new(Job { task: Task::Stop, blocks: Vec::new(), base: 0, deepest: false }),
        }
    }

    /// The blocks of the current level, in the order of the shards.
    pub(crate) fn blocks(&self) -> Vec<Block> {
        let mut blocks = Vec::new();
        let mut position = 0;
        for (number, shard) in self.shards.iter().enumerate() {
            for &(at, count) in &read(shard).blocks {
                blocks.push(Block { shard: number as u32, at, count, position });
                position += count;
            }
        }
        blocks
    }

    /// Does worker `me`'s part of the current task; returns false when the workers must stop.
    pub(crate) fn work(&self, me: usize, workers: usize) -> bool {
        let job = read(&self.job);
        match job.task {
            Task::Expand => self.look(&job, me, workers),
            Task::Insert => {
                for shard in (me..SHARDS).step_by(workers) {
                    self.put(&job, shard, workers);
                }
            }
            Task::Stop => return false,
        }
        true
    }

    fn look(&self, job: &Job, me: usize, workers: usize) {
        let (tables, mut output) = (read(&self.tables), write(&self.outputs[me]));
        output.clear();
        let share = job.blocks.len().div_ceil(workers);
        let blocks = job.blocks.iter().skip(share * me).take(share);
        for block in blocks {
            let shard = read(&self.shards[block.shard as usize]);
            let rows = shard.current_rows();
            let mut at = block.at;
            for i in 0..block.count {
                let location =
                    StateLocation { position: block.position + i, shard: block.shard, at };
                let packed = rows.get(at);
                if expand_state(location, packed, &tables, &self.rules, job.deepest, &mut output)
                    .is_err()
                {
                    output.unfinished.push(location);
                }
                at = rows.after(at);
            }
        }
    }

    /// Inserts the successors that belong to a shard, in the order of their parents.
    fn put(&self, job: &Job, number: usize, workers: usize) {
        let mut shard = write(&self.shards[number]);
        let extra = read(&self.outputs[workers]);
        let extra = &extra.batch;
        let mut late = extra.heads[number].iter().peekable();
        for output in &self.outputs[..workers] {
            let output = read(output);
            let batch = &output.batch;
            for group in batch.heads[number].chunks(PREFETCH) {
                shard.touch(group);
                for head in group {
                    while let Some(early) = late.next_if(|late| late.parent < head.parent) {
                        let parent = job.base + u64::from(early.parent);
                        shard.insert(early.hash, parent, early.step, extra.packed(early));
                    }
                    let parent = job.base + u64::from(head.parent);
                    shard.insert(head.hash, parent, head.step, batch.packed(head));
                }
            }
        }
        for head in late {
            let parent = job.base + u64::from(head.parent);
            shard.insert(head.hash, parent, head.step, extra.packed(head));
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        let shards: usize = self.shards.iter().map(|shard| read(shard).bytes()).sum();
        let outputs = self.outputs.iter().map(|output| read(output).batch.bytes());
        (shards + outputs.sum::<usize>() + read(&self.tables).bytes()) as u64
    }
}

/// Collects the successors of one state, unless a table entry is missing.
pub(crate) fn expand_state(
    location: StateLocation,
    packed: &[u8],
    tables: &Tables,
    rules: &Rules,
    deepest: bool,
    output: &mut WorkerOutput,
) -> Result<(), Query> {
    let WorkerOutput {
        batch, transitions, ends, broken, deeper, numbered, expander, scratch, ..
    } = output;
    numbered.unpack(tables, rules, packed);
    let (mut step, mut first) = (0, None);
    let known = expander.expand(numbered, tables, rules, &mut |next| {
        if next.violated && first.is_none() {
            first = Some((location.position, step, next.reaction));
        }
        let code = step << 1 | u32::from(next.untimed_progress);
        step += 1;
        let Some(symmetry) = &tables.symmetry else {
            batch.push(location.position, code, next.most(), |bytes| next.write(rules, bytes));
            return;
        };
        next.write_to(&mut scratch.here);
        symmetry.canonical(tables, rules, scratch);
        let Scratch { best, packed, .. } = scratch;
        packed.clear();
        best.pack(rules, packed);
        batch.push(location.position, code, packed.len() + WORD, |bytes| {
            let (row, zeros) = bytes.split_at_mut(packed.len());
            row.copy_from_slice(packed);
            zeros.fill(0);
            row.len()
        });
    });
    match known {
        Err(query) => {
            batch.retract(location.position);
            Err(query)
        }
        Ok(continuation) => {
            *transitions += u64::from(step);
            match continuation {
                Continuation::Nothing => ends.push((location, Some(numbered.sent))),
                Continuation::Voluntary => ends.push((location, None)),
                Continuation::Necessary => {}
            }
            if deepest {
                batch.retract(location.position);
                *deeper |= step > 0;
            } else if broken.is_none_or(|(position, ..)| location.position < position) {
                *broken = first.or(*broken);
            }
            Ok(())
        }
    }
}

impl Level {
    pub(crate) fn ranges(&self) -> &[(u64, u64)] {
        &self.ranges
    }
}
