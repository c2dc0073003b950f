//! What ran where in a chosen interval: the material of a timeline plot.

use serde::{Deserialize, Serialize};
use switchyard_core::event::{Reply, Run};
use switchyard_core::ids::{ExitId, VariantId, WorkerId};
use switchyard_core::request::Outcome;
use switchyard_core::time::{Micros, Time};

use crate::driver::Observer;
use crate::hardware::Cost;

/// Batches kept at most; the rest of the interval is only counted.
pub const BARS_MAX: usize = 100_000;

/// Keeps the batches that overlap an interval, as an [`Observer`] of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Timeline {
    from: Time,
    to: Time,
    /// Batches, by the time they were started.
    pub bars: Vec<Bar>,
    /// Requests that ended in the interval without an answer in time.
    pub violations: u64,
    /// Batches beyond [`BARS_MAX`], which were not kept.
    pub dropped: u64,
}

/// One batch on one worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bar {
    /// Where it ran.
    pub worker: WorkerId,
    /// What ran.
    pub variant: VariantId,
    /// First stage.
    pub from_stage: u32,
    /// One past the last stage.
    pub to_stage: u32,
    /// The exit that answered; none where the activations were parked.
    pub exit: Option<ExitId>,
    /// Requests in it.
    pub size: u32,
    /// When it was started, in microseconds.
    pub start: Time,
    /// Making the variant resident comes first and takes this long, in microseconds.
    pub load: Micros,
    /// When it ended, in microseconds.
    pub end: Time,
}

// === impl Timeline ===

impl Timeline {
    /// Of the interval `[from, to)`.
    pub fn new(from: Time, to: Time) -> Self {
        Self {
            from,
            to,
            bars: Vec::new(),
            violations: 0,
            dropped: 0,
        }
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
        self.bars.push(Bar {
            worker: run.worker,
            variant: run.variant,
            from_stage: run.from_stage,
            to_stage: run.to_stage,
            exit: run.exit,
            size: run.requests.len() as u32,
            start: now,
            load: cost.load,
            end,
        });
    }

    fn ended(&mut self, now: Time, reply: &Reply) {
        let in_time = matches!(
            reply.outcome,
            Outcome::Answered { in_time: true, .. } | Outcome::ShortCircuited { in_time: true }
        );
        self.violations += u64::from(!in_time && now >= self.from && now < self.to);
    }
}
