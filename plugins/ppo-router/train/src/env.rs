//! The simulator as an environment: reset, step.

use ppo_router_net::{
    Decision, InstanceState, Kind, Observer as SlotObserver, PhaseState, SlotState,
};
use switchyard_core::event::Reply;
use switchyard_core::plan::Plan;
use switchyard_core::policy::WindowFields;
use switchyard_core::request::Outcome;
use switchyard_core::time::{Micros, Time};
use switchyard_core::window::{IDLE, PlacedState, Window};
use switchyard_sim::{Observer, Report, Scenario, SimError, Stepped};

use crate::test_bed::TestBed;

const WANTS: WindowFields = WindowFields {
    evidence: false,
    completions: false,
    placed: true,
    residents: false,
};

/// The outcomes of the requests of a slot.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SlotOutcome {
    /// Requests that arrived.
    pub arrivals: u64,
    /// Requests that ended.
    pub ended: u64,
    /// Answered within the required latency.
    pub in_time: u64,
    /// Requests that the first model answered, in time or late.
    pub heavy: u64,
    /// Sum of the accuracies of the requests answered in time.
    pub value: f64,
    /// Answered late, v.
    pub late: u64,
    /// Rejected or dropped, b.
    pub rejected: u64,
}

/// Counts the outcomes of requests.
#[derive(Clone, Debug)]
pub struct OutcomeCounter {
    required: Micros,
    accuracies: Vec<f64>,
    slot: SlotOutcome,
}

/// The simulator under the control of a network.
pub struct Env<'s> {
    test_bed: &'s TestBed,
    models: Vec<u32>,
    run: Stepped<OutcomeCounter>,
    slot_observer: SlotObserver,
    plan: Plan,
    held: usize,
    observation: Vec<f32>,
}

// === impl SlotOutcome ===

impl SlotOutcome {
    /// Eq. 2: beta times the accuracies of requests in time, minus late requests, minus alpha times
    /// rejected requests.
    #[must_use]
    pub fn reward(&self, alpha: f64, beta: f64) -> f64 {
        beta * self.value - self.late as f64 - alpha * self.rejected as f64
    }

    /// Adds another slot's outcomes.
    pub fn add(&mut self, other: &Self) {
        self.arrivals += other.arrivals;
        self.ended += other.ended;
        self.in_time += other.in_time;
        self.heavy += other.heavy;
        self.value += other.value;
        self.late += other.late;
        self.rejected += other.rejected;
    }

    /// Goodput ratio: accuracies of the requests in time over ended requests.
    #[must_use]
    pub fn goodput_ratio(&self) -> f64 {
        self.value / self.ended.max(1) as f64
    }

    /// Violation ratio: late or rejected requests over ended requests.
    #[must_use]
    pub fn violation_ratio(&self) -> f64 {
        (self.late + self.rejected) as f64 / self.ended.max(1) as f64
    }

    /// Requests that the first model answered over ended requests; the paper also counts rejected
    /// requests that were scheduled to it.
    #[must_use]
    pub fn heavy_ratio(&self) -> f64 {
        self.heavy as f64 / self.ended.max(1) as f64
    }
}

// === impl OutcomeCounter ===

impl OutcomeCounter {
    fn new(test_bed: &TestBed) -> Self {
        Self {
            required: Micros(test_bed.deadline_us),
            accuracies: test_bed.models.iter().map(|model| model.accuracy).collect(),
            slot: SlotOutcome::default(),
        }
    }
}

impl Observer for OutcomeCounter {
    fn ended(&mut self, _: Time, reply: &Reply) {
        let slot = &mut self.slot;
        slot.ended += 1;
        let Outcome::Answered { variant, .. } = reply.outcome else {
            slot.rejected += 1;
            return;
        };
        slot.heavy += u64::from(variant.0 == 0);
        if reply.latency <= self.required {
            slot.in_time += 1;
            slot.value += self.accuracies[variant.index()];
        } else {
            slot.late += 1;
        }
    }
}

// === impl Env ===

impl<'s> Env<'s> {
    /// An environment at its first slot, with empty instances.
    ///
    /// # Errors
    /// The scenario is invalid.
    pub fn reset(
        test_bed: &'s TestBed,
        scenario: &'s Scenario,
        kind: Kind,
        seed: u64,
    ) -> Result<Self, SimError> {
        let slot = Micros(test_bed.slot_us);
        let mut env = Self {
            test_bed,
            models: test_bed.models_of_instances(),
            run: Stepped::try_new(scenario, slot, WANTS, seed, OutcomeCounter::new(test_bed))?,
            slot_observer: SlotObserver::new(test_bed.layout(kind)),
            plan: Plan::default(),
            held: 0,
            observation: Vec::new(),
        };
        env.observe(0);
        Ok(env)
    }

    /// The observation at the start of this slot.
    pub fn observation(&self) -> &[f32] {
        &self.observation
    }

    /// The window at the start of this slot.
    pub fn window(&self) -> &Window {
        self.run.window()
    }

    /// The phase of the workload at the start of this slot.
    pub fn phase(&self) -> usize {
        self.run.phase(0).map_or(0, |(phase, _)| phase)
    }

    /// Applies a decision to this slot and advances to the next.
    ///
    /// # Errors
    /// An invariant of the simulator is violated.
    pub fn step(&mut self, decision: &Decision) -> Result<SlotOutcome, SimError> {
        self.test_bed.plan(&self.models, decision, &mut self.plan);
        self.run.step(&mut self.plan)?;
        let mut slot = std::mem::take(&mut self.run.observer_mut().slot);
        let held = self.run.window().placed.id.len();
        slot.arrivals = (slot.ended + held as u64) - self.held as u64;
        self.held = held;
        self.observe(slot.ended);
        Ok(slot)
    }

    /// Runs to the end of the last request and returns the report.
    ///
    /// # Errors
    /// As [`step`](Self::step).
    pub fn finish(self) -> Result<Report, SimError> {
        self.run.finish()
    }

    fn observe(&mut self, ended: u64) {
        let window = self.run.window();
        let (placed, workers) = (&window.placed, &window.workers);
        let mut from = 0;
        let mut instances = [InstanceState::default(); INSTANCES_MAX];
        let count = self.models.len().min(INSTANCES_MAX);
        for (w, instance) in instances.iter_mut().enumerate().take(count) {
            let rows = placed.worker[from..].iter();
            let to = from + rows.take_while(|&&worker| worker as usize == w).count();
            let running = placed.state[from..to].iter();
            *instance = InstanceState {
                arrivals_us: &placed.arrival[from..to],
                running_since_us: (workers.running_variant[w] != IDLE)
                    .then(|| workers.running_since[w]),
                running: running
                    .filter(|&&state| state == PlacedState::Running as u8)
                    .count(),
            };
            from = to;
        }
        let phase = self.run.phase(0).unwrap_or_default();
        let sight = SlotState {
            now_us: window.now.0,
            instances: &instances[..count],
            ended,
            rate: window.arrival_rate.first().copied().unwrap_or(0.0),
            phase: PhaseState {
                phase: phase.0,
                since_us: phase.1.0,
            },
        };
        self.observation.clear();
        self.observation.extend(self.slot_observer.observe(&sight));
    }
}

/// Largest number of observed instances: they are read without allocating.
pub const INSTANCES_MAX: usize = 64;
