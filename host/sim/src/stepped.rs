//! A run that is decided from outside, slot by slot, for reinforcement learning (reset, step). Events,
//! scheduler and draws are those of [`run`](crate::run()): a plan at the start of a slot has the effect
//! of a policy's plan for a window opened at that time.

use std::sync::{Arc, Mutex, PoisonError};

use switchyard_core::catalog::Catalog;
use switchyard_core::guard::FaultLimit;
use switchyard_core::plan::Plan;
use switchyard_core::policy::{Description, Policy, PolicyFault, WindowFields};
use switchyard_core::time::{Micros, Time};
use switchyard_core::window::Window;

use crate::driver::Simulation;
use crate::metrics::Report;
use crate::observer::Observer;
use crate::scenario::{Scenario, SimError};
use crate::source::SourceId;

/// Least length of a slot: the scheduler opens no windows closer to each other.
pub const SLOT_MIN: Micros = Micros(100);

/// A run at the start of a slot, waiting for a plan.
pub struct Stepped<O> {
    simulation: Simulation<O>,
    slot: Micros,
    given: SharedPlan,
    wants: WindowFields,
    window: Window,
}

/// The plan of a slot, on its way to the scheduler.
type SharedPlan = Arc<Mutex<Plan>>;

/// Hands the plans from outside to the scheduler.
struct ExternalPolicy {
    description: Description,
    given: SharedPlan,
}

// === impl Stepped ===

impl<O: Observer> Stepped<O> {
    /// A run at its first slot, at time 0. `wants` selects the optional fields of
    /// [`window`](Self::window); completions are never shown. Refused plans and starving requests count as
    /// faults, and the native fallback decides their windows; the next slots are decided from outside again,
    /// whatever the scenario's fault limit.
    ///
    /// # Errors
    /// The scenario is wrong.
    pub fn try_new(
        scenario: &Scenario,
        slot: Micros,
        wants: WindowFields,
        seed: u64,
        observer: O,
    ) -> Result<Self, SimError> {
        let slot = slot.max(SLOT_MIN);
        let given = SharedPlan::default();
        let outside = ExternalPolicy {
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
        let mut scenario = scenario.clone();
        scenario.scheduler.fault_limit = FaultLimit::NEVER;
        let simulation = Simulation::try_new(&scenario, Box::new(outside), seed, observer)?;
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

    /// Decides the slot that begins now and runs to the start of the next one. Routes stay in force
    /// until a plan replaces them.
    ///
    /// # Errors
    /// An invariant does not hold, or the plan contains a batch that the profile does not.
    pub fn step(&mut self, plan: &mut Plan) -> Result<(), SimError> {
        // Only this run's policy shares the lock, and it does not panic while it holds it.
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::swap(&mut *given, plan);
        drop(given);
        plan.clear();
        let next = self.simulation.now() + self.slot;
        self.simulation.run_to(next)?;
        self.look();
        Ok(())
    }

    /// The window at the start of this slot.
    pub fn window(&self) -> &Window {
        &self.window
    }

    /// The phase of a stream of the workload, and its beginning. Windows do not show it.
    pub fn phase(&self, stream: usize) -> Option<(usize, Time)> {
        let source = u32::try_from(stream).ok()?;
        self.simulation.phase(SourceId(source))
    }

    /// The observer.
    pub fn observer(&self) -> &O {
        self.simulation.observer()
    }

    /// The observer, for a reset.
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

// === impl ExternalPolicy ===

impl Policy for ExternalPolicy {
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
