//! A transition law: for each phase of the round robin, the distribution of the next state.

use crate::error::PrepareError;

/// Probabilities below this are dropped at the ends of a span. A row has far fewer than 1e5
/// entries, so the dropped probability is below 1e-13.
const NEGLIGIBLE: f64 = 1e-18;

/// Tolerance of a row's sum.
pub(crate) const ROW_SUM: f64 = 1e-12;

/// Rows as spans of neighbouring states.
#[derive(Clone, Debug, Default)]
pub(crate) struct Kernel {
    phases: Vec<PhaseRange>,
    spans: Vec<StateSpan>,
    chances: Vec<f64>,
}

#[derive(Clone, Copy, Debug)]
struct PhaseRange {
    from: u32,
    to: u32,
}

#[derive(Clone, Copy, Debug)]
struct StateSpan {
    state: u32,
    from: u32,
    len: u32,
}

/// Builds a kernel row by row.
#[derive(Debug, Default)]
pub(crate) struct KernelBuilder {
    kernel: Kernel,
    sum: f64,
}

// === impl KernelBuilder ===

impl KernelBuilder {
    /// Adds the chances of `state` and the following states to the row.
    pub(crate) fn add(&mut self, state: usize, chances: &[f64]) {
        let kept = |chance: &f64| *chance > NEGLIGIBLE;
        let Some(from) = chances.iter().position(kept) else {
            return;
        };
        let to = chances.iter().rposition(kept).unwrap_or(from) + 1;
        let kernel = &mut self.kernel;
        kernel.spans.push(StateSpan {
            state: (state + from) as u32,
            from: kernel.chances.len() as u32,
            len: (to - from) as u32,
        });
        for &chance in &chances[from..to] {
            // Differences of sums: zeros can be slightly negative.
            let chance = chance.max(0.0);
            kernel.chances.push(chance);
            self.sum += chance;
        }
    }

    /// Ends the row of a phase.
    ///
    /// # Errors
    /// The row does not sum to 1.
    pub(crate) fn end_phase(&mut self) -> Result<(), PrepareError> {
        let kernel = &mut self.kernel;
        let phase = kernel.phases.len();
        let sum = std::mem::take(&mut self.sum);
        if sum.is_nan() || (sum - 1.0).abs() > ROW_SUM {
            return Err(PrepareError::RowSum { phase, sum });
        }
        kernel.phases.push(PhaseRange {
            from: kernel.phases.last().map_or(0, |range| range.to),
            to: kernel.spans.len() as u32,
        });
        Ok(())
    }

    pub(crate) fn finish(self) -> Kernel {
        self.kernel
    }
}

// === impl Kernel ===

impl Kernel {
    pub(crate) fn phases(&self) -> usize {
        self.phases.len()
    }

    /// The states and chances of a phase's row.
    pub(crate) fn row(&self, phase: usize) -> impl Iterator<Item = (usize, &[f64])> {
        let PhaseRange { from, to } = self.phases[phase];
        self.spans[from as usize..to as usize].iter().map(|span| {
            let from = span.from as usize;
            let chances = &self.chances[from..from + span.len as usize];
            (span.state as usize, chances)
        })
    }

    /// Expectation of `values` over the next state, phase by phase.
    pub(crate) fn expect(&self, values: &[f64], expected: &mut [f64]) {
        for (phase, expected) in expected.iter_mut().enumerate() {
            *expected = self
                .row(phase)
                .map(|(state, chances)| dot(chances, &values[state..state + chances.len()]))
                .sum();
        }
    }

    /// Adds to `next` the distribution of the next state, given the probability per phase.
    pub(crate) fn push(&self, mass: &[f64], next: &mut [f64]) {
        for (phase, &mass) in mass.iter().enumerate() {
            if mass == 0.0 {
                continue;
            }
            for (state, chances) in self.row(phase) {
                let next = &mut next[state..state + chances.len()];
                for (next, chance) in next.iter_mut().zip(chances) {
                    *next += mass * chance;
                }
            }
        }
    }
}

/// Dot product. Eight partial sums allow vector registers; the compiler must not reorder a
/// floating-point sum.
pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut sums = [0.0; 8];
    let (a_blocks, b_blocks) = (a.chunks_exact(8), b.chunks_exact(8));
    let rest: f64 = a_blocks
        .remainder()
        .iter()
        .zip(b_blocks.remainder())
        .map(|(a, b)| a * b)
        .sum();
    for (a, b) in a_blocks.zip(b_blocks) {
        for lane in 0..8 {
            sums[lane] += a[lane] * b[lane];
        }
    }
    rest + sums.iter().sum::<f64>()
}
