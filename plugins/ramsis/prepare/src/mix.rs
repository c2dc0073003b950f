//! Anderson's acceleration of a fixed-point iteration: for linear maps equal to GMRES, a dozen
//! steps instead of hundreds for slowly mixing chains.

use crate::kernel::dot;

/// Number of combined steps.
const DEPTH: usize = 8;

/// A direction this much smaller after orthogonalisation is rounding.
const DEPENDENT: f64 = 1e-7;

/// Combines the last steps of an iteration `x -> F(x)` into a better next one.
#[derive(Debug, Default)]
pub(crate) struct Mixer {
    /// The last point's image and residual `F(x) - x`.
    last: Option<(Vec<f64>, Vec<f64>)>,
    /// Differences of images and of residuals from step to step, newest last.
    steps: Vec<(Vec<f64>, Vec<f64>)>,
}

// === impl Mixer ===

impl Mixer {
    /// Replaces `point`, whose image is `image`, by the next point to try.
    pub(crate) fn advance(&mut self, point: &mut [f64], image: &[f64]) {
        let residual = difference(image, point);
        if let Some((last_image, last_residual)) = &self.last {
            if self.steps.len() == DEPTH {
                self.steps.remove(0);
            }
            self.steps.push((
                difference(image, last_image),
                difference(&residual, last_residual),
            ));
        }
        point.copy_from_slice(image);
        // The combination of residual differences closest to the residual, orthogonalised newest
        // first: the newest are the most accurate.
        let mut basis: Vec<(Vec<f64>, Vec<f64>)> = Vec::with_capacity(self.steps.len());
        let mut left = residual.clone();
        for (image_step, residual_step) in self.steps.iter().rev() {
            let (mut image_step, mut residual_step) = (image_step.clone(), residual_step.clone());
            let size = dot(&residual_step, &residual_step);
            for (image, direction) in &basis {
                let part = dot(&residual_step, direction);
                subtract(&mut residual_step, part, direction);
                subtract(&mut image_step, part, image);
            }
            let rest = dot(&residual_step, &residual_step);
            if rest.is_nan() || rest <= DEPENDENT * DEPENDENT * size {
                continue;
            }
            let scale = 1.0 / rest.sqrt();
            residual_step.iter_mut().for_each(|value| *value *= scale);
            image_step.iter_mut().for_each(|value| *value *= scale);
            let part = dot(&left, &residual_step);
            subtract(&mut left, part, &residual_step);
            subtract(point, part, &image_step);
            basis.push((image_step, residual_step));
        }
        self.last = Some((image.to_vec(), residual));
    }
}

fn difference(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a - b).collect()
}

fn subtract(from: &mut [f64], part: f64, direction: &[f64]) {
    for (from, step) in from.iter_mut().zip(direction) {
        *from -= part * step;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_linear_map_is_solved_in_a_few_steps() {
        // x -> A x + b with eigenvalues close to 1: plain iteration takes thousands of steps.
        let map = |x: &[f64]| {
            let [x, y, z] = [x[0], x[1], x[2]];
            [0.999 * x + 0.2 * y + 1.0, 0.99 * y + 2.0, 0.1 * z - 0.3 * x]
        };
        let mut mixer = Mixer::default();
        let mut point = [0.0; 3];
        for _ in 0..6 {
            let image = map(&point);
            mixer.advance(&mut point, &image);
        }
        let image = map(&point);
        for (a, b) in point.iter().zip(image) {
            assert!((a - b).abs() < 1e-7 * b.abs(), "{point:?}");
        }
    }
}
