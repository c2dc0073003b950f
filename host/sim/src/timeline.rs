//! Batches and ends of requests in an interval of a run, for plots of timelines.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use switchyard_core::event::{Launch, Reply};
use switchyard_core::ids::{BatchId, ExitId, VariantId, WorkerId};
use switchyard_core::request::Outcome;
use switchyard_core::time::{Micros, Time};

use crate::hardware::BatchCost;
use crate::observer::Observer;

/// Most batches that are kept; the rest is counted.
pub const BARS_MAX: usize = 100_000;

/// Equal parts of the interval in which ends of requests are counted.
pub const ENDS_PARTS: usize = 200;

/// Keeps the batches that overlap an interval and counts the ends in it, as an [`Observer`] of
/// a run. Its memory is bounded by [`BARS_MAX`], however long the interval.
#[derive(Clone, Debug, PartialEq)]
pub struct Timeline {
    from: Time,
    to: Time,
    /// Batches, in the order of their starts.
    pub bars: Vec<BatchBar>,
    /// RequestEnds of requests in the interval's [`ENDS_PARTS`] equal parts.
    pub ends: Vec<RequestEnds>,
    /// Requests that ended in the interval late or without an answer.
    pub violations: u64,
    /// Batches beyond [`BARS_MAX`], which were not kept.
    pub dropped: u64,
    /// Positions of batches in `bars`.
    kept: BTreeMap<BatchId, usize>,
}

/// One batch on one worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchBar {
    /// Its worker, as a position in the catalog.
    pub worker: WorkerId,
    /// Its variant, as a position in the catalog.
    pub variant: VariantId,
    /// First stage.
    pub from_stage: u32,
    /// One past the last stage.
    pub to_stage: u32,
    /// The exit that answered; none if the activations were parked.
    pub exit: Option<ExitId>,
    /// Requests in it.
    pub size: u32,
    /// Requests that were answered after their deadlines.
    pub late: u32,
    /// Its start, in microseconds.
    #[serde(rename = "start_us")]
    pub start: Time,
    /// Time to make the variant resident, which comes first, in microseconds.
    #[serde(rename = "load_us")]
    pub load: Micros,
    /// Its end, in microseconds.
    #[serde(rename = "end_us")]
    pub end: Time,
}

/// Ends of requests by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestEnds {
    /// Answered by the deadline.
    pub in_time: u64,
    /// Answered after it.
    pub late: u64,
    /// Rejected, dropped, failed or cancelled.
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
            ends: vec![RequestEnds::default(); ENDS_PARTS],
            violations: 0,
            dropped: 0,
            kept: BTreeMap::new(),
        }
    }

    /// The interval `[from, to)`.
    pub fn interval(&self) -> (Time, Time) {
        (self.from, self.to)
    }

    /// The part of the interval that contains a time.
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
    fn ran(&mut self, now: Time, launch: &Launch, cost: BatchCost) {
        let end = now + cost.load + cost.service;
        if now >= self.to || end <= self.from {
            return;
        }
        if self.bars.len() == BARS_MAX {
            self.dropped += 1;
            return;
        }
        self.kept.insert(launch.batch, self.bars.len());
        self.bars.push(BatchBar {
            worker: launch.worker,
            variant: launch.variant,
            from_stage: launch.from_stage,
            to_stage: launch.to_stage,
            exit: launch.exit,
            size: launch.requests.len() as u32,
            late: 0,
            start: now,
            load: cost.load,
            end,
        });
    }

    fn ended(&mut self, now: Time, reply: &Reply) {
        let part = self.part(now);
        let mut unseen = RequestEnds::default();
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
    use switchyard_core::cost::Cost;
    use switchyard_core::event::Ran;
    use switchyard_core::ids::{AppId, RequestId};
    use switchyard_core::residents::Soon;

    use super::*;

    fn launch(batch: u64) -> Launch {
        Launch {
            batch: BatchId(batch),
            worker: WorkerId(0),
            variant: VariantId(0),
            from_stage: 0,
            to_stage: 1,
            exit: Some(ExitId(0)),
            requests: std::iter::once(RequestId(batch)).collect(),
            cost: Cost::ONE,
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
    fn batches_beyond_the_limit_are_counted() {
        let mut timeline = Timeline::new(Time(0), Time(u64::MAX));
        let service = BatchCost {
            service: Micros(10),
            ..BatchCost::default()
        };
        let batches = BARS_MAX as u64 + 7;
        for batch in 1..=batches {
            timeline.ran(Time(batch), &launch(batch), service);
            timeline.ended(Time(batch + 10), &late(batch));
        }
        assert_eq!((timeline.bars.len(), timeline.dropped), (BARS_MAX, 7));
        assert_eq!(
            (timeline.kept.len(), timeline.ends.len()),
            (BARS_MAX, ENDS_PARTS)
        );
        assert_eq!(
            timeline.violations, batches,
            "ends are counted without limit"
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
