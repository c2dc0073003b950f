//! Environments of Gymnasium: runs of one scenario whose actions and observations are numbers.

use std::sync::Arc;

use pyo3::prelude::*;
use switchyard_core::catalog::Catalog;
use switchyard_core::ids::{ExitId, RequestId, VariantId, WorkerId};
use switchyard_core::plan::{Dispatch, Plan};
use switchyard_core::policy::WindowFields;
use switchyard_core::time::Micros;
use switchyard_core::window::Window;
use switchyard_sim::Scenario;
use switchyard_sim::stepped::Stepped;

use crate::catalog::CatalogView;
use crate::error::{refused, wrong};
use crate::options::Options;
use crate::slots::{self, Slot, SlotRuns, Slots};
use crate::stepped::{EndCounter, scenario};

/// Past the end of any queue: the end.
const LAST: u32 = u32::MAX;

/// Runs of one scenario, each at the start of a slot.
#[pyclass(frozen, module = "switchyard._native")]
pub(crate) struct Environments(Slots<Scheduling>);

/// A variant is chosen for each idle worker.
struct Scheduling {
    scenario: Scenario,
    slot: Micros,
}

/// One run.
struct Environment {
    run: Stepped<EndCounter>,
    plan: Plan,
    /// Requests that this slot's plan has dispatched, by their rows.
    taken: Vec<bool>,
}

#[pymethods]
impl Environments {
    /// `count` runs, which a reset begins.
    #[new]
    fn new(py: Python<'_>, options: Options, slot_us: u64, count: usize) -> PyResult<Self> {
        py.detach(|| {
            let scheduling = Scheduling {
                scenario: scenario(&options)?,
                slot: Micros(slot_us),
            };
            Ok(Self(Slots::new(scheduling, count)))
        })
    }

    #[getter]
    fn catalog(&self) -> CatalogView {
        CatalogView::of(Arc::clone(&self.0.of.scenario.catalog))
    }

    #[getter]
    fn duration_us(&self) -> u64 {
        self.0.of.scenario.duration.0
    }

    /// Numbers of an observation.
    #[getter]
    fn observation_size(&self) -> usize {
        self.0.of.observation_size()
    }

    /// As [`Slots::step`]; `actions` are 64-bit integers, one per worker of each run.
    fn step<'py>(
        &self,
        py: Python<'py>,
        actions: &[u8],
        resets: Vec<(usize, u64)>,
    ) -> PyResult<slots::Stepped<'py>> {
        self.0.step(py, actions, &resets)
    }
}

// === impl Scheduling ===

impl SlotRuns for Scheduling {
    type Run = Environment;
    type Number = i64;

    fn action_size(&self) -> usize {
        self.scenario.catalog.workers.len()
    }

    fn observation_size(&self) -> usize {
        let catalog = &self.scenario.catalog;
        3 * catalog.apps.len() + 2 * catalog.workers.len()
    }

    fn begin(&self, seed: u64) -> PyResult<Environment> {
        let wants = WindowFields::default();
        let counter = EndCounter::default();
        let run = Stepped::try_new(&self.scenario, self.slot, wants, seed, counter);
        Ok(Environment {
            run: run.map_err(refused)?,
            plan: Plan::default(),
            taken: Vec::new(),
        })
    }

    fn step(&self, run: &mut Environment, action: &[i64]) -> PyResult<()> {
        run.decide(&self.scenario.catalog, action)?;
        run.run.step(&mut run.plan).map_err(refused)
    }

    fn observe(&self, run: &mut Environment, observations: &mut Vec<f32>) -> Slot {
        let (in_time, late, unanswered) = run.run.observer_mut().take();
        let window = run.run.window();
        observe(&self.scenario.catalog, window, observations);
        Slot {
            in_time,
            late,
            unanswered,
            now_us: window.now.0,
            reward: in_time as f64 - late as f64 - unanswered as f64,
        }
    }
}

// === impl Environment ===

impl Environment {
    /// For each idle worker the oldest requests of its variant's app that no worker before it has.
    fn decide(&mut self, catalog: &Catalog, action: &[i64]) -> PyResult<()> {
        let window = self.run.window();
        let (requests, workers) = (&window.requests, &window.workers);
        self.taken.clear();
        self.taken.resize(requests.id.len(), false);
        for (worker, &chosen) in action.iter().enumerate() {
            let choices = catalog.variants.len();
            let number = usize::try_from(chosen).ok().filter(|n| *n <= choices);
            let Some(number) = number else {
                let reason = format!("worker {worker}: {chosen}, must be 0 to {choices}");
                return Err(wrong("action", reason));
            };
            let is_idle = workers.free_at[worker] <= window.now.0
                && workers.queued[worker] == 0
                && workers.up[worker] == 1;
            let Some(at) = number.checked_sub(1).filter(|_| is_idle) else {
                continue;
            };
            let variant = &catalog.variants[at];
            let rows = (0..requests.id.len())
                .filter(|&row| requests.app[row] == variant.app.0 && !self.taken[row])
                .take(variant.max_batch as usize)
                .collect::<Vec<_>>();
            let Some(last) = variant
                .exits
                .len()
                .checked_sub(1)
                .filter(|_| !rows.is_empty())
            else {
                continue;
            };
            for &row in &rows {
                self.taken[row] = true;
            }
            let dispatch = Dispatch {
                worker: WorkerId(worker as u32),
                variant: VariantId(at as u32),
                from_stage: 0,
                to_stage: variant.exits[last].after_stage,
                exit: Some(ExitId(last as u32)),
                place: LAST,
                size: 0,
            };
            let ids = rows.iter().map(|&row| RequestId(requests.id[row]));
            self.plan.dispatch(dispatch, ids);
        }
        Ok(())
    }
}

/// Of each app pending requests, the least time to a deadline (its SLO without one) and the arrivals per
/// second; of each worker the time until it is free, and whether it is up. Times are in milliseconds.
fn observe(catalog: &Catalog, window: &Window, observation: &mut Vec<f32>) {
    let apps = catalog.apps.len();
    let (first, now) = (observation.len(), window.now.0);
    observation.resize(first + apps, 0.0);
    observation.extend(std::iter::repeat_n(f32::INFINITY, apps));
    for (&app, &deadline) in window.requests.app.iter().zip(&window.requests.deadline) {
        let at = first + app as usize;
        observation[at] += 1.0;
        let left_ms = (deadline as i64 - now as i64) as f64 / 1e3;
        observation[at + apps] = observation[at + apps].min(left_ms as f32);
    }
    for (at, app) in catalog.apps.iter().enumerate() {
        if observation[first + at] == 0.0 {
            observation[first + apps + at] = (app.slo.as_secs_f64() * 1e3) as f32;
        }
        let rate = window.arrival_rate.get(at).copied().unwrap_or_default();
        observation.push(rate as f32);
    }
    let free = window.workers.free_at.iter();
    observation.extend(free.map(|&at| (at.saturating_sub(now) as f64 / 1e3) as f32));
    observation.extend(window.workers.up.iter().map(|&up| f32::from(up)));
}
