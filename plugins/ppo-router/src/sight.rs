//! What the network sees of a window.

use libm::log;
use ppo_router_net::{Instance, PhaseSight, Sight};
use switchyard_sdk::window::PlacedState;
use switchyard_sdk::{AppId, Window};

use crate::settings::Settings;
use crate::yard::Yard;

/// Gathers what happens between slots. Buffers are kept.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// By instance.
    inside: Vec<Inside>,
    /// Requests that ended since the last slot.
    ended: u64,
    /// Arrivals per second of each phase.
    rates: Vec<f64>,
    phase: PhaseSight,
}

/// The requests on one instance.
#[derive(Clone, Debug, Default)]
struct Inside {
    arrivals_us: Vec<u64>,
    running: usize,
    running_since_us: Option<u64>,
}

// === impl Seen ===

impl Seen {
    pub(crate) fn new(settings: &Settings, instances: usize) -> Self {
        Self {
            inside: vec![Inside::default(); instances],
            ended: 0,
            rates: settings.rates.clone(),
            phase: PhaseSight::default(),
        }
    }

    /// Takes in what ended since the last window.
    pub(crate) fn count(&mut self, window: &Window<'_>, app: AppId) {
        let ended = window.completions().filter(|end| end.app == app);
        self.ended += ended.count() as u64;
    }

    /// The yard at the start of a slot.
    pub(crate) fn look<'a>(&'a mut self, window: &Window<'_>, yard: &Yard) -> Sighted<'a> {
        self.fill(window, yard);
        let rate = window.arrival_rate(yard.app);
        self.note_phase(window.now_us(), rate);
        let instances = self.inside.iter().map(|inside| Instance {
            arrivals_us: &inside.arrivals_us,
            running_since_us: inside.running_since_us,
            running: inside.running,
        });
        Sighted {
            instances: instances.collect(),
            now_us: window.now_us(),
            ended: std::mem::take(&mut self.ended),
            rate,
            phase: self.phase,
        }
    }

    fn fill(&mut self, window: &Window<'_>, yard: &Yard) {
        for (inside, instance) in self.inside.iter_mut().zip(&yard.instances) {
            inside.arrivals_us.clear();
            inside.running = 0;
            inside.running_since_us = window.worker(instance.worker).running_since_us();
        }
        // On each worker what runs comes first, then what is queued, then what waits in lanes.
        for placed in window.placed() {
            let worker = placed.worker;
            let at = yard.instances.iter().position(|i| i.worker == worker);
            if let Some(inside) = at.and_then(|at| self.inside.get_mut(at)) {
                inside.arrivals_us.push(placed.arrival_us);
                inside.running += usize::from(placed.state == PlacedState::Running);
            }
        }
    }

    /// The phase that makes the rate most likely: for Poisson arrivals the one with the largest
    /// count * ln(rate) - rate.
    fn note_phase(&mut self, now_us: u64, rate: f64) {
        let likelihood = |of_phase: f64| rate * log(of_phase) - of_phase;
        let likeliest = (0..self.rates.len()).max_by(|&a, &b| {
            let (a, b) = (likelihood(self.rates[a]), likelihood(self.rates[b]));
            a.total_cmp(&b)
        });
        let phase = likeliest.unwrap_or(0);
        if phase != self.phase.phase {
            self.phase = PhaseSight {
                phase,
                since_us: now_us,
            };
        }
    }
}

/// A sight that lends its instances.
pub(crate) struct Sighted<'a> {
    instances: Vec<Instance<'a>>,
    now_us: u64,
    ended: u64,
    rate: f64,
    phase: PhaseSight,
}

// === impl Sighted ===

impl Sighted<'_> {
    pub(crate) fn sight(&self) -> Sight<'_> {
        Sight {
            now_us: self.now_us,
            instances: &self.instances,
            ended: self.ended,
            rate: self.rate,
            phase: self.phase,
        }
    }
}
