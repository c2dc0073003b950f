//! The yard at the start of a slot as the network's inputs.
//!
//! For each instance in turn (the paper's state `(l, omega, phi_1, ..., phi_l)`, section 3.1.3,
//! encoded as in section 5.1.4), with capacity c:
//!
//! | numbers | what |
//! | --- | --- |
//! | c + 1 | one-hot of the number of requests inside, 0 to c |
//! | 1 | elapsed service time of what runs, over [`Layout::elapsed_scale_us`], at most 1 |
//! | c + 1 | ages of the requests, oldest first, over [`Layout::age_scale_us`], at most 1, padded with 0 |
//! | 1, batching only | requests in service over the largest batch |
//! | 1, extended only | change of the number inside since the last slot, over c |
//!
//! and then, once:
//!
//! | kind | numbers | what |
//! | --- | --- | --- |
//! | full | [`Layout::phases`] + 1 | one-hot of the workload's phase; time since it began over [`Layout::phase_scale_us`], at most 1 |
//! | extended | [`SLOTS_SEEN`] | arrivals in the last slots, the latest first, as `ln(1 + x) / ln(1 + s)` |
//! | extended | 1 | arrivals per second over the last 500 ms in the same way |
//!
//! with s = [`Layout::rate_scale`].

use serde::{Deserialize, Serialize};

/// Slots whose arrivals the extended observation holds.
pub const SLOTS_SEEN: usize = 4;

/// What is observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The instances, as in the paper's practical case (RL-PO).
    Paper,
    /// The phase of the workload as well, which only a simulator knows (RL-FO).
    Full,
    /// The instances, how they changed, and how many requests arrived lately.
    Extended,
}

/// How a yard becomes numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Layout {
    /// What is observed.
    pub kind: Kind,
    /// Number of instances, n.
    pub instances: usize,
    /// Requests an instance holds at most, with those in service, c.
    pub capacity: usize,
    /// Elapsed service time that becomes 1, in microseconds.
    pub elapsed_scale_us: u64,
    /// Age that becomes 1, in microseconds.
    pub age_scale_us: u64,
    /// Arrivals per slot, or per second, that become 1 (extended).
    pub rate_scale: f32,
    /// Phases of the workload (full).
    pub phases: usize,
    /// Time in a phase that becomes 1, in microseconds (full).
    pub phase_scale_us: u64,
    /// The largest batch, where batches are observed; 0 where all are of one request.
    pub largest_batch: u32,
}

/// One instance at the start of a slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Instance<'a> {
    /// When the requests inside arrived, in microseconds, those in service first, oldest first.
    pub arrivals_us: &'a [u64],
    /// When the batch in service began, in microseconds; none when idle.
    pub running_since_us: Option<u64>,
    /// Requests in service.
    pub running: usize,
}

/// The workload's phase, for who may know it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PhaseSight {
    /// Which one.
    pub phase: usize,
    /// When it began, in microseconds.
    pub since_us: u64,
}

/// The yard at the start of a slot.
#[derive(Clone, Copy, Debug)]
pub struct Sight<'a> {
    /// Now, in microseconds.
    pub now_us: u64,
    /// The instances, in the order of the network's outputs.
    pub instances: &'a [Instance<'a>],
    /// Requests that ended since the last slot, rejected ones too.
    pub ended: u64,
    /// Arrivals per second over the last 500 ms, as the host's load monitor has them.
    pub rate: f64,
    /// Needed for [`Kind::Full`] alone.
    pub phase: PhaseSight,
}

/// Turns one sight after the other into numbers, and remembers what it must of those before.
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

    /// Numbers in all: the network's inputs.
    #[must_use]
    pub fn width(&self) -> usize {
        let once = match self.kind {
            Kind::Paper => 0,
            Kind::Full => self.phases + 1,
            Kind::Extended => SLOTS_SEEN + 1,
        };
        self.instances * self.per_instance() + once
    }

    /// The first field that makes no sense, and why.
    pub(crate) fn fault(&self) -> Option<(&'static str, &'static str)> {
        let zero = "must be positive";
        let checks = [
            ("instances", self.instances == 0, zero),
            ("instances", self.instances > 4_096, "is more than 4096"),
            ("capacity", self.capacity == 0, zero),
            ("capacity", self.capacity > 4_096, "is more than 4096"),
            ("elapsed_scale_us", self.elapsed_scale_us == 0, zero),
            ("age_scale_us", self.age_scale_us == 0, zero),
            (
                "rate_scale",
                !(self.rate_scale.is_finite() && self.rate_scale > 0.0),
                zero,
            ),
            ("phases", self.phases > 4_096, "is more than 4096"),
            ("phase_scale_us", self.phase_scale_us == 0, zero),
        ];
        let wrong = checks.into_iter().find(|(_, wrong, _)| *wrong);
        wrong.map(|(field, _, reason)| (field, reason))
    }
}

// === impl Observer ===

impl Observer {
    /// Nothing seen yet: empty instances, no arrivals.
    #[must_use]
    pub fn new(layout: Layout) -> Self {
        Self {
            inside: vec![0; layout.instances],
            arrivals: [0; SLOTS_SEEN],
            numbers: Vec::with_capacity(layout.width()),
            layout,
        }
    }

    /// How it does it.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The numbers of a slot's start, [`Layout::width`] of them. Call it once per slot.
    /// Instances that are missing are empty, those beyond the layout's are not looked at.
    pub fn observe(&mut self, sight: &Sight<'_>) -> &[f32] {
        let layout = &self.layout;
        let extended = layout.kind == Kind::Extended;
        let (before, mut now): (usize, usize) = (self.inside.iter().sum(), 0);
        self.numbers.clear();
        for (i, inside_before) in self.inside.iter_mut().enumerate() {
            let instance = sight.instances.get(i).copied().unwrap_or_default();
            let inside = instance.arrivals_us.len();
            see_instance(layout, &instance, sight.now_us, &mut self.numbers);
            if extended {
                let change = inside as f32 - *inside_before as f32;
                self.numbers.push(change / layout.capacity as f32);
            }
            *inside_before = inside;
            now += inside;
        }
        // What came is what left and what is more than before.
        let arrived = (sight.ended + now as u64).saturating_sub(before as u64);
        self.arrivals.rotate_right(1);
        self.arrivals[0] = arrived;
        match layout.kind {
            Kind::Paper => {}
            Kind::Full => {
                let phases = 0..layout.phases;
                let one_hot = phases.map(|phase| one_if(phase == sight.phase.phase));
                self.numbers.extend(one_hot);
                let since_us = sight.now_us.saturating_sub(sight.phase.since_us);
                self.numbers.push(share(since_us, layout.phase_scale_us));
            }
            Kind::Extended => {
                let scale = 1.0 / libm::logf(1.0 + layout.rate_scale);
                let shrunk = |count: f32| libm::logf(1.0 + count) * scale;
                let slots = self.arrivals.iter().map(|&count| shrunk(count as f32));
                self.numbers.extend(slots);
                self.numbers.push(shrunk(sight.rate as f32));
            }
        }
        &self.numbers
    }
}

fn see_instance(layout: &Layout, instance: &Instance<'_>, now_us: u64, numbers: &mut Vec<f32>) {
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
pub(crate) mod tests {
    use super::*;

    pub(crate) fn layout(kind: Kind) -> Layout {
        Layout {
            kind,
            instances: 2,
            capacity: 3,
            elapsed_scale_us: 100,
            age_scale_us: 1_000,
            rate_scale: 180.0,
            phases: 2,
            phase_scale_us: 10_000,
            largest_batch: 0,
        }
    }

    fn sight<'a>(instances: &'a [Instance<'a>]) -> Sight<'a> {
        Sight {
            now_us: 5_000,
            instances,
            ended: 7,
            rate: 180.0,
            phase: PhaseSight {
                phase: 1,
                since_us: 2_500,
            },
        }
    }

    #[test]
    fn the_papers_numbers_are_where_the_table_says() {
        let mut observer = Observer::new(layout(Kind::Paper));
        let busy = Instance {
            arrivals_us: &[4_500, 4_750],
            running_since_us: Some(4_950),
            running: 1,
        };
        let numbers = observer.observe(&sight(&[busy, Instance::default()]));
        let busy = [0.0, 0.0, 1.0, 0.0, 0.5, 0.5, 0.25, 0.0, 0.0];
        let idle = [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0];
        assert_eq!(numbers, [busy, idle].concat());
        // The paper's own: 16 lengths, 16 ages, one elapsed time, of four instances.
        let paper = Layout {
            instances: 4,
            capacity: 15,
            ..layout(Kind::Paper)
        };
        assert_eq!(paper.width(), 4 * 33);
    }

    #[test]
    fn everything_is_between_0_and_1_however_late_and_full() {
        let mut observer = Observer::new(layout(Kind::Full));
        let stuck = Instance {
            arrivals_us: &[0; 9],
            running_since_us: Some(0),
            running: 5,
        };
        let numbers = observer.observe(&sight(&[stuck, stuck, stuck])).to_vec();
        assert_eq!(numbers.len(), observer.layout().width());
        assert!(numbers.iter().all(|x| (0.0..=1.0).contains(x)));
        assert_eq!(numbers[..9], [0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]);
        assert_eq!(numbers[18..], [0.0, 1.0, 0.25], "the phase");
    }

    #[test]
    fn batching_shows_what_is_in_service() {
        let batching = Layout {
            largest_batch: 5,
            ..layout(Kind::Paper)
        };
        let mut observer = Observer::new(batching);
        let running = Instance {
            arrivals_us: &[1, 2, 3],
            running_since_us: Some(4_990),
            running: 3,
        };
        let numbers = observer.observe(&sight(&[running]));
        assert_eq!((numbers.len(), numbers[9], numbers[19]), (20, 0.6, 0.0));
    }

    #[test]
    fn arrivals_are_what_left_and_what_is_more_than_before() {
        let mut observer = Observer::new(layout(Kind::Extended));
        let two = Instance {
            arrivals_us: &[1, 2],
            ..Instance::default()
        };
        let first = observer.observe(&sight(&[two])).to_vec();
        assert_eq!(first.len(), observer.layout().width());
        assert_eq!(first[9], 2.0 / 3.0, "two more than before");
        let log = |count: f32| libm::logf(1.0 + count) * (1.0 / libm::logf(181.0));
        assert_eq!(first[20..], [log(9.0), 0.0, 0.0, 0.0, log(180.0)]);
        let second = observer.observe(&sight(&[])).to_vec();
        assert_eq!(second[9], -2.0 / 3.0);
        assert_eq!(second[20..24], [log(5.0), log(9.0), 0.0, 0.0]);
    }
}
