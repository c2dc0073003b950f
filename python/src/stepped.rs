//! A run that Python decides slot by slot.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use switchyard_core::catalog::Catalog;
use switchyard_core::event::Reply;
use switchyard_core::plan::Plan;
use switchyard_core::policy::WindowFields;
use switchyard_core::request::Outcome;
use switchyard_core::time::{Micros, Time};
use switchyard_sim::stepped::Stepped;
use switchyard_sim::{Observer, Scenario};
use switchyard_simulate::Prepared;

use crate::catalog::CatalogView;
use crate::error::{refused, wrong};
use crate::options::Options;
use crate::plan::RawPlan;
use crate::window::WindowView;

/// Requests that ended in a slot: in time, late, without an answer.
pub(crate) type Ends = (u64, u64, u64);

/// A run between two slots.
#[pyclass(frozen, module = "switchyard._native")]
pub(crate) struct SteppedRun {
    catalog: Arc<Catalog>,
    duration_us: u64,
    /// None once the run has ended.
    running: Mutex<Option<Stepped<EndCounter>>>,
}

/// Counts the requests that end.
#[derive(Default)]
pub(crate) struct EndCounter(Ends);

impl Observer for EndCounter {
    fn ended(&mut self, _: Time, reply: &Reply) {
        let (in_time, late, unanswered) = &mut self.0;
        match reply.outcome {
            Outcome::Answered { in_time: true, .. } | Outcome::ShortCircuited { in_time: true } => {
                *in_time += 1;
            }
            Outcome::Answered { .. } | Outcome::ShortCircuited { .. } => *late += 1,
            _ => *unanswered += 1,
        }
    }
}

// === impl EndCounter ===

impl EndCounter {
    /// The counts since the last call.
    pub(crate) fn take(&mut self) -> Ends {
        std::mem::take(&mut self.0)
    }
}

/// The scenario of a run of one point.
///
/// # Errors
/// An input cannot be used.
pub(crate) fn scenario(options: &Options) -> PyResult<Scenario> {
    let request = options.request_without_policies()?;
    let prepared = Prepared::try_new(request).map_err(refused)?;
    let point = prepared.points.into_iter().next();
    let point = point.ok_or_else(|| wrong("sweep", "has no point"))?;
    Ok(point.scenario)
}

#[pymethods]
impl SteppedRun {
    /// Begins a run of the first seed.
    #[new]
    fn new(py: Python<'_>, options: Options, slot_us: u64) -> PyResult<Self> {
        let seed = options.first_seed();
        let wants = WindowFields {
            evidence: true,
            placed: true,
            residents: true,
            completions: false,
        };
        py.detach(|| {
            let scenario = scenario(&options)?;
            let begun = Stepped::try_new(
                &scenario,
                Micros(slot_us),
                wants,
                seed,
                EndCounter::default(),
            );
            Ok(Self {
                catalog: Arc::clone(&scenario.catalog),
                duration_us: scenario.duration.0,
                running: Mutex::new(Some(begun.map_err(refused)?)),
            })
        })
    }

    #[getter]
    fn catalog(&self) -> CatalogView {
        CatalogView::of(Arc::clone(&self.catalog))
    }

    #[getter]
    fn duration_us(&self) -> u64 {
        self.duration_us
    }

    /// The window of the slot that begins.
    fn window(&self, py: Python<'_>) -> PyResult<WindowView> {
        self.with(|run| WindowView::new(py, run.window()))
    }

    /// Decides the slot and runs to the next one. Returns its window, and the requests that ended.
    fn step(&self, py: Python<'_>, plan: RawPlan) -> PyResult<(WindowView, Ends)> {
        let mut decided = Plan::default();
        plan.fill(&self.catalog, &mut decided);
        py.detach(|| self.with(|run| run.step(&mut decided).map_err(refused)))?;
        self.with(|run| {
            let window = WindowView::new(py, run.window())?;
            Ok((window, run.observer_mut().take()))
        })
    }

    /// Runs to the end and returns the report as JSON.
    fn finish(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| {
            let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
            let run = running.take().ok_or_else(ended)?;
            let report = run.finish().map_err(refused)?;
            serde_json::to_string(&report).map_err(refused)
        })
    }
}

impl SteppedRun {
    fn with<T>(&self, work: impl FnOnce(&mut Stepped<EndCounter>) -> PyResult<T>) -> PyResult<T> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        work(running.as_mut().ok_or_else(ended)?)
    }
}

fn ended() -> PyErr {
    wrong("step", "the run has ended; begin another one")
}
