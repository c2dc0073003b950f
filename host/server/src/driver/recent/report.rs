//! The last seconds of a pool as JSON, with names instead of ids.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use switchyard_core::ids::WorkerId;
use switchyard_core::request::Outcome;
use switchyard_core::time::Time;

use super::ends::AppEnds;
use super::runs::Run;
use super::{Recent, SLOT, SLOTS_OF_ENDS, position};

/// The last seconds of a pool, cut into slots. The last slot has not ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RecentReport {
    /// Beginning of the first slot, in microseconds since the server began.
    pub from_us: u64,
    /// Length of a slot.
    pub slot_us: u64,
    /// Number of slots.
    pub slots: u64,
    /// Time before now that the counts of requests cover.
    pub covers_us: u64,
    /// Ended requests by app.
    pub apps: Vec<AppRecent>,
    /// Batches by worker.
    pub workers: Vec<WorkerRecent>,
}

/// The requests of an app that have ended in the last seconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AppRecent {
    /// Its name.
    pub app: String,
    /// Deadline of a request that names none, from its arrival.
    pub slo_us: u64,
    /// Ended requests by outcome, as in `switchyard_requests_total`; those that are 0 are left out.
    pub outcomes: BTreeMap<String, u64>,
    /// Latencies of answers: median, and the percentiles 90 and 99; off by 7 % at most.
    pub latency_us: Option<[u64; 3]>,
    /// Mean profiled quality of answers, 0 to 1, where it is known.
    pub quality: Option<f64>,
    /// By the policy that decided; `host` if none did.
    pub policies: Vec<PolicyRecent>,
}

/// The requests that one policy decided about.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PolicyRecent {
    /// Label of the policy.
    pub policy: String,
    /// Requests that have ended, without those whose clients went away.
    pub ended: u64,
    /// Those that were answered before their deadline.
    pub in_time: u64,
}

/// The batches of a worker.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkerRecent {
    /// Its name.
    pub worker: String,
    /// By slot, oldest first; within a slot by variant, stages and exit.
    pub runs: Vec<RunRecent>,
}

/// Batches of one kind in one slot.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunRecent {
    /// Position of the slot, from 0.
    pub slot: u64,
    /// `app/variant`.
    pub variant: String,
    /// The first stage, one past the last one, and the stages of the variant.
    pub stages: [u32; 3],
    /// The exit that answered; `None`: the requests were parked.
    pub exit: Option<String>,
    /// Batches that ended in the slot.
    pub batches: u32,
    /// Their requests.
    pub requests: u32,
    /// Part of the slot in which the worker computed them.
    pub busy_us: u64,
}

impl Recent {
    /// The last seconds before `now`.
    pub(in crate::driver) fn report(&mut self, now: Time) -> RecentReport {
        self.advance(now);
        let oldest = self.oldest();
        let first = (self.newest + 1).saturating_sub(SLOTS_OF_ENDS);
        let apps = 0..self.catalog.apps.len();
        let workers = (0..).map(WorkerId).zip(&self.catalog.workers);
        RecentReport {
            from_us: oldest * SLOT.0,
            slot_us: SLOT.0,
            slots: self.newest + 1 - oldest,
            covers_us: now.since(Time(first * SLOT.0).max(self.began)).0,
            apps: apps.map(|at| self.app(at, first)).collect(),
            workers: workers
                .map(|(id, worker)| WorkerRecent {
                    worker: worker.name.clone(),
                    runs: self.runs_of(id, oldest),
                })
                .collect(),
        }
    }

    fn app(&self, at: usize, first: u64) -> AppRecent {
        let mut all = AppEnds::default();
        for slot in first..=self.newest {
            all.merge(&self.slots[position(slot)].apps[at]);
        }
        let counted = Outcome::LABELS.iter().zip(all.outcomes);
        let counted = counted.filter(|(_, count)| *count > 0);
        let percentile = |share| all.latencies().percentile(share);
        let (sum, number) = all.quality;
        let policies = all.policies.iter().map(|policy| PolicyRecent {
            policy: policy.by.to_string(),
            ended: policy.ended,
            in_time: policy.in_time,
        });
        AppRecent {
            app: self.catalog.apps[at].name.clone(),
            slo_us: self.catalog.apps[at].slo.0,
            outcomes: counted.map(|(l, count)| ((*l).to_owned(), count)).collect(),
            latency_us: percentile(0.5)
                .zip(percentile(0.9))
                .zip(percentile(0.99))
                .map(|((median, p90), p99)| [median, p90, p99]),
            quality: (number > 0).then(|| sum / number as f64),
            policies: policies.collect(),
        }
    }

    fn runs_of(&self, worker: WorkerId, oldest: u64) -> Vec<RunRecent> {
        let mut found = Vec::new();
        for slot in oldest..=self.newest {
            let runs = self.slots[position(slot)].runs.iter();
            let mut own: Vec<_> = runs.filter(|run| run.kind.worker == worker).collect();
            own.sort_unstable_by_key(|run| run.kind);
            found.extend(own.into_iter().map(|run| self.named(slot - oldest, run)));
        }
        found
    }

    fn named(&self, slot: u64, run: &Run) -> RunRecent {
        let variant = self.catalog.variant(run.kind.variant);
        let app = variant.and_then(|variant| self.catalog.app(variant.app));
        let exit = variant.zip(run.kind.exit);
        let exit = exit.and_then(|(variant, exit)| variant.exit(exit));
        let (first, end) = run.kind.stages;
        RunRecent {
            slot,
            variant: match (app, variant) {
                (Some(app), Some(variant)) => format!("{}/{}", app.name, variant.name),
                _ => run.kind.variant.0.to_string(),
            },
            stages: [first, end, variant.map_or(end, |variant| variant.stages)],
            exit: exit.map(|exit| exit.name.clone()),
            batches: run.batches,
            requests: run.requests,
            busy_us: run.busy.min(SLOT).0,
        }
    }
}
