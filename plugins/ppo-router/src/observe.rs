//! The state of a slot, from windows.

use libm::log;
use ppo_router_net::{InstanceState, PhaseState, SlotState};
use switchyard_sdk::window::PlacedState;
use switchyard_sdk::{AppId, Window};

use crate::instances::RoutedInstances;
use crate::settings::PpoRouterSettings;

/// Collects the events between slots. Buffers are kept.
#[derive(Clone, Debug)]
pub(crate) struct SlotObserver {
    /// Per instance.
    requests: Vec<InstanceRequests>,
    /// Number of requests that ended since the last slot.
    ended: u64,
    /// Arrivals per second of each phase.
    rates: Vec<f64>,
    phase: PhaseState,
}

/// The requests on one instance.
#[derive(Clone, Debug, Default)]
struct InstanceRequests {
    arrivals_us: Vec<u64>,
    running: usize,
    running_since_us: Option<u64>,
}

// === impl SlotObserver ===

impl SlotObserver {
    pub(crate) fn new(settings: &PpoRouterSettings, instances: usize) -> Self {
        Self {
            requests: vec![InstanceRequests::default(); instances],
            ended: 0,
            rates: settings.rates.clone(),
            phase: PhaseState::default(),
        }
    }

    /// Counts the requests that ended since the last window.
    pub(crate) fn count(&mut self, window: &Window<'_>, app: AppId) {
        // Of all columns only this one: a slot ends hundreds of requests.
        let ended = window.raw().completions.iter();
        let apps = ended.flat_map(|ended| &ended.app);
        self.ended += apps.filter(|&&of| of == app.0).count() as u64;
    }

    /// The state at the start of a slot.
    pub(crate) fn observe<'a>(
        &'a mut self,
        window: &Window<'_>,
        routed: &RoutedInstances,
    ) -> ObservedSlot<'a> {
        self.fill(window, routed);
        let rate = window.arrival_rate(routed.app);
        self.update_phase(window.now_us(), rate);
        let instances = self.requests.iter().map(|requests| InstanceState {
            arrivals_us: &requests.arrivals_us,
            running_since_us: requests.running_since_us,
            running: requests.running,
        });
        ObservedSlot {
            instances: instances.collect(),
            now_us: window.now_us(),
            ended: std::mem::take(&mut self.ended),
            rate,
            phase: self.phase,
        }
    }

    fn fill(&mut self, window: &Window<'_>, routed: &RoutedInstances) {
        for (requests, instance) in self.requests.iter_mut().zip(&routed.instances) {
            requests.arrivals_us.clear();
            requests.running = 0;
            requests.running_since_us = window.worker(instance.worker).running_since_us();
        }
        // Per worker, running requests come first, then queued ones, then those in lanes.
        for placed in window.placed() {
            let worker = placed.worker;
            let at = routed.instances.iter().position(|i| i.worker == worker);
            if let Some(requests) = at.and_then(|at| self.requests.get_mut(at)) {
                requests.arrivals_us.push(placed.arrival_us);
                requests.running += usize::from(placed.state == PlacedState::Running);
            }
        }
    }

    /// Updates the phase to the most likely one given the arrivals per second: for Poisson arrivals
    /// the largest count * ln(rate) - rate.
    fn update_phase(&mut self, now_us: u64, rate: f64) {
        let likelihood = |of_phase: f64| rate * log(of_phase) - of_phase;
        let likeliest = (0..self.rates.len()).max_by(|&a, &b| {
            let (a, b) = (likelihood(self.rates[a]), likelihood(self.rates[b]));
            a.total_cmp(&b)
        });
        let phase = likeliest.unwrap_or(0);
        if phase != self.phase.phase {
            self.phase = PhaseState {
                phase,
                since_us: now_us,
            };
        }
    }
}

/// The state of a slot, which owns its instances.
pub(crate) struct ObservedSlot<'a> {
    instances: Vec<InstanceState<'a>>,
    now_us: u64,
    ended: u64,
    rate: f64,
    phase: PhaseState,
}

// === impl ObservedSlot ===

impl ObservedSlot<'_> {
    pub(crate) fn state(&self) -> SlotState<'_> {
        SlotState {
            now_us: self.now_us,
            instances: &self.instances,
            ended: self.ended,
            rate: self.rate,
            phase: self.phase,
        }
    }
}
