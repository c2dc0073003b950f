//! The member on duty at a time.

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;

use crate::time::{Micros, Time};

/// Largest share of the candidate: the baseline has the same.
pub const SHARE_MAX: f64 = 0.5;

/// Spreads the numbers of rounds over all seeds.
const ODD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Shortest slot.
pub const SLOT_MIN: Micros = Micros::from_millis(1);

/// One side of a canary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Member {
    /// The policy that serves, with the rest of the requests.
    Serving,
    /// A second instance of it, with as many requests as the candidate.
    Baseline,
    /// The candidate.
    Candidate,
}

/// The slots of all rounds, from the first on.
#[derive(Debug)]
pub(super) struct Slots {
    seed: u64,
    slot: Micros,
    round: Micros,
    began: Time,
    /// From here on all arrivals are this member's.
    ended: Option<(Time, Member)>,
    /// The round that was asked for last.
    known: Round,
}

/// The slots of one round.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    number: Option<u64>,
    /// From the beginning of the round.
    baseline: Micros,
    candidate: Micros,
}

// === impl Member ===

impl Member {
    /// All, in the order of their discriminants.
    pub const ALL: [Self; 3] = [Self::Serving, Self::Baseline, Self::Candidate];

    /// Name in reports.
    pub fn label(self) -> &'static str {
        match self {
            Self::Serving => "serving",
            Self::Baseline => "baseline",
            Self::Candidate => "candidate",
        }
    }
}

// === impl Slots ===

impl Slots {
    /// Slots for a share of the time, 0 to [`SHARE_MAX`]; values beyond the range are moved into it.
    pub(super) fn new(seed: u64, slot: Micros, share: f64, began: Time) -> Self {
        let slot = slot.max(SLOT_MIN);
        let share = share.clamp(f64::from(f32::EPSILON), SHARE_MAX);
        let round = Micros((slot.0 as f64 / share) as u64);
        Self {
            seed,
            slot,
            round: round.max(Micros(slot.0 * 2)),
            began,
            ended: None,
            known: Round::default(),
        }
    }

    /// All arrivals from now on are this member's.
    pub(super) fn end(&mut self, now: Time, to: Member) {
        self.ended = Some((now, to));
    }

    /// The round that a time is in.
    pub(super) fn round_of(&self, at: Time) -> u64 {
        at.since(self.began).0 / self.round.0
    }

    /// When a round is over.
    pub(super) fn end_of(&self, round: u64) -> Time {
        self.began + Micros((round + 1) * self.round.0)
    }

    /// The member of a request that arrives now.
    pub(super) fn on_duty(&mut self, at: Time) -> Member {
        if at < self.began {
            return Member::Serving;
        }
        if let Some((_, member)) = self.ended.filter(|(from, _)| at >= *from) {
            return member;
        }
        let number = self.round_of(at);
        if self.known.number != Some(number) {
            self.known = self.draw(number);
        }
        let into = Micros(at.since(self.began).0 % self.round.0);
        let holds = |from: Micros| into >= from && into < from + self.slot;
        match () {
            () if holds(self.known.baseline) => Member::Baseline,
            () if holds(self.known.candidate) => Member::Candidate,
            () => Member::Serving,
        }
    }

    /// When another member may come on duty.
    pub(super) fn next_change(&self, now: Time) -> Option<Time> {
        if self.ended.is_some() {
            return None;
        }
        let number = self.round_of(now);
        let round = self.draw(number);
        let begin = self.end_of(number).0 - self.round.0;
        let [baseline, candidate] = [round.baseline, round.candidate].map(|from| from.0);
        let edges = [
            baseline,
            baseline + self.slot.0,
            candidate,
            candidate + self.slot.0,
        ];
        let edges = edges.into_iter().map(|edge| Time(begin + edge));
        let edges = edges.chain([self.end_of(number)]);
        edges.filter(|edge| *edge > now).min()
    }

    /// Two places without overlap, and a coin for the order.
    fn draw(&self, number: u64) -> Round {
        let mut random = Pcg64::seed_from_u64(self.seed ^ number.wrapping_mul(ODD));
        let free = self.round.0 - 2 * self.slot.0;
        let (a, b) = (random.random_range(0..=free), random.random_range(0..=free));
        let first = Micros(a.min(b));
        let second = Micros(a.max(b)) + self.slot;
        let (baseline, candidate) = match random.random::<bool>() {
            true => (first, second),
            false => (second, first),
        };
        Round {
            number: Some(number),
            baseline,
            candidate,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLOT: Micros = Micros::from_millis(10);

    /// Milliseconds of each member within a time.
    fn shares(slots: &mut Slots, from_ms: u64, to_ms: u64) -> [u64; 3] {
        let mut counts = [0; 3];
        for ms in from_ms..to_ms {
            counts[slots.on_duty(Time(ms * 1_000)) as usize] += 1;
        }
        counts
    }

    #[test]
    fn baseline_and_candidate_have_the_share_in_each_round() {
        for share in [0.01, 0.1, 0.3, 0.5] {
            let began = Time(7_000);
            let mut slots = Slots::new(3, Micros::from_millis(100), share, began);
            let round_ms = (100.0 / share) as u64;
            for round in 0..20 {
                let from = 7 + round * round_ms;
                let [_, baseline, candidate] = shares(&mut slots, from, from + round_ms);
                // A slot that begins between two milliseconds holds one more or less of them.
                assert!((99..=101).contains(&baseline), "{share}: {baseline}");
                assert!((99..=101).contains(&candidate), "{share}: {candidate}");
            }
        }
    }

    #[test]
    fn either_comes_first_as_often() {
        let mut slots = Slots::new(11, SLOT, 0.5, Time::ZERO);
        let rounds = 1_000;
        let first = |round: u64| slots.on_duty(Time(round * 20_000));
        let firsts = (0..rounds).map(first);
        let candidates = firsts.filter(|member| *member == Member::Candidate).count();
        assert!((430..570).contains(&candidates), "{candidates}");
    }

    #[test]
    fn the_member_changes_only_at_the_named_times() {
        let mut slots = Slots::new(5, SLOT, 0.2, Time(3_000));
        let mut now = Time(3_000);
        while now < Time(2_000_000) {
            let next = slots.next_change(now).expect("it has not ended");
            assert!(next > now);
            let member = slots.on_duty(now);
            for at in [now.0, now.0.midpoint(next.0), next.0 - 1] {
                assert_eq!(slots.on_duty(Time(at)), member, "{at}");
            }
            now = next;
        }
        slots.end(now, Member::Candidate);
        assert_eq!(slots.next_change(now), None);
    }

    #[test]
    fn before_and_after_one_member_has_all() {
        let mut slots = Slots::new(0, SLOT, 0.5, Time(1_000_000));
        assert_eq!(shares(&mut slots, 0, 1_000), [1_000, 0, 0]);
        slots.end(Time(2_000_000), Member::Candidate);
        assert_eq!(shares(&mut slots, 2_000, 2_500), [0, 0, 500]);
        let [_, baseline, _] = shares(&mut slots, 1_000, 2_000);
        assert_eq!(baseline, 500);
    }
}
