//! A run that Python decides slot by slot. The run is on a thread of its own, which owns its scenario.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;

use pyo3::prelude::*;
use switchyard_core::catalog::Catalog;
use switchyard_core::event::Reply;
use switchyard_core::plan::Plan;
use switchyard_core::policy::WindowFields;
use switchyard_core::request::Outcome;
use switchyard_core::time::{Micros, Time};
use switchyard_core::window::Window;
use switchyard_sim::stepped::Stepped;
use switchyard_sim::{Observer, Scenario};
use switchyard_simulate::Prepared;

use crate::error::{refused, wrong};
use crate::options::Options;
use crate::plan::RawPlan;
use crate::window::{CatalogView, WindowView};

/// Requests that ended in a slot: in time, late, without an answer.
type Ends = (u64, u64, u64);

/// A run between two slots.
#[pyclass(frozen, module = "switchyard._native")]
pub(crate) struct SteppedRun {
    catalog: Catalog,
    duration_us: u64,
    /// None once the run has ended.
    running: Mutex<Option<Running>>,
}

struct Running {
    plans: SyncSender<Option<Plan>>,
    slots: Receiver<Result<Slot, String>>,
    thread: JoinHandle<()>,
}

/// The begin of a slot, or the report at the end.
enum Slot {
    Begins(Box<Window>, Ends),
    Ended(String),
}

#[derive(Default)]
struct EndCounter(Ends);

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

#[pymethods]
impl SteppedRun {
    /// Begins a run of the first seed.
    #[new]
    fn new(options: Options, slot_us: u64) -> PyResult<Self> {
        let request = options.request_without_policies()?;
        let seed = request.seeds.first().copied().unwrap_or_default();
        let prepared = Prepared::try_new(request).map_err(refused)?;
        let point = prepared.points.into_iter().next();
        let scenario = point
            .ok_or_else(|| wrong("sweep", "has no point"))?
            .scenario;
        let catalog = scenario.catalog.as_ref().clone();
        let duration_us = scenario.duration.0;
        let (plans, taken) = sync_channel(1);
        let (made, slots) = sync_channel(1);
        let thread = std::thread::spawn(move || {
            let ended = run(&scenario, Micros(slot_us), seed, &taken, &made);
            // The receiver is gone if Python dropped the run.
            let _ = made.send(ended.map(Slot::Ended));
        });
        Ok(Self {
            catalog,
            duration_us,
            running: Mutex::new(Some(Running {
                plans,
                slots,
                thread,
            })),
        })
    }

    #[getter]
    fn catalog(&self) -> CatalogView {
        CatalogView::new(&self.catalog)
    }

    #[getter]
    fn duration_us(&self) -> u64 {
        self.duration_us
    }

    /// The window of the slot that begins, and the requests that ended in the one before.
    fn slot(&self, py: Python<'_>) -> PyResult<(WindowView, Ends)> {
        match py.detach(|| self.receive())? {
            Slot::Begins(window, ends) => Ok((WindowView::new(&window), ends)),
            Slot::Ended(_) => Err(wrong("slot", "the run has ended")),
        }
    }

    /// Decides the slot; without a plan runs to the end and returns the report.
    fn decide(&self, py: Python<'_>, plan: Option<RawPlan>) -> PyResult<Option<String>> {
        let is_last = plan.is_none();
        let plan = plan.map(|raw| {
            let mut plan = Plan::default();
            raw.fill(&self.catalog, &mut plan);
            plan
        });
        py.detach(|| {
            self.send(plan)?;
            match is_last.then(|| self.receive()).transpose()? {
                Some(Slot::Ended(report)) => Ok(Some(report)),
                _ => Ok(None),
            }
        })
    }
}

impl SteppedRun {
    fn send(&self, plan: Option<Plan>) -> PyResult<()> {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let sent = running
            .as_ref()
            .and_then(|running| running.plans.send(plan).ok());
        match sent {
            Some(()) => Ok(()),
            None => Err(wrong("step", "the run has ended; begin another one")),
        }
    }

    fn receive(&self) -> PyResult<Slot> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = running
            .as_ref()
            .and_then(|running| running.slots.recv().ok());
        if !matches!(slot, Some(Ok(Slot::Begins(..)))) {
            end(running.take());
        }
        let slot = slot.ok_or_else(|| wrong("step", "the run has ended; begin another one"))?;
        slot.map_err(refused)
    }
}

impl Drop for SteppedRun {
    fn drop(&mut self) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        end(running.take());
    }
}

/// Closes the channels, which ends the thread, and waits for it.
fn end(running: Option<Running>) {
    let Some(Running {
        plans,
        slots,
        thread,
    }) = running
    else {
        return;
    };
    drop((plans, slots));
    // A panic has been printed; the closed channel has told the caller.
    let _ = thread.join();
}

/// The report as JSON.
fn run(
    scenario: &Scenario,
    slot: Micros,
    seed: u64,
    plans: &Receiver<Option<Plan>>,
    slots: &SyncSender<Result<Slot, String>>,
) -> Result<String, String> {
    let wants = WindowFields {
        residents: true,
        ..WindowFields::default()
    };
    let text = |error: switchyard_sim::SimError| error.to_string();
    let mut stepped =
        Stepped::try_new(scenario, slot, wants, seed, EndCounter::default()).map_err(text)?;
    loop {
        let ends = std::mem::take(&mut stepped.observer_mut().0);
        let begins = Slot::Begins(Box::new(stepped.window().clone()), ends);
        if slots.send(Ok(begins)).is_err() {
            return Err("the run was dropped".to_owned());
        }
        match plans.recv() {
            Ok(Some(mut plan)) => stepped.step(&mut plan).map_err(text)?,
            Ok(None) => {
                let report = stepped.finish().map_err(text)?;
                return serde_json::to_string(&report).map_err(|error| error.to_string());
            }
            Err(_) => return Err("the run was dropped".to_owned()),
        }
    }
}
