//! The expected result of a plan for the requests of its window, by the profile.

use std::collections::BTreeMap;

use switchyard_core::catalog::Catalog;
use switchyard_core::cost::Cost;
use switchyard_core::evidence::posterior;
use switchyard_core::ids::{AppId, BatchId, ExitId, RequestId, VariantId, WorkerId};
use switchyard_core::plan::{Dispatch, Plan};
use switchyard_core::time::{Micros, Time};
use switchyard_core::window::{PlacedState, Window};

/// The expected result of one pending request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outlook {
    /// Fate under the plan.
    pub fate: Fate,
    /// Time at which it is expected to end.
    pub end: Option<Time>,
    /// Expected accuracy, less the loss by lateness (SneakPeek eq. 2); `None` if the plan does not
    /// decide it.
    pub utility: Option<f64>,
}

/// The decision of a plan on one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It stays pending.
    Waits,
    /// It runs in a batch of the dispatch's size.
    Runs(Dispatch),
    /// It is refused.
    Rejected,
    /// It is answered from its evidence.
    Answered,
}

/// Sums over a window.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Worth {
    /// Sum of all utilities.
    pub utility: f64,
    /// Requests with a utility.
    pub requests: u64,
}

/// Judges plans for one window.
pub(super) struct Judge<'a> {
    catalog: &'a Catalog,
    window: &'a Window,
    /// The window says which variants are resident.
    shows_residents: bool,
    positions: BTreeMap<RequestId, usize>,
    /// Class probabilities, by position.
    thetas: Vec<Vec<f64>>,
}

/// An entry of a worker's queue.
enum Queued {
    /// A batch that waited before the plan, with its id if the window shows it.
    Before(Option<BatchId>),
    /// A dispatch of the plan, by position.
    Planned(usize),
}

// === impl Judge ===

impl<'a> Judge<'a> {
    /// The window must fit the catalog, as a recording's do.
    pub(super) fn new(catalog: &'a Catalog, window: &'a Window, shows_residents: bool) -> Self {
        let ids = window.requests.id.iter().map(|&id| RequestId(id));
        Self {
            catalog,
            window,
            shows_residents,
            positions: ids.zip(0..).collect(),
            thetas: thetas(catalog, window),
        }
    }

    /// By position in the window.
    pub(super) fn outlooks(&self, plan: &Plan) -> Vec<Outlook> {
        let waits = Outlook {
            fate: Fate::Waits,
            end: None,
            utility: None,
        };
        let mut outlooks = vec![waits; self.window.len()];
        let now = Some(self.window.now);
        for at in self.of(&plan.rejects) {
            outlooks[at] = Outlook {
                fate: Fate::Rejected,
                end: now,
                utility: Some(0.0),
            };
        }
        for at in self.of(&plan.answers) {
            outlooks[at] = Outlook {
                fate: Fate::Answered,
                end: now,
                utility: self.worth(at, now, self.evidence_accuracy(at)),
            };
        }
        let ends = self.ends(plan);
        for ((dispatch, members), end) in plan.batches().zip(ends) {
            for at in self.of(members) {
                let accuracy = dispatch
                    .exit
                    .and_then(|exit| self.accuracy(at, dispatch.variant, exit));
                outlooks[at] = Outlook {
                    fate: Fate::Runs(*dispatch),
                    end,
                    utility: self.worth(at, end, accuracy),
                };
            }
        }
        outlooks
    }

    /// The row of a pending request.
    pub(super) fn position(&self, id: RequestId) -> Option<usize> {
        self.positions.get(&id).copied()
    }

    pub(super) fn app_of(&self, id: RequestId) -> Option<AppId> {
        let app = self.window.requests.app.get(self.position(id)?)?;
        Some(AppId(*app))
    }

    pub(super) fn deadline(&self, id: RequestId) -> Option<Time> {
        let deadline = self.window.requests.deadline.get(self.position(id)?)?;
        Some(Time(*deadline))
    }

    fn of(&self, ids: &[RequestId]) -> impl Iterator<Item = usize> {
        ids.iter().filter_map(|id| self.positions.get(id).copied())
    }

    fn app(&self, at: usize) -> Option<&'a switchyard_core::catalog::App> {
        let app = self.window.requests.app.get(at)?;
        self.catalog.app(AppId(*app))
    }

    fn accuracy(&self, at: usize, variant: VariantId, exit: ExitId) -> Option<f64> {
        let exit = self.catalog.variant(variant)?.exit(exit)?;
        let shares = self.thetas.get(at)?.iter().zip(&exit.recall);
        Some(shares.map(|(theta, recall)| theta * recall).sum())
    }

    /// The profiled accuracy: evidence must not judge itself by its own guess (SneakPeek section
    /// 5.3.1).
    fn evidence_accuracy(&self, at: usize) -> Option<f64> {
        Some(self.app(at)?.sneakpeek.as_ref()?.accuracy)
    }

    fn worth(&self, at: usize, end: Option<Time>, accuracy: Option<f64>) -> Option<f64> {
        let requests = &self.window.requests;
        let arrival = Time(*requests.arrival.get(at)?);
        let deadline = Time(*requests.deadline.get(at)?).since(arrival);
        let loss = self.app(at)?.penalty.loss(deadline, end?.since(arrival));
        Some(accuracy? * (1.0 - loss))
    }

    /// Time at which each dispatch is expected to end, after the batches before it in its worker's
    /// queue.
    fn ends(&self, plan: &Plan) -> Vec<Option<Time>> {
        let mut queues = self.queues();
        for queue in &mut queues {
            queue.retain(|queued| match queued {
                Queued::Before(Some(batch)) => !plan.revokes.contains(batch),
                _ => true,
            });
        }
        for (i, dispatch) in plan.dispatches.iter().enumerate() {
            if let Some(queue) = queues.get_mut(dispatch.worker.index()) {
                let place = (dispatch.place as usize).min(queue.len());
                queue.insert(place, Queued::Planned(i));
            }
        }
        let mut ends = vec![None; plan.dispatches.len()];
        for (worker, queue) in (0..).map(WorkerId).zip(&queues) {
            self.walk(worker, queue, plan, &mut ends);
        }
        ends
    }

    fn walk(&self, worker: WorkerId, queue: &[Queued], plan: &Plan, ends: &mut [Option<Time>]) {
        let workers = &self.window.workers;
        let at = worker.index();
        let mut end = Time(workers.busy_until[at]).max(self.window.now);
        let behind = Time(workers.free_at[at]).since(end);
        // The window has the time of all waiting batches together, not of each.
        let each = Micros(behind.0 / u64::from(workers.queued[at].max(1)));
        let mut loaded = Vec::new();
        for queued in queue {
            let takes = match *queued {
                Queued::Before(_) => Some(each),
                Queued::Planned(i) => plan.batches().nth(i).and_then(|(dispatch, members)| {
                    self.takes(worker, dispatch, self.cost(members), &mut loaded)
                }),
            };
            let Some(takes) = takes else { return };
            end += takes;
            if let Queued::Planned(i) = *queued {
                ends[i] = Some(end);
            }
        }
    }

    fn cost(&self, members: &[RequestId]) -> Cost {
        let cost = |id| match self.positions.get(id) {
            Some(&at) => self.window.requests.cost(at),
            None => Cost::ONE,
        };
        members.iter().map(cost).sum()
    }

    /// Time of its run, and of its load if its variant is not resident.
    fn takes(
        &self,
        worker: WorkerId,
        dispatch: &Dispatch,
        cost: Cost,
        loaded: &mut Vec<VariantId>,
    ) -> Option<Micros> {
        let kind = self.catalog.worker(worker)?.kind;
        let profile = &self.catalog.profile;
        let run = profile.latency_of(
            kind,
            dispatch.variant,
            dispatch.from_stage,
            dispatch.to_stage,
            dispatch.exit,
            cost,
        )?;
        let mut residents = self.window.residents.iter();
        let resident = !self.shows_residents
            || loaded.contains(&dispatch.variant)
            || residents.any(|r| r.worker == worker && r.variant == dispatch.variant);
        if resident {
            return Some(run);
        }
        loaded.push(dispatch.variant);
        Some(run + profile.load_time(kind, dispatch.variant))
    }

    /// The batches that wait on each worker, with their ids if the window shows placed requests.
    fn queues(&self) -> Vec<Vec<Queued>> {
        let placed = &self.window.placed;
        let counts = self.window.workers.queued.iter();
        (0..)
            .zip(counts)
            .map(|(worker, &count)| {
                let mut names: Vec<BatchId> = (0..placed.id.len())
                    .filter(|&i| placed.worker[i] == worker)
                    .filter(|&i| placed.state[i] == PlacedState::Queued as u8)
                    .map(|i| BatchId(placed.batch[i]))
                    .collect();
                names.dedup();
                let names = names.into_iter().map(Some).chain(std::iter::repeat(None));
                names.take(count as usize).map(Queued::Before).collect()
            })
            .collect()
    }
}

/// The posterior of each request's classes (SneakPeek eq. 9); without evidence, the prior's mean.
fn thetas(catalog: &Catalog, window: &Window) -> Vec<Vec<f64>> {
    let requests = &window.requests;
    let mut counts = requests.evidence_counts.as_slice();
    let mut evidence = requests.evidence_index.iter().peekable();
    let apps = requests.app.iter().map(|&app| catalog.app(AppId(app)));
    apps.enumerate()
        .map(|(at, app)| {
            let Some(app) = app else { return Vec::new() };
            let mut own: &[u32] = &[];
            if evidence.next_if(|&&index| index as usize == at).is_some() {
                (own, counts) = counts.split_at(app.classes.len().min(counts.len()));
            }
            let mut theta = Vec::new();
            posterior(&app.prior, own, &mut theta);
            theta
        })
        .collect()
}

// === impl Worth ===

impl Worth {
    /// The worth of one plan.
    pub fn of(outlooks: &[Outlook]) -> Self {
        let mut worth = Self::default();
        for utility in outlooks.iter().filter_map(|outlook| outlook.utility) {
            worth.utility += utility;
            worth.requests += 1;
        }
        worth
    }

    /// Adds another window's sums.
    pub fn add(&mut self, other: Self) {
        self.utility += other.utility;
        self.requests += other.requests;
    }
}

#[cfg(test)]
mod tests;
