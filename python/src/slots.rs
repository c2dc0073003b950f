//! Runs of one scenario that are decided slot by slot, as many as there are environments of Gymnasium.

use std::sync::{Mutex, PoisonError};

use bytemuck::Pod;
use pyo3::prelude::*;
use pyo3::types::PyByteArray;

use crate::error::wrong;

/// Numbers about a slot: requests in time, late, without an answer; the time in microseconds; the bits of the reward.
const SLOT_NUMBERS: usize = 5;

/// The runs of an environment: their actions, observations and rewards.
pub(crate) trait SlotRuns: Sync {
    /// One run, at the start of a slot.
    type Run: Send;
    /// A number of an action.
    type Number: Pod + Send + Sync;

    /// Numbers of an action.
    fn action_size(&self) -> usize;

    /// Numbers of an observation.
    fn observation_size(&self) -> usize;

    /// Begins a run.
    ///
    /// # Errors
    /// The scenario is wrong.
    fn begin(&self, seed: u64) -> PyResult<Self::Run>;

    /// Decides the slot of a run and goes to the next one.
    ///
    /// # Errors
    /// The action is out of its range.
    fn step(&self, run: &mut Self::Run, action: &[Self::Number]) -> PyResult<()>;

    /// Adds the observation of the slot that begins. Returns the slot before it.
    fn observe(&self, run: &mut Self::Run, observations: &mut Vec<f32>) -> Slot;
}

/// A slot that has ended.
pub(crate) struct Slot {
    pub(crate) in_time: u64,
    pub(crate) late: u64,
    pub(crate) unanswered: u64,
    /// Its end.
    pub(crate) now_us: u64,
    pub(crate) reward: f64,
}

/// Observations as 32-bit floats, and the numbers of each slot, 64 bits each.
pub(crate) type Stepped<'py> = (Bound<'py, PyByteArray>, Bound<'py, PyByteArray>);

/// The runs, None before the first reset.
pub(crate) struct Slots<S: SlotRuns> {
    pub(crate) of: S,
    runs: Mutex<Vec<Option<S::Run>>>,
}

// === impl Slots ===

impl<S: SlotRuns> Slots<S> {
    /// `count` runs, which a reset begins.
    pub(crate) fn new(of: S, count: usize) -> Self {
        let runs = Mutex::new((0..count).map(|_| None).collect());
        Self { of, runs }
    }

    /// Decides the slot of each run and goes to the next one, without the interpreter's lock; `resets` are runs,
    /// each with a seed, that begin again instead. `actions` are those of all runs.
    ///
    /// # Errors
    /// An action is out of its range, or a run was never reset.
    pub(crate) fn step<'py>(
        &self,
        py: Python<'py>,
        actions: &[u8],
        resets: &[(usize, u64)],
    ) -> PyResult<Stepped<'py>> {
        let actions: Vec<S::Number> = bytemuck::pod_collect_to_vec(actions);
        let (observations, slots) = py.detach(|| self.advance(&actions, resets))?;
        let bytes = |values: &[u8]| PyByteArray::new(py, values);
        Ok((
            bytes(bytemuck::cast_slice(&observations)),
            bytes(bytemuck::cast_slice(&slots)),
        ))
    }

    fn advance(
        &self,
        actions: &[S::Number],
        resets: &[(usize, u64)],
    ) -> PyResult<(Vec<f32>, Vec<u64>)> {
        let size = self.of.action_size();
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        let count = runs.len();
        if actions.len() != count * size {
            let given = actions.len();
            let reason = format!("{given} numbers, must be {size} for each of {count} runs");
            return Err(wrong("action", reason));
        }
        let mut observations = Vec::with_capacity(count * self.of.observation_size());
        let mut slots = Vec::with_capacity(count * SLOT_NUMBERS);
        for (at, run) in runs.iter_mut().enumerate() {
            let reset = resets.iter().find(|(which, _)| *which == at);
            if let Some(&(_, seed)) = reset {
                *run = Some(self.of.begin(seed)?);
            }
            let Some(run) = run else {
                return Err(wrong("step", "has no run; call reset first"));
            };
            if reset.is_none() {
                self.of.step(run, &actions[at * size..][..size])?;
            }
            let slot = self.of.observe(run, &mut observations);
            slots.extend([slot.in_time, slot.late, slot.unanswered, slot.now_us]);
            slots.push(slot.reward.to_bits());
        }
        Ok((observations, slots))
    }
}
