//! Nodes that need time for each message: messages wait at a busy node, in the order in which they arrived.

use std::collections::VecDeque;

use konklave_process::ProcessId;

use crate::{Config, Pace, Pause, Purpose, Time, UNIT};

/// The messages that wait at busy nodes. `E` is a message with its tags.
pub(crate) struct Service<E> {
    /// How long a node handles a message.
    pace: Pause,
    /// The messages at each node; the first is being handled.
    queues: Vec<VecDeque<E>>,
}

impl<E> Service<E> {
    /// Idle nodes; none if handling a message takes no time.
    pub(crate) fn new(config: &Config, n: usize) -> Option<Self> {
        (config.service != Pace::Constant(0.0)).then(|| Self {
            pace: Pause::new(config.service, Purpose::Service, config.seed, &[], n),
            queues: (0..n).map(|_| VecDeque::new()).collect(),
        })
    }

    /// Adds a message that arrived at `place`; returns when it will have been handled, if the node was idle.
    pub(crate) fn arrive(&mut self, now: Time, place: usize, message: E) -> Option<Time> {
        self.queues[place].push_back(message);
        (self.queues[place].len() == 1).then(|| self.pace.after(now, place))
    }

    /// Takes the message that was being handled at `place`; returns also when the next one will have been handled.
    pub(crate) fn serve(&mut self, now: Time, place: usize) -> Option<(E, Option<Time>)> {
        let message = self.queues[place].pop_front()?;
        let next = (!self.queues[place].is_empty()).then(|| self.pace.after(now, place));
        Some((message, next))
    }

    /// Takes all messages at `place`: its node crashed.
    pub(crate) fn clear(&mut self, place: usize) -> VecDeque<E> {
        std::mem::take(&mut self.queues[place])
    }
}

/// Nodes that send one message at a time, so that large messages take longer.
#[derive(Debug)]
pub(crate) struct Senders {
    /// Bytes in one tick.
    speed: f64,
    /// When each node has sent all its messages so far.
    free: Vec<f64>,
}

impl Senders {
    /// Idle nodes; none if sending takes no time.
    pub(crate) fn new(config: &Config, n: usize) -> Option<Self> {
        let speed = config.bandwidth? / UNIT as f64;
        Some(Self { speed, free: vec![0.0; n] })
    }

    /// When the node at `place` will have sent a message of `size` bytes after all earlier ones.
    pub(crate) fn send(&mut self, now: Time, place: usize, size: usize) -> Time {
        let free = &mut self.free[place];
        *free = free.max(now as f64) + size as f64 / self.speed;
        free.round() as Time
    }
}

/// A process as a sender: its id and its place.
pub(crate) type Sender = (ProcessId, usize);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_wait_at_a_busy_node_in_order() {
        let config = Config { service: Pace::Constant(2.0), ..Config::default() };
        let mut service = Service::new(&config, 2).unwrap();
        assert_eq!(service.arrive(1000, 0, 'a'), Some(3000));
        assert_eq!(service.arrive(1500, 0, 'b'), None);
        assert_eq!(service.arrive(1500, 1, 'c'), Some(3500), "the other node is idle");
        assert_eq!(service.serve(3000, 0), Some(('a', Some(5000))));
        assert_eq!(service.serve(5000, 0), Some(('b', None)));
        assert_eq!(service.arrive(9000, 0, 'd'), Some(11_000));
        assert_eq!(service.clear(0), ['d']);
        assert_eq!(service.serve(11_000, 0), None);
        assert!(Service::<char>::new(&Config::default(), 2).is_none());
    }

    #[test]
    fn a_node_sends_one_message_after_the_other() {
        let config = Config { bandwidth: Some(100.0), ..Config::default() };
        let mut senders = Senders::new(&config, 2).unwrap();
        assert_eq!(senders.send(0, 0, 50), 500);
        assert_eq!(senders.send(100, 0, 100), 1500);
        assert_eq!((senders.send(100, 1, 1), senders.send(9000, 0, 1)), (110, 9010));
    }
}
