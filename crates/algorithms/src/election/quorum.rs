//! Election by a majority, with terms and leases: the election for real networks.
//!
//! A process that misses a leader asks for the votes of a majority in a new term, first tentatively. Votes are in stable
//! storage, so a term has at most one leader. A leader acts only while it holds a lease (`quorum/lease.rs`): promises of
//! a majority to elect no other leader for some time.
//!
//! A process reads no clock: a promise and a lease are timers.

mod lease;
mod rules;
mod sheet;
#[cfg(test)]
mod tests;

use konklave_process::{Context, Fixed, Process, ProcessId, ProcessSet};
use serde::{Deserialize, Serialize};

use self::rules::Rules;
use super::{Indication, Request};

/// One process of the algorithm.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Quorum {
    /// Term and vote, in stable storage.
    ballot: Ballot,
    role: Role,
    /// Whether a promise to the leader holds: the process votes for no other.
    loyal: bool,
    #[serde(skip)]
    rules: Fixed<Rules>,
}

/// The present term, and the vote of this process in it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Ballot {
    term: u32,
    voted_for: Option<ProcessId>,
}

/// The role of a process.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub enum Role {
    /// It follows a leader, or waits for one.
    Follower {
        /// The leader.
        leader: Option<ProcessId>,
    },
    /// It asks for tentative votes.
    PreCandidate {
        /// The processes that would vote for it.
        granted: ProcessSet,
    },
    /// It asks for votes.
    Candidate {
        /// The processes that voted for it.
        votes: ProcessSet,
    },
    /// It was elected.
    Leader {
        /// The number of its beats.
        beats: u32,
        /// The beats that may still give a lease, each with the processes that answered.
        open: Vec<(u32, ProcessSet)>,
        /// The beat whose answers are the lease; without a lease the leader does not act.
        lease: Option<u32>,
    },
}

/// The messages, each with a term.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// Asks for a tentative vote in this term.
    PreVote(u32),
    /// Yes, in that term; or no, with the term of the sender.
    PreVoteReply(u32, bool),
    /// Asks for a vote in this term.
    Vote(u32),
    /// Yes, in that term; or no, with the term of the sender.
    VoteReply(u32, bool),
    /// A sign of life of the leader, which asks for promises.
    Beat {
        /// The term.
        term: u32,
        /// The number of the beat.
        beat: u32,
    },
    /// A promise to vote for no other process for some time; with a higher term, a refusal.
    BeatReply {
        /// The term of the sender.
        term: u32,
        /// The number of the answered beat.
        beat: u32,
    },
}

/// The timers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Timer {
    /// A leader is overdue.
    Election,
    /// The promise has ended.
    Loyalty,
    /// The next beat of a leader.
    Beat,
    /// The promises for this beat may end.
    Lease(u32),
}

impl Process for Quorum {
    type Message = Message;
    type Timer = Timer;
    type Request = Request;
    type Indication = Indication;
    type Record = Ballot;

    fn on_start(&mut self, ctx: &mut Context<'_, Self>) {
        self.wait_for_leader(ctx);
    }

    fn on_recover(&mut self, saved: Option<Ballot>, ctx: &mut Context<'_, Self>) {
        self.ballot = saved.unwrap_or_default();
        self.promise_after_restart(ctx);
        self.wait_for_leader(ctx);
    }

    fn on_request(&mut self, Request::Elect: Request, ctx: &mut Context<'_, Self>) {
        let epoch = self.ballot.term;
        match &self.role {
            Role::Follower { leader: None } if !self.loyal => self.pre_campaign(ctx),
            Role::Follower { leader: leader @ Some(_) } => {
                ctx.indicate(Indication::Following { leader: *leader, epoch });
            }
            Role::Leader { lease: Some(_), .. } => ctx.indicate(Indication::Leading { epoch }),
            // An election is under way, or must not begin yet.
            Role::Follower { .. }
            | Role::PreCandidate { .. }
            | Role::Candidate { .. }
            | Role::Leader { .. } => {}
        }
    }

    fn on_message(&mut self, from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        match message {
            Message::PreVote(term) if term <= self.ballot.term => {
                ctx.send(from, Message::PreVoteReply(self.ballot.term, false));
            }
            Message::PreVote(term) => {
                if !self.is_bound() {
                    ctx.send(from, Message::PreVoteReply(term, true));
                }
            }
            Message::PreVoteReply(term, true) => {
                if let Role::PreCandidate { granted } = &mut self.role
                    && term == self.ballot.term + 1
                {
                    granted.insert(from);
                    if Self::is_majority(granted, ctx) {
                        self.campaign(ctx);
                    }
                }
            }
            Message::Vote(term) => self.on_vote(from, term, ctx),
            Message::VoteReply(term, true) => {
                if let Role::Candidate { votes } = &mut self.role
                    && term == self.ballot.term
                {
                    votes.insert(from);
                    if Self::is_majority(votes, ctx) {
                        self.lead(ctx);
                    }
                }
            }
            Message::PreVoteReply(term, false) | Message::VoteReply(term, false) => {
                self.catch_up(term, ctx);
            }
            Message::Beat { term, beat } => self.on_beat(from, term, beat, ctx),
            Message::BeatReply { term, beat } => {
                self.catch_up(term, ctx);
                if term == self.ballot.term {
                    self.on_answer(from, beat, ctx);
                }
            }
        }
    }

    fn on_timer(&mut self, timer: Timer, ctx: &mut Context<'_, Self>) {
        match timer {
            Timer::Election => {
                // This timer is longer than a promise.
                self.loyal = false;
                ctx.cancel_timer(Timer::Loyalty);
                self.follow(None, ctx);
                self.pre_campaign(ctx);
            }
            Timer::Loyalty => self.loyal = false,
            Timer::Beat => self.beat(ctx),
            Timer::Lease(beat) => self.on_lease_end(beat, ctx),
        }
    }
}

impl Quorum {
    /// The leader it follows or, if it acts as leader, itself; and the term.
    pub fn leader(&self, me: ProcessId) -> Option<(ProcessId, u32)> {
        let leader = match &self.role {
            Role::Follower { leader } => *leader,
            Role::Leader { lease: Some(_), .. } => Some(me),
            Role::PreCandidate { .. } | Role::Candidate { .. } | Role::Leader { .. } => None,
        };
        leader.map(|leader| (leader, self.ballot.term))
    }

    fn is_majority(voters: &ProcessSet, ctx: &Context<'_, Self>) -> bool {
        2 * voters.len() > ctx.group_size()
    }

    fn only_me(ctx: &Context<'_, Self>) -> ProcessSet {
        [ctx.me()].into_iter().collect()
    }

    /// Whether the process must vote for no other: it has promised, or it acts as leader itself.
    fn is_bound(&self) -> bool {
        self.loyal || matches!(self.role, Role::Leader { lease: Some(_), .. })
    }

    fn wait_for_leader(&self, ctx: &mut Context<'_, Self>) {
        let Rules { election, jitter, .. } = *self.rules;
        let more = election * ctx.choose(jitter) / jitter;
        ctx.set_timer(Timer::Election, election + more);
    }

    /// There is no leader: the process asks whether a majority would vote for it.
    fn pre_campaign(&mut self, ctx: &mut Context<'_, Self>) {
        let term = self.ballot.term + 1;
        if !self.rules.permits_campaign(term) {
            return;
        }
        self.wait_for_leader(ctx);
        let granted = Self::only_me(ctx);
        if Self::is_majority(&granted, ctx) || !self.rules.asks_first() {
            return self.campaign(ctx);
        }
        self.role = Role::PreCandidate { granted };
        ctx.send_to_others(Message::PreVote(term));
    }

    fn campaign(&mut self, ctx: &mut Context<'_, Self>) {
        self.ballot = Ballot { term: self.ballot.term + 1, voted_for: Some(ctx.me()) };
        self.save(ctx);
        let votes = Self::only_me(ctx);
        if Self::is_majority(&votes, ctx) {
            return self.lead(ctx);
        }
        self.role = Role::Candidate { votes };
        ctx.send_to_others(Message::Vote(self.ballot.term));
    }

    fn lead(&mut self, ctx: &mut Context<'_, Self>) {
        ctx.cancel_timer(Timer::Election);
        self.role = Role::Leader { beats: 0, open: Vec::new(), lease: None };
        self.beat(ctx);
    }

    /// Becomes a follower of `leader`, or of none.
    fn follow(&mut self, leader: Option<ProcessId>, ctx: &mut Context<'_, Self>) {
        let knew = match std::mem::replace(&mut self.role, Role::Follower { leader }) {
            Role::Follower { leader } => leader,
            Role::PreCandidate { .. } | Role::Candidate { .. } => None,
            Role::Leader { open, lease, .. } => {
                ctx.cancel_timer(Timer::Beat);
                for beat in open.iter().map(|(beat, _)| *beat).chain(lease) {
                    ctx.cancel_timer(Timer::Lease(beat));
                }
                lease.map(|_| ctx.me())
            }
        };
        match leader {
            Some(_) if leader == knew => {}
            Some(_) => ctx.indicate(Indication::Following { leader, epoch: self.ballot.term }),
            None if knew.is_some() => ctx.indicate(Indication::Deposed),
            None => {}
        }
    }

    /// Enters `term` if it is later.
    fn catch_up(&mut self, term: u32, ctx: &mut Context<'_, Self>) {
        if term > self.ballot.term {
            self.ballot = Ballot { term, voted_for: None };
            self.save(ctx);
            self.follow(None, ctx);
            self.wait_for_leader(ctx);
        }
    }

    fn on_vote(&mut self, candidate: ProcessId, term: u32, ctx: &mut Context<'_, Self>) {
        if term < self.ballot.term {
            return ctx.send(candidate, Message::VoteReply(self.ballot.term, false));
        }
        if self.is_bound() {
            return;
        }
        self.catch_up(term, ctx);
        let free = self.ballot.voted_for.is_none_or(|p| p == candidate);
        if free {
            self.ballot.voted_for = Some(candidate);
            self.save(ctx);
            self.follow(None, ctx);
            self.wait_for_leader(ctx);
        }
        ctx.send(candidate, Message::VoteReply(term, free));
    }
}
