//! The simulator as an environment: reset, step.

use ppo_router_net::{Decision, Instance, Kind, Observer as Eyes, PhaseSight, Sight};
use switchyard_core::event::Reply;
use switchyard_core::plan::Plan;
use switchyard_core::policy::Sights;
use switchyard_core::request::Outcome;
use switchyard_core::time::{Micros, Time};
use switchyard_core::window::{IDLE, PlacedState, Window};
use switchyard_sim::{Observer, Report, Scenario, SimError, Stepped};

use crate::yard::Yard;

const WANTS: Sights = Sights {
    evidence: false,
    completions: false,
    placed: true,
    residents: false,
};

/// What became of the requests that ended in a slot.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Slot {
    /// Requests that arrived.
    pub arrivals: u64,
    /// Requests that ended, in whatever way.
    pub ended: u64,
    /// Answered within the required latency.
    pub in_time: u64,
    /// Those of them, and of the late ones, that the first model answered.
    pub heavy: u64,
    /// Sum of the accuracies of what was answered in time.
    pub value: f64,
    /// Answered later, v.
    pub late: u64,
    /// Rejected or dropped, b.
    pub rejected: u64,
}

/// Counts what ends.
#[derive(Clone, Debug)]
pub struct Tally {
    required: Micros,
    accuracies: Vec<f64>,
    slot: Slot,
}

/// One run of the simulator under a network's control.
pub struct Env<'s> {
    yard: &'s Yard,
    models: Vec<u32>,
    run: Stepped<'s, Tally>,
    eyes: Eyes,
    plan: Plan,
    inside: usize,
    observation: Vec<f32>,
}

// === impl Slot ===

impl Slot {
    /// Eq. 2: minus what was delayed, minus alpha times what was rejected, plus beta times the
    /// accuracies of what was in time.
    #[must_use]
    pub fn reward(&self, alpha: f64, beta: f64) -> f64 {
        beta * self.value - self.late as f64 - alpha * self.rejected as f64
    }

    /// Adds another slot's requests.
    pub fn add(&mut self, other: &Self) {
        self.arrivals += other.arrivals;
        self.ended += other.ended;
        self.in_time += other.in_time;
        self.heavy += other.heavy;
        self.value += other.value;
        self.late += other.late;
        self.rejected += other.rejected;
    }

    /// Accuracies of what was in time over what ended ("goodput ratio").
    #[must_use]
    pub fn goodput_ratio(&self) -> f64 {
        self.value / self.ended.max(1) as f64
    }

    /// What was delayed or rejected over what ended ("violation ratio").
    #[must_use]
    pub fn violation_ratio(&self) -> f64 {
        (self.late + self.rejected) as f64 / self.ended.max(1) as f64
    }

    /// What the first model answered over what ended; the paper counts what was scheduled to
    /// it, rejected requests too.
    #[must_use]
    pub fn heavy_ratio(&self) -> f64 {
        self.heavy as f64 / self.ended.max(1) as f64
    }
}

// === impl Tally ===

impl Tally {
    fn new(yard: &Yard) -> Self {
        Self {
            required: Micros(yard.deadline_us),
            accuracies: yard.models.iter().map(|model| model.accuracy).collect(),
            slot: Slot::default(),
        }
    }
}

impl Observer for Tally {
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
    /// A run at its first slot: all instances empty.
    ///
    /// # Errors
    /// The scenario makes no sense.
    pub fn reset(
        yard: &'s Yard,
        scenario: &'s Scenario,
        kind: Kind,
        seed: u64,
    ) -> Result<Self, SimError> {
        let slot = Micros(yard.slot_us);
        let mut env = Self {
            yard,
            models: yard.models_of_instances(),
            run: Stepped::try_new(scenario, slot, WANTS, seed, Tally::new(yard))?,
            eyes: Eyes::new(yard.layout(kind)),
            plan: Plan::default(),
            inside: 0,
            observation: Vec::new(),
        };
        env.observe(0);
        Ok(env)
    }

    /// What is seen at the start of this slot.
    pub fn observation(&self) -> &[f32] {
        &self.observation
    }

    /// The window behind it.
    pub fn window(&self) -> &Window {
        self.run.window()
    }

    /// The phase of the workload at the start of this slot.
    pub fn phase(&self) -> usize {
        self.run.phase(0).map_or(0, |(phase, _)| phase)
    }

    /// Decides this slot and goes to the next.
    ///
    /// # Errors
    /// An invariant of the simulator broke.
    pub fn step(&mut self, decision: &Decision) -> Result<Slot, SimError> {
        self.yard.plan(&self.models, decision, &mut self.plan);
        self.run.step(&mut self.plan)?;
        let mut slot = std::mem::take(&mut self.run.observer_mut().slot);
        let inside = self.run.window().placed.id.len();
        slot.arrivals = (slot.ended + inside as u64) - self.inside as u64;
        self.inside = inside;
        self.observe(slot.ended);
        Ok(slot)
    }

    /// Runs to the end of the last request and says how all of it went.
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
        let mut instances = [Instance::default(); INSTANCES_MAX];
        let count = self.models.len().min(INSTANCES_MAX);
        for (w, instance) in instances.iter_mut().enumerate().take(count) {
            let rows = placed.worker[from..].iter();
            let to = from + rows.take_while(|&&worker| worker as usize == w).count();
            let running = placed.state[from..to].iter();
            *instance = Instance {
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
        let sight = Sight {
            now_us: window.now.0,
            instances: &instances[..count],
            ended,
            rate: window.arrival_rate.first().copied().unwrap_or(0.0),
            phase: PhaseSight {
                phase: phase.0,
                since_us: phase.1.0,
            },
        };
        self.observation.clear();
        self.observation.extend(self.eyes.observe(&sight));
    }
}

/// Instances of one yard, at most: they are looked at without allocating.
pub const INSTANCES_MAX: usize = 64;
