//! Election by a majority, with terms and leases: the one to use on real networks.
//!
//! Who misses a leader asks, tentatively first, for the votes of a majority in a new term. Votes are
//! kept in stable storage, so a term has one leader at most. A leader acts only under a lease: it
//! reminds everyone of itself, those who answer promise to elect nobody else for a while, and with
//! the answers of a majority the leader may act for a little less than that while, counted from
//! when it *asked*. So no two leaders act at once, if only their clocks run at nearly the same rate.
//!
//! A process reads no clock: a promise and a lease are timers.

mod sheet;
#[cfg(test)]
mod tests;

use std::time::Duration;

use konklave_process::{Context, Fixed, Process, ProcessId, ProcessSet};
use serde::{Deserialize, Serialize};

use super::{Indication, Request};

/// One process of the algorithm.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Quorum {
    /// What is in stable storage.
    ballot: Ballot,
    role: Role,
    /// Whether a promise to the leader holds: we vote for nobody else.
    loyal: bool,
    #[serde(skip)]
    settings: Fixed<Settings>,
}

#[derive(Clone, Copy, Debug)]
struct Settings {
    election: Duration,
    lease: Duration,
    jitter: u32,
    max_term: u32,
    max_beats: u32,
    no_persist: bool,
    no_pre_vote: bool,
    lease_from_ack: bool,
    no_lease: bool,
    vote_at_once: bool,
}

/// The term we are in, and for whom we voted in it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Ballot {
    term: u32,
    voted_for: Option<ProcessId>,
}

/// What a process is.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub enum Role {
    /// It follows someone, or waits for someone to follow.
    Follower {
        /// Whom.
        leader: Option<ProcessId>,
    },
    /// It asks whether it would be elected.
    PreCandidate {
        /// Who said yes.
        granted: ProcessSet,
    },
    /// It asks for votes.
    Candidate {
        /// Whose it has.
        votes: ProcessSet,
    },
    /// It was elected.
    Leader {
        /// How often it reminded everyone.
        beats: u32,
        /// Which of the reminders may still bring a lease, with those who answered.
        open: Vec<(u32, ProcessSet)>,
        /// The reminder whose answers are the lease; without one the leader does not act.
        lease: Option<u32>,
    },
}

/// What the processes say, each with a term.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// Would you vote for me in this term?
    PreVote(u32),
    /// Yes, in that term; or no, for my term is this.
    PreVoteReply(u32, bool),
    /// Vote for me in this term.
    Vote(u32),
    /// Yes, in that term; or no, and my term is this.
    VoteReply(u32, bool),
    /// I lead in this term, and say so for the `beat`-th time.
    Beat {
        /// The term.
        term: u32,
        /// Which reminder this is.
        beat: u32,
    },
    /// You do, and I vote for nobody else for a while; or you do not, if my term is higher.
    BeatReply {
        /// My term.
        term: u32,
        /// Which reminder this answers.
        beat: u32,
    },
}

/// The timers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Timer {
    /// There should be a leader by now.
    Election,
    /// Our promise has been kept.
    Loyalty,
    /// Time to remind everyone.
    Beat,
    /// The answers to this reminder are worth nothing any more.
    Lease(u32),
}

impl Quorum {
    /// Whom it follows or, if it acts as leader, itself; and the term.
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

    fn just_us(ctx: &Context<'_, Self>) -> ProcessSet {
        [ctx.me()].into_iter().collect()
    }

    /// Whether we must not help anyone to office: we promised, or act ourselves.
    fn is_bound(&self) -> bool {
        self.loyal || matches!(self.role, Role::Leader { lease: Some(_), .. })
    }

    fn save(&self, ctx: &mut Context<'_, Self>) {
        if !self.settings.no_persist {
            ctx.save(self.ballot);
        }
    }

    fn wait_for_a_leader(&self, ctx: &mut Context<'_, Self>) {
        let Settings { election, jitter, .. } = *self.settings;
        let more = election * ctx.choose(jitter) / jitter;
        ctx.set_timer(Timer::Election, election + more);
    }

    fn promise(&mut self, ctx: &mut Context<'_, Self>) {
        self.loyal = true;
        ctx.set_timer(Timer::Loyalty, self.settings.election);
    }

    /// There is no leader: would a majority vote for us?
    fn pre_campaign(&mut self, ctx: &mut Context<'_, Self>) {
        let term = self.ballot.term + 1;
        if self.settings.max_term > 0 && term > self.settings.max_term {
            return;
        }
        self.wait_for_a_leader(ctx);
        if self.settings.no_pre_vote {
            return self.campaign(ctx);
        }
        let granted = Self::just_us(ctx);
        if Self::is_majority(&granted, ctx) {
            return self.campaign(ctx);
        }
        self.role = Role::PreCandidate { granted };
        ctx.send_to_others(Message::PreVote(term));
    }

    fn campaign(&mut self, ctx: &mut Context<'_, Self>) {
        self.ballot = Ballot { term: self.ballot.term + 1, voted_for: Some(ctx.me()) };
        self.save(ctx);
        let votes = Self::just_us(ctx);
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

    /// Reminds everyone; the lease that may come of it counts from now.
    fn beat(&mut self, ctx: &mut Context<'_, Self>) {
        let Role::Leader { beats, open, .. } = &mut self.role else { return };
        *beats += 1;
        let beat = *beats;
        open.push((beat, ProcessSet::new()));
        if !self.settings.lease_from_ack {
            ctx.set_timer(Timer::Lease(beat), self.settings.lease);
        }
        if beat != self.settings.max_beats {
            ctx.set_timer(Timer::Beat, self.settings.election / 5);
        }
        ctx.send_to_others(Message::Beat { term: self.ballot.term, beat });
        self.on_answer(ctx.me(), beat, ctx);
    }

    fn on_answer(&mut self, from: ProcessId, beat: u32, ctx: &mut Context<'_, Self>) {
        let Role::Leader { open, lease, .. } = &mut self.role else { return };
        let Some((_, answered)) = open.iter_mut().find(|(b, _)| *b == beat) else { return };
        answered.insert(from);
        if !Self::is_majority(answered, ctx) {
            return;
        }
        // This lease outlasts all earlier ones.
        open.retain(|(earlier, _)| {
            if *earlier < beat {
                ctx.cancel_timer(Timer::Lease(*earlier));
            }
            *earlier > beat
        });
        if self.settings.lease_from_ack {
            ctx.set_timer(Timer::Lease(beat), self.settings.lease);
        }
        match lease.replace(beat) {
            Some(before) => ctx.cancel_timer(Timer::Lease(before)),
            None => ctx.indicate(Indication::Leading { epoch: self.ballot.term }),
        }
    }

    /// Becomes a follower of `leader`, if there is one.
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

    /// Moves on to a later term, if it is one.
    fn catch_up(&mut self, term: u32, ctx: &mut Context<'_, Self>) {
        if term > self.ballot.term {
            self.ballot = Ballot { term, voted_for: None };
            self.save(ctx);
            self.follow(None, ctx);
            self.wait_for_a_leader(ctx);
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
            self.wait_for_a_leader(ctx);
        }
        ctx.send(candidate, Message::VoteReply(term, free));
    }

    fn on_beat(&mut self, from: ProcessId, term: u32, beat: u32, ctx: &mut Context<'_, Self>) {
        self.catch_up(term, ctx);
        if term == self.ballot.term {
            if matches!(self.role, Role::Leader { .. }) {
                return ctx.unexpected("another leader of our term");
            }
            self.follow(Some(from), ctx);
            self.promise(ctx);
            self.wait_for_a_leader(ctx);
        }
        ctx.send(from, Message::BeatReply { term: self.ballot.term, beat });
    }
}

impl Process for Quorum {
    type Message = Message;
    type Timer = Timer;
    type Request = Request;
    type Indication = Indication;
    type Record = Ballot;

    fn on_start(&mut self, ctx: &mut Context<'_, Self>) {
        self.wait_for_a_leader(ctx);
    }

    fn on_recover(&mut self, saved: Option<Ballot>, ctx: &mut Context<'_, Self>) {
        self.ballot = saved.unwrap_or_default();
        if !self.settings.vote_at_once {
            // What we promised is forgotten, but it may still hold.
            self.promise(ctx);
        }
        self.wait_for_a_leader(ctx);
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
                // Longer than any promise of ours.
                self.loyal = false;
                ctx.cancel_timer(Timer::Loyalty);
                self.follow(None, ctx);
                self.pre_campaign(ctx);
            }
            Timer::Loyalty => self.loyal = false,
            Timer::Beat => self.beat(ctx),
            Timer::Lease(beat) => {
                let Role::Leader { open, lease, .. } = &mut self.role else { return };
                if lease.is_none_or(|lease| lease == beat) && !self.settings.no_lease {
                    // No majority has answered for too long.
                    self.follow(None, ctx);
                    self.wait_for_a_leader(ctx);
                } else {
                    open.retain(|(b, _)| *b != beat);
                }
            }
        }
    }
}
