//! A run that is decided from outside, slot by slot: what reinforcement learning needs of a
//! simulator (reset, step). The same events, the same scheduler, the same draws as in
//! [`run`](crate::run()): a plan given at the start of a slot does what a policy's plan does
//! whose window is opened then.

use std::sync::{Arc, Mutex, PoisonError};

use switchyard_core::catalog::Catalog;
use switchyard_core::plan::Plan;
use switchyard_core::policy::{Description, Policy, PolicyFault, Sights};
use switchyard_core::time::{Micros, Time};
use switchyard_core::window::Window;

use crate::driver::{Observer, Simulation};
use crate::metrics::Report;
use crate::scenario::{Scenario, SimError};

/// Shorter slots are made this long: the scheduler opens no windows closer to each other.
pub const SLOT_MIN: Micros = Micros(100);

/// A run at the start of a slot, waiting for a plan.
pub struct Stepped<'a, O> {
    simulation: Simulation<'a, O>,
    slot: Micros,
    given: Given,
    wants: Sights,
    window: Window,
}

/// What was decided outside, on its way to the scheduler.
type Given = Arc<Mutex<Plan>>;

/// Stands in for whoever decides outside.
struct Outside {
    description: Description,
    given: Given,
}

// === impl Stepped ===

impl<'a, O: Observer> Stepped<'a, O> {
    /// A run at its first slot, at time 0; `wants` is what [`window`](Self::window) shows
    /// beside the requests and the workers (completions it never does).
    ///
    /// # Errors
    /// The scenario makes no sense.
    pub fn try_new(
        scenario: &'a Scenario,
        slot: Micros,
        wants: Sights,
        seed: u64,
        observer: O,
    ) -> Result<Self, SimError> {
        let slot = slot.max(SLOT_MIN);
        let given = Given::default();
        let outside = Outside {
            description: Description {
                name: "outside".to_owned(),
                version: "0.1.0".to_owned(),
                summary: "Decided outside of the simulation, slot by slot".to_owned(),
                every: Some(slot),
                when_empty: true,
                ..Description::default()
            },
            given: Arc::clone(&given),
        };
        let simulation = Simulation::try_new(scenario, Box::new(outside), seed, observer)?;
        let mut made = Self {
            simulation,
            slot,
            given,
            wants,
            window: Window::default(),
        };
        made.look();
        Ok(made)
    }

    /// Decides the slot that begins now and runs to the start of the next one. What the plan
    /// does not replace stays in force: routes do.
    ///
    /// # Errors
    /// An invariant broke, or the plan asked for a run that the profile does not know.
    pub fn step(&mut self, plan: &mut Plan) -> Result<(), SimError> {
        // The other holder is this run's own policy: nobody panics between.
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::swap(&mut *given, plan);
        drop(given);
        plan.clear();
        let next = self.simulation.now() + self.slot;
        self.simulation.run_to(next)?;
        self.look();
        Ok(())
    }

    /// The yard at the start of this slot.
    pub fn window(&self) -> &Window {
        &self.window
    }

    /// The phase that a stream of the workload is in, and when it began: what no policy is told.
    pub fn phase(&self, stream: usize) -> Option<(usize, Time)> {
        self.simulation.phase(stream)
    }

    /// Who watches.
    pub fn observer(&self) -> &O {
        self.simulation.observer()
    }

    /// Who watches, to be reset.
    pub fn observer_mut(&mut self) -> &mut O {
        self.simulation.observer_mut()
    }

    /// Runs to the end of the last request, with the routes that are in force.
    ///
    /// # Errors
    /// As [`run`](crate::run()).
    pub fn finish(self) -> Result<Report, SimError> {
        self.simulation.run()
    }

    fn look(&mut self) {
        let now = self.simulation.now();
        let scheduler = self.simulation.scheduler();
        scheduler.look(now, self.wants, &mut self.window);
    }
}

// === impl Outside ===

impl Policy for Outside {
    fn description(&self) -> &Description {
        &self.description
    }

    fn configure(&mut self, _: &Catalog) -> Result<(), PolicyFault> {
        Ok(())
    }

    fn schedule(&mut self, _: &Window, plan: &mut Plan) -> Result<(), PolicyFault> {
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::swap(&mut *given, plan);
        given.clear();
        Ok(())
    }
}
