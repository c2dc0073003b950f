//! Links to workers on other machines, and workers that die at random.

use serde::{Deserialize, Serialize};
use switchyard_core::ids::WorkerId;
use switchyard_core::time::{Micros, Time};

use crate::random::{Purpose, Stream};

/// The link of each worker: a batch goes there and its answer comes back. Messages of a link arrive in
/// order, as on a connection of TCP.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkTimes {
    /// Least time of a message, one way.
    pub delay_us: Micros,
    /// A uniform share of this is added.
    pub jitter_us: Micros,
    /// Share of the messages that are lost, at least 0 and below 1. A lost message is sent again.
    pub loss: f64,
    /// Time until a lost message is sent again. It doubles with each loss in a row.
    pub resend_us: Micros,
}

/// Deaths of workers. A worker comes back empty, as after an [`Outage`](crate::Outage); its messages on the
/// way are gone.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RandomDeaths {
    /// Mean of the exponential time from a return to the next death, above 0.
    pub lives_us: Micros,
    /// Mean of the exponential time from a death to the return, above 0.
    pub away_us: Micros,
}

/// The links of a run; none if the workers are in this process.
#[derive(Debug)]
pub(crate) struct Links {
    times: Option<LinkTimes>,
    by_worker: Vec<Link>,
}

/// One link, with draws of its own.
#[derive(Debug)]
struct Link {
    random: Stream,
    /// The last arrival at each end.
    there: Time,
    back: Time,
}

/// The deaths of a run, with draws of each worker's own.
#[derive(Debug)]
pub(crate) struct Deaths {
    means: RandomDeaths,
    by_worker: Vec<Stream>,
}

// === impl LinkTimes ===

impl LinkTimes {
    /// The first field that is out of range, and the allowed range.
    pub(crate) fn check(&self) -> Result<(), (&'static str, &'static str)> {
        match (0.0..1.0).contains(&self.loss) {
            true => Ok(()),
            false => Err(("loss", "must be at least 0 and below 1")),
        }
    }

    fn draw(&self, random: &mut Stream) -> Micros {
        let mut time = self.delay_us;
        if self.jitter_us > Micros::ZERO {
            time += Micros((random.uniform() * self.jitter_us.0 as f64) as u64);
        }
        let mut resend = self.resend_us;
        while self.loss > 0.0 && random.uniform() < self.loss {
            time += resend;
            resend += resend;
        }
        time
    }
}

// === impl RandomDeaths ===

impl RandomDeaths {
    /// As [`LinkTimes::check`].
    pub(crate) fn check(&self) -> Result<(), (&'static str, &'static str)> {
        let reason = "must be above 0";
        match self {
            Self { lives_us, .. } if *lives_us == Micros::ZERO => Err(("lives_us", reason)),
            Self { away_us, .. } if *away_us == Micros::ZERO => Err(("away_us", reason)),
            _ => Ok(()),
        }
    }
}

// === impl Links ===

impl Links {
    pub(crate) fn new(times: Option<LinkTimes>, workers: usize, seed: u64) -> Self {
        let link = |worker| Link {
            random: Stream::new(seed, Purpose::Links, worker),
            there: Time::ZERO,
            back: Time::ZERO,
        };
        let workers = times.map_or(0, |_| workers as u64);
        Self {
            times,
            by_worker: (0..workers).map(link).collect(),
        }
    }

    /// When a batch that is sent now arrives.
    pub(crate) fn there(&mut self, worker: WorkerId, now: Time) -> Time {
        let (Some(times), Some(link)) = (&self.times, self.by_worker.get_mut(worker.index()))
        else {
            return now;
        };
        link.there = link.there.max(now + times.draw(&mut link.random));
        link.there
    }

    /// When the answer that is sent at `end` arrives.
    pub(crate) fn back(&mut self, worker: WorkerId, end: Time) -> Time {
        let (Some(times), Some(link)) = (&self.times, self.by_worker.get_mut(worker.index()))
        else {
            return end;
        };
        link.back = link.back.max(end + times.draw(&mut link.random));
        link.back
    }

    /// The next message goes over a new connection.
    pub(crate) fn reset(&mut self, worker: WorkerId) {
        if let Some(link) = self.by_worker.get_mut(worker.index()) {
            (link.there, link.back) = (Time::ZERO, Time::ZERO);
        }
    }
}

// === impl Deaths ===

impl Deaths {
    pub(crate) fn new(means: RandomDeaths, workers: usize, seed: u64) -> Self {
        let streams = (0..workers as u64).map(|w| Stream::new(seed, Purpose::Deaths, w));
        Self {
            means,
            by_worker: streams.collect(),
        }
    }

    /// The time of a worker from now to its next death.
    pub(crate) fn life(&mut self, worker: WorkerId) -> Micros {
        let mean = self.means.lives_us;
        self.draw(worker, mean)
    }

    /// The time of a worker from its death to its return.
    pub(crate) fn away(&mut self, worker: WorkerId) -> Micros {
        let mean = self.means.away_us;
        self.draw(worker, mean)
    }

    fn draw(&mut self, worker: WorkerId, mean: Micros) -> Micros {
        let share = self.by_worker[worker.index()].exponential();
        Micros((mean.0 as f64 * share) as u64).max(Micros(1))
    }
}
