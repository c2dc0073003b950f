//! What ran where in a chosen interval: the material of a timeline plot.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use switchyard_core::event::{Reply, Run};
use switchyard_core::ids::{BatchId, ExitId, VariantId, WorkerId};
use switchyard_core::request::Outcome;
use switchyard_core::time::{Micros, Time};

use crate::driver::Observer;
use crate::hardware::Cost;

/// Batches kept at most; the rest of the interval is only counted.
pub const BARS_MAX: usize = 100_000;

/// Equal parts of the interval in which ends of requests are counted.
pub const ENDS_PARTS: usize = 200;

/// Keeps the batches that overlap an interval and counts the ends in it, as an [`Observer`] of
/// a run. Its memory is bounded by [`BARS_MAX`], however long the interval.
#[derive(Clone, Debug, PartialEq)]
pub struct Timeline {
    from: Time,
    to: Time,
    /// Batches, by the time they were started.
    pub bars: Vec<Bar>,
    /// Ends of requests in the interval's [`ENDS_PARTS`] equal parts.
    pub ends: Vec<Ends>,
    /// Requests that ended in the interval without an answer in time.
    pub violations: u64,
    /// Batches beyond [`BARS_MAX`], which were not kept.
    pub dropped: u64,
    /// Where in `bars` a batch is.
    kept: BTreeMap<BatchId, usize>,
}

/// One batch on one worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bar {
    /// Where it ran, as a position in the catalog.
    pub worker: WorkerId,
    /// What ran, as a position in the catalog.
    pub variant: VariantId,
    /// First stage.
    pub from_stage: u32,
    /// One past the last stage.
    pub to_stage: u32,
    /// The exit that answered; none where the activations were parked.
    pub exit: Option<ExitId>,
    /// Requests in it.
    pub size: u32,
    /// Requests that it answered after their deadlines.
    pub late: u32,
    /// When it was started, in microseconds.
    #[serde(rename = "start_us")]
    pub start: Time,
    /// Making the variant resident comes first and takes this long, in microseconds.
    #[serde(rename = "load_us")]
    pub load: Micros,
    /// When it ended, in microseconds.
    #[serde(rename = "end_us")]
    pub end: Time,
}

/// How many requests ended, and how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ends {
    /// Answered by the deadline.
    pub in_time: u64,
    /// Answered after it.
    pub late: u64,
    /// Refused, dropped, failed or cancelled.
    pub unanswered: u64,
}

// === impl Timeline ===

impl Timeline {
    /// Of the interval `[from, to)`.
    pub fn new(from: Time, to: Time) -> Self {
        Self {
            from,
            to,
            bars: Vec::new(),
            ends: vec![Ends::default(); ENDS_PARTS],
            violations: 0,
            dropped: 0,
            kept: BTreeMap::new(),
        }
    }

    /// The interval `[from, to)`.
    pub fn interval(&self) -> (Time, Time) {
        (self.from, self.to)
    }

    /// The part of the interval that a moment is in.
    fn part(&self, now: Time) -> Option<usize> {
        if now < self.from || now >= self.to {
            return None;
        }
        let (since, length) = (now.0 - self.from.0, self.to.0 - self.from.0);
        let part = u128::from(since) * ENDS_PARTS as u128 / u128::from(length);
        Some(part as usize)
    }
}

impl Observer for Timeline {
    fn ran(&mut self, now: Time, run: &Run, cost: Cost) {
        let end = now + cost.load + cost.service;
        if now >= self.to || end <= self.from {
            return;
        }
        if self.bars.len() == BARS_MAX {
            self.dropped += 1;
            return;
        }
        self.kept.insert(run.batch, self.bars.len());
        self.bars.push(Bar {
            worker: run.worker,
            variant: run.variant,
            from_stage: run.from_stage,
            to_stage: run.to_stage,
            exit: run.exit,
            size: run.requests.len() as u32,
            late: 0,
            start: now,
            load: cost.load,
            end,
        });
    }

    fn ended(&mut self, now: Time, reply: &Reply) {
        let part = self.part(now);
        let mut unseen = Ends::default();
        let ends = part.map_or(&mut unseen, |part| &mut self.ends[part]);
        match reply.outcome {
            Outcome::Answered { in_time: true, .. } | Outcome::ShortCircuited { in_time: true } => {
                ends.in_time += 1;
                return;
            }
            Outcome::Answered { .. } | Outcome::ShortCircuited { .. } => ends.late += 1,
            _ => ends.unanswered += 1,
        }
        self.violations += u64::from(part.is_some());
        let ran = reply.ran.and_then(|ran| self.kept.get(&ran.batch));
        if let (Some(&at), Outcome::Answered { .. }) = (ran, &reply.outcome) {
            self.bars[at].late += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use switchyard_core::event::Ran;
    use switchyard_core::ids::{AppId, RequestId};
    use switchyard_core::residents::Soon;

    use super::*;

    fn run(batch: u64) -> Run {
        Run {
            batch: BatchId(batch),
            worker: WorkerId(0),
            variant: VariantId(0),
            from_stage: 0,
            to_stage: 1,
            exit: Some(ExitId(0)),
            requests: std::iter::once(RequestId(batch)).collect(),
            soon: Soon::new(),
        }
    }

    fn late(batch: u64) -> Reply {
        Reply {
            request: RequestId(batch),
            app: AppId(0),
            outcome: Outcome::Answered {
                variant: VariantId(0),
                exit: ExitId(0),
                in_time: false,
            },
            latency: Micros(1),
            decided: None,
            ran: Some(Ran {
                batch: BatchId(batch),
                size: 1,
                since: Time(0),
            }),
            evidence: None,
        }
    }

    #[test]
    fn what_does_not_fit_is_only_counted() {
        let mut timeline = Timeline::new(Time(0), Time(u64::MAX));
        let service = Cost {
            service: Micros(10),
            ..Cost::default()
        };
        let batches = BARS_MAX as u64 + 7;
        for batch in 1..=batches {
            timeline.ran(Time(batch), &run(batch), service);
            timeline.ended(Time(batch + 10), &late(batch));
        }
        assert_eq!((timeline.bars.len(), timeline.dropped), (BARS_MAX, 7));
        assert_eq!(
            (timeline.kept.len(), timeline.ends.len()),
            (BARS_MAX, ENDS_PARTS)
        );
        assert_eq!(
            timeline.violations, batches,
            "ends are counted all the same"
        );
        assert!(timeline.bars.iter().all(|bar| bar.late == 1));
    }

    #[test]
    fn ends_are_counted_in_their_part_of_the_interval() {
        let mut timeline = Timeline::new(Time(1_000), Time(3_000));
        for at in [999, 1_000, 1_009, 1_010, 2_999, 3_000] {
            timeline.ended(Time(at), &late(at));
        }
        let late = |part: usize| timeline.ends[part].late;
        assert_eq!((late(0), late(1), late(ENDS_PARTS - 1)), (2, 1, 1));
        assert_eq!(timeline.violations, 4);
    }
}
