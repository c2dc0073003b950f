//! Adam (Kingma and Ba, 2014).

use serde::{Deserialize, Serialize};

const BETA1: f32 = 0.9;
const BETA2: f32 = 0.999;
const EPSILON: f32 = 1e-5;

/// The moments of one parameter vector.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Adam {
    first: Vec<f32>,
    second: Vec<f32>,
    steps: u32,
}

// === impl Adam ===

impl Adam {
    /// Moments of 0 for a number of parameters.
    #[must_use]
    pub fn new(parameters: usize) -> Self {
        Self {
            first: vec![0.0; parameters],
            second: vec![0.0; parameters],
            steps: 0,
        }
    }

    /// One descent step.
    pub fn step(&mut self, rate: f32, gradient: &[f32], parameters: &mut [f32]) {
        self.steps += 1;
        let steps = f64::from(self.steps);
        let unbiased = |beta: f32| (1.0 - libm::pow(f64::from(beta), steps)) as f32;
        let (one, two) = (unbiased(BETA1), unbiased(BETA2));
        let moments = self.first.iter_mut().zip(&mut self.second);
        for ((parameter, &slope), (first, second)) in
            parameters.iter_mut().zip(gradient).zip(moments)
        {
            *first = BETA1 * *first + (1.0 - BETA1) * slope;
            *second = BETA2 * *second + (1.0 - BETA2) * slope * slope;
            *parameter -= rate * (*first / one) / ((*second / two).sqrt() + EPSILON);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_finds_the_minimum_of_a_parabola() {
        let mut at = [3.0_f32, -2.0];
        let mut adam = Adam::new(2);
        for _ in 0..4_000 {
            let gradient = [2.0 * (at[0] - 1.0), 20.0 * (at[1] - 0.5)];
            adam.step(0.01, &gradient, &mut at);
        }
        assert!(
            (at[0] - 1.0).abs() < 1e-2 && (at[1] - 0.5).abs() < 1e-2,
            "{at:?}"
        );
    }

    #[test]
    fn the_first_step_has_the_length_of_the_rate() {
        let mut at = [0.0_f32];
        Adam::new(1).step(0.1, &[1e3], &mut at);
        assert!((at[0] + 0.1).abs() < 1e-5, "{at:?}");
    }
}
