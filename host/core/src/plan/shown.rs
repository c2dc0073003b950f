//! A plan checked against a window: as far as the window shows the moment it was made for.

use std::collections::BTreeMap;

use super::rules::{self, CheckBuffers};
use super::state::{PlanState, QueuedBatch, RequestStands, RequestView};
use super::{Plan, PlanError};
use crate::catalog::Catalog;
use crate::ids::{AppId, BatchId, RequestId, WorkerId};
use crate::request::Progress;
use crate::window::{IDLE, PlacedState, Requests, Window};

/// Checks a plan against the window it answers, by the rules of [`CheckedPlan`] and with its
/// errors.
///
/// Parts of the window that the policy did not ask for are empty, and an absent row counts as
/// absent in the pool. So without `placed` every revoke is refused as naming no queued batch, and
/// without `evidence` every answer as having none: a policy that was shown neither cannot name
/// them. Without `residents` and `completions` nothing is missing. A worker beyond the window's
/// columns is away.
///
/// Some facts are in no window. Rules about them are not checked, and the plan passes where the
/// live check might refuse it:
/// - The requests of a batch that the plan revokes may have run stages, or have no evidence yet.
///   `from_stage` of their dispatches and their answers pass.
/// - The running and the queued batches may park requests. Only those parked now, in
///   `workers.parked`, and those that the plan parks count towards a worker's `parked_max`.
///
/// Every plan that the live check accepts passes here with all fields shown. Takes time in
/// proportion to the rows of the window, and to the logarithm of them per entry of the plan.
///
/// # Errors
/// The first reason to refuse the plan.
///
/// [`CheckedPlan`]: super::CheckedPlan
pub fn check_window(window: &Window, catalog: &Catalog, plan: &Plan) -> Result<(), PlanError> {
    let state = ShownState::new(window, catalog);
    rules::check(plan, &state, &mut CheckBuffers::default())
}

/// A window, indexed.
struct ShownState<'a> {
    window: &'a Window,
    catalog: &'a Catalog,
    requests: BTreeMap<RequestId, RequestView>,
    /// The worker and the size of each queued batch.
    queued: BTreeMap<BatchId, (WorkerId, usize)>,
}

// === impl ShownState ===

impl<'a> ShownState<'a> {
    fn new(window: &'a Window, catalog: &'a Catalog) -> Self {
        let mut made = Self {
            window,
            catalog,
            requests: BTreeMap::new(),
            queued: BTreeMap::new(),
        };
        made.add_placed();
        made.add_pending(&window.requests);
        made
    }

    fn add_placed(&mut self) {
        let placed = &self.window.placed;
        let rows = placed.id.iter().zip(&placed.app).zip(&placed.worker);
        let rows = rows.zip(&placed.batch).zip(&placed.state);
        for ((((&id, &app), &worker), &batch), &state) in rows {
            let (batch, worker) = (BatchId(batch), WorkerId(worker));
            let is_queued = state == PlacedState::Queued as u8;
            if is_queued && self.catalog.worker(worker).is_some() {
                self.queued.entry(batch).or_insert((worker, 0)).1 += 1;
            }
            let view = RequestView {
                app: AppId(app),
                stands: match is_queued {
                    true => RequestStands::Queued(batch),
                    false => RequestStands::Elsewhere,
                },
                progress: None,
                has_evidence: false,
                is_whole: false,
            };
            self.requests.insert(RequestId(id), view);
        }
    }

    fn add_pending(&mut self, requests: &Requests) {
        for (&id, &app) in requests.id.iter().zip(&requests.app) {
            let view = RequestView {
                app: AppId(app),
                stands: RequestStands::Pending,
                progress: None,
                has_evidence: false,
                is_whole: true,
            };
            self.requests.insert(RequestId(id), view);
        }
        for parked in &requests.progress {
            if let Some(view) = self.pending_at(parked.index) {
                view.progress = Some(Progress {
                    worker: parked.worker,
                    variant: parked.variant,
                    stages_run: parked.stages_run,
                });
            }
        }
        for &index in &requests.evidence_index {
            if let Some(view) = self.pending_at(index) {
                view.has_evidence = true;
            }
        }
    }

    /// The request at a position of the columns.
    fn pending_at(&mut self, index: u32) -> Option<&mut RequestView> {
        let id = self.window.requests.id.get(index as usize)?;
        self.requests.get_mut(&RequestId(*id))
    }
}

impl PlanState for ShownState<'_> {
    fn catalog(&self) -> &Catalog {
        self.catalog
    }

    fn request(&self, id: RequestId) -> Option<RequestView> {
        self.requests.get(&id).copied()
    }

    fn pending(&self) -> usize {
        self.window.requests.id.len()
    }

    fn batch(&self, id: BatchId) -> Option<QueuedBatch> {
        let &(worker, _) = self.queued.get(&id)?;
        Some(QueuedBatch { worker, parks: 0 })
    }

    fn queued_batches(&self) -> usize {
        self.queued.len()
    }

    fn queued_requests(&self) -> usize {
        self.queued.values().map(|&(_, size)| size).sum()
    }

    fn is_up(&self, worker: WorkerId) -> bool {
        let up = self.window.workers.up.get(worker.index());
        up.is_some_and(|&up| up != 0)
    }

    fn is_running(&self, worker: WorkerId) -> bool {
        let running = self.window.workers.running_variant.get(worker.index());
        running.is_some_and(|&variant| variant != IDLE)
    }

    fn queued(&self, worker: WorkerId) -> u32 {
        let queued = self.window.workers.queued.get(worker.index());
        queued.copied().unwrap_or_default()
    }

    fn parked(&self, worker: WorkerId) -> u32 {
        let parked = self.window.workers.parked.get(worker.index());
        parked.copied().unwrap_or_default()
    }
}
