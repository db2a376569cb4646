//! Maekawa's lock on a square grid, in which each process makes one request, written by hand.
//!
//! It uses facts that the algorithm cannot know. All requests have the same logical time, so an id of two
//! bytes is a whole request. No process makes a second request, so messages need not name their request.
//! The two ids determine the place of an arbiter in a quorum. The rest is one queue or one bit for each
//! message, which is rarely in the cache.

use konklave_process::Rng;

use super::Wheel;

const REQUEST: u64 = 0;
const LOCKED: u64 = 1;
const FAILED: u64 = 2;
const INQUIRE: u64 = 3;
const RELINQUISH: u64 = 4;
const RELEASE: u64 = 5;
const EXIT: u64 = 6;

#[derive(Clone, Default)]
struct Node {
    /// The processes that wait, the oldest request (lowest id) last.
    queue: Vec<u16>,
    /// The head of the queue, if the arbiter still has to send it FAILED.
    untold: Option<u16>,
    holder: Option<u16>,
    inquired: bool,
    wants: bool,
    missing: u16,
    /// By place in the quorum: first the row, then the column.
    locked: [u64; 4],
    failed: [u64; 4],
    wanted_back: Vec<u16>,
}

struct Grid {
    side: usize,
    wheel: Wheel,
    rng: Rng,
    sent: u64,
    inside: u32,
    /// Messages of the current process to itself.
    own: Vec<(u64, usize)>,
}

impl Grid {
    fn send(&mut self, kind: u64, from: usize, to: usize) {
        if from == to {
            return self.own.push((kind, to));
        }
        self.sent += 1;
        let event = kind << 32 | (from as u64) << 16 | to as u64;
        self.wheel.push(1 + self.rng.below(1000) as usize, event);
    }

    fn tell_quorum(&mut self, kind: u64, me: usize) {
        let (row, column) = (me / self.side, me % self.side);
        for i in 0..self.side {
            self.send(kind, me, row * self.side + i);
            if i != row {
                self.send(kind, me, i * self.side + column);
            }
        }
    }

    /// The bit of `arbiter` in the quorum of `me`: the word and the bit.
    fn seat(&self, me: usize, arbiter: usize) -> (usize, u64) {
        let (row, column) = (arbiter / self.side, arbiter % self.side);
        let seat = if row == me / self.side { column } else { self.side + row };
        (seat / 64, 1 << (seat % 64))
    }

    fn grant(&mut self, me: usize, node: &mut Node) {
        node.holder = node.queue.pop();
        node.inquired = false;
        if let Some(next) = node.holder {
            node.untold.take_if(|untold| *untold == next);
            self.send(LOCKED, me, next.into());
        }
    }

    fn give_back(&mut self, me: usize, node: &mut Node) {
        if node.wanted_back.is_empty() || node.failed == [0; 4] {
            return;
        }
        for arbiter in std::mem::take(&mut node.wanted_back) {
            let (word, bit) = self.seat(me, arbiter.into());
            if node.locked[word] & bit == 0 {
                node.wanted_back.push(arbiter);
                continue;
            }
            node.locked[word] &= !bit;
            node.failed[word] |= bit;
            node.missing += 1;
            self.send(RELINQUISH, me, arbiter.into());
        }
    }

    fn hear(&mut self, kind: u64, from: usize, me: usize, node: &mut Node) {
        let who = from as u16;
        match kind {
            REQUEST => {
                let place = node.queue.partition_point(|other| *other > who);
                let oldest = place == node.queue.len();
                node.queue.insert(place, who);
                match node.holder {
                    None => self.grant(me, node),
                    Some(holder) if oldest && who < holder => {
                        if !std::mem::replace(&mut node.inquired, true) {
                            self.send(INQUIRE, me, holder.into());
                        }
                        if let Some(displaced) = node.untold.replace(who) {
                            self.send(FAILED, me, displaced.into());
                        }
                    }
                    Some(_) => self.send(FAILED, me, from),
                }
            }
            RELINQUISH | RELEASE if node.holder == Some(who) => {
                if kind == RELINQUISH {
                    let place = node.queue.partition_point(|other| *other > who);
                    node.queue.insert(place, who);
                }
                self.grant(me, node);
            }
            LOCKED if node.wants => {
                let (word, bit) = self.seat(me, from);
                node.locked[word] |= bit;
                node.failed[word] &= !bit;
                node.missing -= 1;
                if node.missing > 0 {
                    return self.give_back(me, node);
                }
                node.wants = false;
                self.inside += 1;
                assert_eq!(self.inside, 1, "nobody else is inside");
                self.wheel.push(10, EXIT << 32 | (me as u64) << 16 | me as u64);
            }
            FAILED if node.wants => {
                let (word, bit) = self.seat(me, from);
                node.failed[word] |= bit & !node.locked[word];
                self.give_back(me, node);
            }
            INQUIRE if node.wants => {
                node.wanted_back.push(who);
                self.give_back(me, node);
            }
            EXIT => {
                self.inside -= 1;
                self.tell_quorum(RELEASE, me);
            }
            _ => {}
        }
    }

    /// Delivers the messages that `me` sent to itself in a step, at the end of the step.
    fn hear_own(&mut self, me: usize, node: &mut Node) {
        while !self.own.is_empty() {
            let (kind, _) = self.own.remove(0);
            self.hear(kind, me, me, node);
        }
    }
}

/// All processes of a grid of `side` × `side`, up to 2⁸ a side, request the lock at once; delays of 1 to 1000 ticks,
/// 10 ticks inside. Asserts mutual exclusion, and that every process is served.
pub(crate) fn maekawa_grid(side: usize, seed: u64) -> u64 {
    let n = side * side;
    let missing = 2 * side as u16 - 1;
    let mut nodes = vec![Node { wants: true, missing, ..Node::default() }; n];
    let (wheel, rng) = (Wheel::new(), Rng::new(seed));
    let mut grid = Grid { side, wheel, rng, sent: 0, inside: 0, own: Vec::new() };
    for (me, node) in nodes.iter_mut().enumerate() {
        grid.tell_quorum(REQUEST, me);
        grid.hear_own(me, node);
    }
    let mut events = Vec::new();
    while grid.wheel.next(&mut events) {
        for event in &events {
            let (from, me) = ((event >> 16 & 0xffff) as usize, (event & 0xffff) as usize);
            let node = &mut nodes[me];
            grid.hear(event >> 32, from, me, node);
            grid.hear_own(me, node);
        }
    }
    assert!(nodes.iter().all(|node| !node.wants), "everyone is served");
    grid.sent
}
