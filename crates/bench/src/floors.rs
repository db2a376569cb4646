//! The floors: the same workloads written by hand, each for one algorithm and one delay. They have no
//! faults, monitors, measures or trace: only the work that the machine must do in any case.

mod maekawa;

use konklave_process::{Rng, Topology};

pub(crate) use maekawa::maekawa_grid;

/// W1: a ring buffer of packed events is the whole queue, since all delays are the same.
pub(crate) fn chang_roberts(ids: &[u32]) -> u64 {
    const ELECTED: u64 = 1 << 63;
    let n = ids.len();
    let mut ring = vec![0u64; (n + 1).next_power_of_two()];
    let mask = ring.len() - 1;
    let (mut head, mut tail, mut sent) = (0, 0, 0);
    let mut leaders = vec![0u32; n];
    let mut send = |from: usize, id: u64, tail: &mut usize, ring: &mut [u64]| {
        let to = if from + 1 == n { 0 } else { from + 1 };
        ring[*tail & mask] = id | (to as u64) << 32;
        *tail += 1;
        sent += 1;
    };
    for (place, id) in ids.iter().enumerate() {
        send(place, u64::from(*id), &mut tail, &mut ring);
    }
    while head < tail {
        let event = ring[head & mask];
        head += 1;
        let (id, place) = (event as u32, (event >> 32 & 0x7fff_ffff) as usize);
        let me = ids[place];
        if event & ELECTED != 0 {
            leaders[place] = id;
            if id != me {
                send(place, ELECTED | u64::from(id), &mut tail, &mut ring);
            }
        } else if id > me {
            send(place, u64::from(id), &mut tail, &mut ring);
        } else if id == me {
            send(place, ELECTED | u64::from(id), &mut tail, &mut ring);
        }
    }
    assert!(leaders.iter().all(|leader| *leader == leaders[0]), "all agree on the leader");
    sent
}

/// A wheel of vectors: one for each of the next 1024 ticks.
struct Wheel {
    slots: Vec<Vec<u64>>,
    now: usize,
    len: usize,
}

impl Wheel {
    fn new() -> Self {
        Self { slots: vec![Vec::new(); 1024], now: 0, len: 0 }
    }

    fn push(&mut self, delay: usize, event: u64) {
        self.slots[(self.now + delay) % 1024].push(event);
        self.len += 1;
    }

    /// Takes the events of the next busy tick in exchange for an empty list; false when no event is left.
    fn next(&mut self, events: &mut Vec<u64>) -> bool {
        if self.len == 0 {
            return false;
        }
        events.clear();
        self.now += 1;
        while self.slots[self.now % 1024].is_empty() {
            self.now += 1;
        }
        std::mem::swap(&mut self.slots[self.now % 1024], events);
        self.len -= events.len();
        true
    }
}

/// A node of W2.
#[derive(Clone, Default)]
struct Node {
    clock: u32,
    /// The time of our request; 0 if there is none.
    since: u32,
    inside: bool,
    missing: u32,
    left: u32,
    deferred: Vec<usize>,
}

/// W2: `entries` each, delays of 1 to 1000 ticks, 10 ticks inside; mutual exclusion is asserted.
pub(crate) fn ricart_agrawala(n: usize, entries: u32, seed: u64) -> u64 {
    const REQUEST: u64 = 0;
    const REPLY: u64 = 1;
    const EXIT: u64 = 2;
    let mut nodes = vec![Node { left: entries, ..Node::default() }; n];
    let (mut wheel, mut rng, mut sent, mut inside) = (Wheel::new(), Rng::new(seed), 0u64, 0);
    let pack = |kind: u64, from: usize, to: usize, time: u32| {
        kind << 48 | (from as u64) << 40 | (to as u64) << 32 | u64::from(time)
    };
    let ask = |me: usize, node: &mut Node, wheel: &mut Wheel, rng: &mut Rng, sent: &mut u64| {
        node.clock += 1;
        node.since = node.clock;
        node.left -= 1;
        node.missing = n as u32 - 1;
        for to in (0..n).filter(|to| *to != me) {
            wheel.push(1 + rng.below(1000) as usize, pack(REQUEST, me, to, node.since));
        }
        *sent += n as u64 - 1;
    };
    for (me, node) in nodes.iter_mut().enumerate() {
        ask(me, node, &mut wheel, &mut rng, &mut sent);
    }
    let mut events = Vec::new();
    while wheel.next(&mut events) {
        for event in &events {
            let (from, me) = ((event >> 40 & 0xff) as usize, (event >> 32 & 0xff) as usize);
            let (kind, time) = (event >> 48, *event as u32);
            let node = &mut nodes[me];
            match kind {
                REQUEST => {
                    node.clock = node.clock.max(time);
                    if node.inside || node.since != 0 && (node.since, me) < (time, from) {
                        node.deferred.push(from);
                    } else {
                        wheel.push(1 + rng.below(1000) as usize, pack(REPLY, me, from, node.clock));
                        sent += 1;
                    }
                }
                REPLY => {
                    node.clock = node.clock.max(time);
                    node.missing -= 1;
                    if node.missing == 0 {
                        node.inside = true;
                        inside += 1;
                        assert_eq!(inside, 1, "nobody else is inside");
                        wheel.push(10, pack(EXIT, me, me, 0));
                    }
                }
                _ => {
                    inside -= 1;
                    node.inside = false;
                    node.since = 0;
                    for to in node.deferred.drain(..) {
                        wheel.push(1 + rng.below(1000) as usize, pack(REPLY, me, to, node.clock));
                        sent += 1;
                    }
                    if node.left > 0 {
                        ask(me, node, &mut wheel, &mut rng, &mut sent);
                    }
                }
            }
        }
    }
    sent
}

/// W3: delays of 1 to 1000 ticks.
pub(crate) fn echo(graph: &Topology, seed: u64) -> u64 {
    const NOBODY: u32 = u32::MAX;
    let n = graph.len();
    let (mut starts, mut neighbours) = (vec![0u32], Vec::with_capacity(2 * graph.edges()));
    for place in 0..n {
        neighbours.extend(graph.adjacent(place).map(|p| p as u32));
        starts.push(neighbours.len() as u32);
    }
    let of = |p: usize| &neighbours[starts[p] as usize..starts[p + 1] as usize];
    let (mut parents, mut heard) = (vec![NOBODY; n], vec![0u32; n]);
    let (mut wheel, mut rng, mut sent, mut decided) = (Wheel::new(), Rng::new(seed), 0, false);
    let mut send = |from: usize, to: u32, wheel: &mut Wheel| {
        wheel.push(1 + rng.below(1000) as usize, (from as u64) << 32 | u64::from(to));
        sent += 1;
    };
    parents[0] = 0;
    for &p in of(0) {
        send(0, p, &mut wheel);
    }
    let mut events = Vec::new();
    while wheel.next(&mut events) {
        for event in &events {
            let (from, me) = ((event >> 32) as u32, *event as u32 as usize);
            heard[me] += 1;
            if parents[me] == NOBODY {
                parents[me] = from;
                for &p in of(me).iter().filter(|p| **p != from) {
                    send(me, p, &mut wheel);
                }
            }
            if heard[me] as usize == of(me).len() {
                if me == 0 {
                    decided = true;
                } else {
                    send(me, parents[me], &mut wheel);
                }
            }
        }
    }
    assert!(decided, "the wave comes back");
    sent
}
