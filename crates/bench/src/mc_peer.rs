//! MC(n, k) for stateright, as an actor system: the peer in the same process.

use std::borrow::Cow;

use stateright::actor::{Actor, ActorModel, Id, Network, Out};
use stateright::{Checker, Expectation, Model};

#[derive(Clone)]
struct Node {
    n: usize,
    k: u8,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct State {
    clock: u8,
    phase: u8,
    timestamp: u8,
    replies: u8,
    deferred: u16,
    left: u8,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
enum Message {
    Request(u8),
    Reply,
}

const IDLE: u8 = 0;
const WANTING: u8 = 1;
const HELD: u8 = 2;

impl Node {
    fn others(&self, me: Id) -> impl Iterator<Item = Id> + use<> {
        (0..self.n).map(Id::from).filter(move |id| *id != me)
    }
}

/// Requests and exits are timers, which may fire at any time while they are set.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
enum Wish {
    Enter,
    Exit,
}

fn soon() -> std::ops::Range<std::time::Duration> {
    std::time::Duration::ZERO..std::time::Duration::ZERO
}

impl Actor for Node {
    type Msg = Message;
    type State = State;
    type Timer = Wish;
    type Random = ();
    type Storage = ();

    fn on_start(&self, _: Id, _: &Option<()>, out: &mut Out<Self>) -> State {
        out.set_timer(Wish::Enter, soon());
        State { clock: 0, phase: IDLE, timestamp: 0, replies: 0, deferred: 0, left: self.k }
    }

    fn on_timeout(&self, id: Id, state: &mut Cow<'_, State>, wish: &Wish, out: &mut Out<Self>) {
        let state = state.to_mut();
        match wish {
            Wish::Enter => {
                state.clock += 1;
                (state.timestamp, state.phase) = (state.clock, WANTING);
                state.left -= 1;
                self.others(id).for_each(|to| out.send(to, Message::Request(state.timestamp)));
            }
            Wish::Exit => {
                (state.phase, state.timestamp, state.replies) = (IDLE, 0, 0);
                let deferred = std::mem::take(&mut state.deferred);
                let waiting = self.others(id).filter(|p| deferred >> usize::from(*p) & 1 == 1);
                waiting.for_each(|to| out.send(to, Message::Reply));
                if state.left > 0 {
                    out.set_timer(Wish::Enter, soon());
                }
            }
        }
    }

    fn on_msg(
        &self,
        id: Id,
        state: &mut Cow<'_, State>,
        src: Id,
        msg: Message,
        out: &mut Out<Self>,
    ) {
        let state = state.to_mut();
        match msg {
            Message::Request(timestamp) => {
                state.clock = state.clock.max(timestamp);
                let ours = (state.timestamp, id) < (timestamp, src);
                if state.phase == HELD || state.phase == WANTING && ours {
                    state.deferred |= 1 << usize::from(src);
                } else {
                    out.send(src, Message::Reply);
                }
            }
            Message::Reply => {
                state.replies += 1;
                if usize::from(state.replies) == self.n - 1 {
                    state.phase = HELD;
                    out.set_timer(Wish::Exit, soon());
                }
            }
        }
    }
}

/// Stateright's search, depth first or breadth first, on one thread. Returns states and transitions.
pub(crate) fn exhaust(n: usize, k: u8, fifo: bool, dfs: bool) -> Result<(u64, u64), String> {
    let network =
        if fifo { Network::new_ordered([]) } else { Network::new_unordered_nonduplicating([]) };
    let model = ActorModel::new((), ())
        .actors((0..n).map(|_| Node { n, k }))
        .init_network(network)
        .property(Expectation::Always, "mutual exclusion", |_, state| {
            state.actor_states.iter().filter(|node| node.phase == HELD).count() <= 1
        });
    let checker = model.checker().threads(1);
    let (unique, all, found) = if dfs {
        let done = checker.spawn_dfs().join();
        (done.unique_state_count(), done.state_count(), done.discoveries().len())
    } else {
        let done = checker.spawn_bfs().join();
        (done.unique_state_count(), done.state_count(), done.discoveries().len())
    };
    if found > 0 {
        return Err("stateright found two inside".into());
    }
    Ok((unique as u64, all as u64 - 1))
}
