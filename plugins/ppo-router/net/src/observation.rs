//! The instances at the start of a slot as the network's inputs.
//!
//! Per instance (the paper's state `(l, omega, phi_1, ..., phi_l)`, section 3.1.3,
//! encoded as in section 5.1.4), with capacity c:
//!
//! | numbers | content |
//! | --- | --- |
//! | c + 1 | one-hot of the number of requests, 0 to c |
//! | 1 | elapsed service time of the running batch, over [`Layout::elapsed_scale_us`], at most 1 |
//! | c + 1 | ages of the requests, oldest first, over [`Layout::age_scale_us`], at most 1, padded with 0 |
//! | 1, with batch bounds | requests in service over the largest batch |
//! | 1, extended | change of the number of requests since the last slot, over c |
//!
//! then once:
//!
//! | kind | numbers | content |
//! | --- | --- | --- |
//! | full | [`Layout::phases`] + 1 | one-hot of the workload's phase; time in the phase over [`Layout::phase_scale_us`], at most 1 |
//! | extended | [`SLOTS_SEEN`] | arrivals in the last slots, newest first, as `ln(1 + x) / ln(1 + s)` |
//! | extended | 1 | arrivals per second over the last 500 ms, likewise |
//!
//! with s = [`Layout::rate_scale`].

use serde::{Deserialize, Serialize};

/// Slots whose arrivals are in the extended observation.
pub const SLOTS_SEEN: usize = 4;

/// The content of an observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The instances, as in the paper's partial observability (RL-PO).
    Paper,
    /// Also the phase of the workload, which only a simulator knows (RL-FO).
    Full,
    /// The instances, their changes, and recent arrivals.
    Extended,
}

/// The layout of an observation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Layout {
    /// The content.
    pub kind: Kind,
    /// Number of instances, n.
    pub instances: usize,
    /// Largest number of requests of an instance, with those in service, c.
    pub capacity: usize,
    /// Elapsed service time that maps to 1, in microseconds.
    pub elapsed_scale_us: u64,
    /// Age that maps to 1, in microseconds.
    pub age_scale_us: u64,
    /// Arrivals per slot, or per second, that map to 1 (extended).
    pub rate_scale: f32,
    /// Number of phases of the workload (full).
    pub phases: usize,
    /// Time in a phase that maps to 1, in microseconds (full).
    pub phase_scale_us: u64,
    /// The largest batch; 0 if all batches have one request.
    pub largest_batch: u32,
}

/// One instance at the start of a slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InstanceState<'a> {
    /// Arrival times of its requests in microseconds, those in service first, oldest first.
    pub arrivals_us: &'a [u64],
    /// Start of the batch in service, in microseconds; none if idle.
    pub running_since_us: Option<u64>,
    /// Number of requests in service.
    pub running: usize,
}

/// The phase of the workload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PhaseState {
    /// Index of the phase.
    pub phase: usize,
    /// Start of the phase, in microseconds.
    pub since_us: u64,
}

/// The instances at the start of a slot.
#[derive(Clone, Copy, Debug)]
pub struct SlotState<'a> {
    /// Now, in microseconds.
    pub now_us: u64,
    /// The instances, in the order of the network's outputs.
    pub instances: &'a [InstanceState<'a>],
    /// Requests that ended since the last slot, with rejected ones.
    pub ended: u64,
    /// Arrivals per second over the last 500 ms, from the host's load monitor.
    pub rate: f64,
    /// Only used for [`Kind::Full`].
    pub phase: PhaseState,
}

/// Converts the states of consecutive slots into observations.
#[derive(Clone, Debug)]
pub struct Observer {
    layout: Layout,
    inside: Vec<usize>,
    arrivals: [u64; SLOTS_SEEN],
    numbers: Vec<f32>,
}

// === impl Layout ===

impl Layout {
    /// Numbers per instance.
    #[must_use]
    pub fn per_instance(&self) -> usize {
        2 * (self.capacity + 1)
            + 1
            + usize::from(self.largest_batch > 0)
            + usize::from(self.kind == Kind::Extended)
    }

    /// Total of numbers: the network's inputs.
    #[must_use]
    pub fn width(&self) -> usize {
        let once = match self.kind {
            Kind::Paper => 0,
            Kind::Full => self.phases + 1,
            Kind::Extended => SLOTS_SEEN + 1,
        };
        self.instances * self.per_instance() + once
    }

    /// The first invalid field, with the reason.
    pub(crate) fn fault(&self) -> Option<(&'static str, &'static str)> {
        let zero = "must be above 0";
        let checks = [
            ("instances", self.instances == 0, zero),
            ("instances", self.instances > 4_096, "must be at most 4096"),
            ("capacity", self.capacity == 0, zero),
            ("capacity", self.capacity > 4_096, "must be at most 4096"),
            ("elapsed_scale_us", self.elapsed_scale_us == 0, zero),
            ("age_scale_us", self.age_scale_us == 0, zero),
            (
                "rate_scale",
                !(self.rate_scale.is_finite() && self.rate_scale > 0.0),
                zero,
            ),
            ("phases", self.phases > 4_096, "must be at most 4096"),
            ("phase_scale_us", self.phase_scale_us == 0, zero),
        ];
        let wrong = checks.into_iter().find(|(_, wrong, _)| *wrong);
        wrong.map(|(field, _, reason)| (field, reason))
    }
}

// === impl Observer ===

impl Observer {
    /// An observer before its first slot: empty instances, no arrivals.
    #[must_use]
    pub fn new(layout: Layout) -> Self {
        Self {
            inside: vec![0; layout.instances],
            arrivals: [0; SLOTS_SEEN],
            numbers: Vec::with_capacity(layout.width()),
            layout,
        }
    }

    /// Its layout.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The observation of a slot, [`Layout::width`] numbers. Call it once per slot. Missing
    /// instances are empty; those beyond the layout are ignored.
    pub fn observe(&mut self, state: &SlotState<'_>) -> &[f32] {
        let layout = &self.layout;
        let extended = layout.kind == Kind::Extended;
        let (before, mut now): (usize, usize) = (self.inside.iter().sum(), 0);
        self.numbers.clear();
        for (i, inside_before) in self.inside.iter_mut().enumerate() {
            let instance = state.instances.get(i).copied().unwrap_or_default();
            let inside = instance.arrivals_us.len();
            push_instance(layout, &instance, state.now_us, &mut self.numbers);
            if extended {
                let change = inside as f32 - *inside_before as f32;
                self.numbers.push(change / layout.capacity as f32);
            }
            *inside_before = inside;
            now += inside;
        }
        // Arrivals are the ended requests plus the increase.
        let arrived = (state.ended + now as u64).saturating_sub(before as u64);
        self.arrivals.rotate_right(1);
        self.arrivals[0] = arrived;
        match layout.kind {
            Kind::Paper => {}
            Kind::Full => {
                let phases = 0..layout.phases;
                let one_hot = phases.map(|phase| one_if(phase == state.phase.phase));
                self.numbers.extend(one_hot);
                let since_us = state.now_us.saturating_sub(state.phase.since_us);
                self.numbers.push(share(since_us, layout.phase_scale_us));
            }
            Kind::Extended => {
                let scale = 1.0 / libm::logf(1.0 + layout.rate_scale);
                let shrunk = |count: f32| libm::logf(1.0 + count) * scale;
                let slots = self.arrivals.iter().map(|&count| shrunk(count as f32));
                self.numbers.extend(slots);
                self.numbers.push(shrunk(state.rate as f32));
            }
        }
        &self.numbers
    }
}

fn push_instance(
    layout: &Layout,
    instance: &InstanceState<'_>,
    now_us: u64,
    numbers: &mut Vec<f32>,
) {
    let slots = layout.capacity + 1;
    let inside = instance.arrivals_us.len().min(layout.capacity);
    numbers.extend((0..slots).map(|count| one_if(count == inside)));
    let elapsed_us = instance
        .running_since_us
        .map_or(0, |since_us| now_us.saturating_sub(since_us));
    numbers.push(share(elapsed_us, layout.elapsed_scale_us));
    let ages = instance.arrivals_us.iter().take(slots);
    let ages = ages.map(|&at_us| share(now_us.saturating_sub(at_us), layout.age_scale_us));
    let padding = slots - instance.arrivals_us.len().min(slots);
    numbers.extend(ages);
    numbers.extend(std::iter::repeat_n(0.0, padding));
    if layout.largest_batch > 0 {
        numbers.push(instance.running as f32 / layout.largest_batch as f32);
    }
}

fn one_if(holds: bool) -> f32 {
    f32::from(u8::from(holds))
}

fn share(part: u64, whole: u64) -> f32 {
    (part as f32 / whole as f32).min(1.0)
}

#[cfg(test)]
mod tests;
