//! The features: for each convolution and bias, the share of moments at which the convolution
//! exceeds the bias.
//!
//! All kernels of a dilation share their work (section 4.2 of the paper): with weights -1 and 2, a
//! convolution is minus the sum of nine shifted copies of the window plus three times three of
//! them. The first part is computed once for all 84 kernels, the second is additions.

use std::array;

use candle_core::{CpuStorage, CustomOp3, Layout, Result, Shape, Tensor};
use switchyard_kernels::rocket::{add_taps, minus_taps, shares_above};

use super::convolutions::{Dilation, DilationPlan, KERNELS, REACH, kernels};
use crate::ops::device::has_kernels;
use crate::ops::tensors::contiguous;

/// The features of some dilations of windows `[length, axes]`.
pub(super) struct Transform {
    length: usize,
    axes: usize,
    plan: DilationPlan,
    kernels: [[usize; 3]; KERNELS],
}

/// Channels of one window, its axes and then their magnitude: three times their values, with zeros on both
/// ends. And for one dilation, for each channel, minus the sum of its nine shifts.
struct WindowChannels {
    /// Zeros at each end.
    margin: usize,
    tripled: Vec<Vec<f32>>,
    /// A third of `tripled`, which may be rounded from the value; biases are fitted to such sums.
    thirds: Vec<Vec<f32>>,
    base: Vec<Vec<f32>>,
}

// === impl Transform ===

impl Transform {
    pub(super) fn new(length: usize, axes: usize, plan: DilationPlan) -> Self {
        let kernels = kernels();
        Self {
            length,
            axes,
            plan,
            kernels,
        }
    }

    pub(super) fn features(&self) -> usize {
        self.plan.features()
    }

    /// Windows `[batch, length * axes]`, gains `[combinations, axes + 1]` and biases `[features]`
    /// to `[batch, features]`, without a gradient. Features are ordered by (dilation, kernel).
    pub(super) fn run(&self, x: &Tensor, gains: &Tensor, biases: &Tensor) -> Result<Tensor> {
        if has_kernels(x) {
            let (x, gains) = (x.contiguous()?, gains.contiguous()?);
            x.apply_op3_no_bwd(&gains, &biases.contiguous()?, self)
        } else {
            self.composed(x, gains, biases)
        }
    }

    /// Calls `with` for each combination of dilation and kernel, in order, with the convolution of
    /// one window at the kernel's moments.
    pub(super) fn each_convolution(
        &self,
        window: &[f32],
        gains: &[f32],
        mut with: impl FnMut(Dilation, &[f32]),
    ) {
        let margins = self
            .plan
            .dilations()
            .iter()
            .map(|dilation| dilation.margin());
        let margin = margins.max().unwrap_or_default();
        let mut channels = WindowChannels::new(window, self.axes, margin);
        let mut convolution = vec![0.0; self.length];
        let mut gains = gains.chunks_exact(self.axes + 1);
        for &dilation in self.plan.dilations() {
            channels.dilate(dilation);
            for (index, kernel) in self.kernels.iter().enumerate() {
                convolution.fill(0.0);
                let Some(gains) = gains.next() else { return };
                for (channel, &gain) in gains.iter().enumerate() {
                    if gain != 0.0 {
                        channels.add(channel, gain, dilation, *kernel, &mut convolution);
                    }
                }
                let margin = if dilation.padded(index) {
                    0
                } else {
                    dilation.margin()
                };
                with(dilation, &convolution[margin..self.length - margin]);
            }
        }
    }

    /// The same made of candle's own operations, for devices without a kernel of this project.
    fn composed(&self, x: &Tensor, gains: &Tensor, biases: &Tensor) -> Result<Tensor> {
        let batch = x.dim(0)?;
        let axes = x.reshape((batch, self.length, self.axes))?;
        let magnitude = axes.sqr()?.sum_keepdim(2)?.sqrt()?;
        let channels = Tensor::cat(&[&axes, &magnitude], 2)?;
        let mut features = Vec::new();
        let (mut combination, mut feature) = (0, 0);
        for dilation in self.plan.dilations() {
            let margin = dilation.margin();
            let padded = channels.pad_with_zeros(1, margin, margin)?;
            let shifts = (0..REACH)
                .map(|tap| padded.narrow(1, tap * dilation.step, self.length))
                .collect::<Result<Vec<_>>>()?;
            for (index, kernel) in self.kernels.iter().enumerate() {
                let mut sum = shifts[0].zeros_like()?;
                for (tap, shift) in shifts.iter().enumerate() {
                    let weight = if kernel.contains(&tap) { 2.0 } else { -1.0 };
                    sum = (sum + shift.affine(weight, 0.0)?)?;
                }
                let gain = gains.get(combination)?.unsqueeze(1)?;
                let mut convolution = sum.broadcast_matmul(&gain)?.squeeze(2)?;
                if !dilation.padded(index) {
                    convolution = convolution.narrow(1, margin, self.length - 2 * margin)?;
                }
                for _ in 0..dilation.features {
                    let above = convolution.broadcast_gt(&biases.narrow(0, feature, 1)?)?;
                    features.push(above.to_dtype(x.dtype())?.mean_keepdim(1)?);
                    feature += 1;
                }
                combination += 1;
            }
        }
        // NaN where a magnitude is not finite: no comparison with a bias would show it.
        let unknown = (magnitude.sum_keepdim(1)? * 0.0)?.squeeze(2)?;
        Tensor::cat(&features, 1)?.broadcast_add(&unknown)
    }
}

impl CustomOp3 for Transform {
    fn name(&self) -> &'static str {
        "minirocket"
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        x_layout: &Layout,
        gains: &CpuStorage,
        gains_layout: &Layout,
        biases: &CpuStorage,
        biases_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let (batch, width) = x_layout.shape().dims2()?;
        let windows = contiguous(x, x_layout)?;
        let gains = contiguous(gains, gains_layout)?;
        let biases = contiguous(biases, biases_layout)?;
        let mut features = Vec::with_capacity(batch * biases.len());
        for window in windows.chunks_exact(width) {
            // No comparison with a bias would show it.
            let mut moments = window.chunks_exact(self.axes);
            if !moments.all(|moment| magnitude(moment).is_finite()) {
                features.resize(features.len() + biases.len(), f32::NAN);
                continue;
            }
            let mut from = 0;
            self.each_convolution(window, gains, |dilation, convolution| {
                let biases = &biases[from..from + dilation.features];
                shares_above(convolution, biases, &mut features);
                from += dilation.features;
            });
        }
        Ok((CpuStorage::F32(features), (batch, biases.len()).into()))
    }
}

/// Infinite also for values whose squares are too large.
fn magnitude(moment: &[f32]) -> f32 {
    moment.iter().map(|value| value * value).sum::<f32>().sqrt()
}

// === impl WindowChannels ===

impl WindowChannels {
    fn new(window: &[f32], axes: usize, margin: usize) -> Self {
        let length = window.len() / axes;
        let tripled = |values: &mut dyn Iterator<Item = f32>| {
            let mut plane = vec![0.0; margin];
            plane.extend(values.map(|value| 3.0 * value));
            plane.resize(length + 2 * margin, 0.0);
            plane
        };
        let mut planes: Vec<Vec<f32>> = (0..axes)
            .map(|axis| tripled(&mut window.iter().skip(axis).step_by(axes).copied()))
            .collect();
        planes.push(tripled(&mut window.chunks_exact(axes).map(magnitude)));
        let third = |plane: &Vec<f32>| plane.iter().map(|value| value / 3.0).collect();
        Self {
            margin,
            thirds: planes.iter().map(third).collect(),
            base: vec![vec![0.0; length]; planes.len()],
            tripled: planes,
        }
    }

    /// Computes `base` for a dilation.
    fn dilate(&mut self, dilation: Dilation) {
        let from: [usize; REACH] = array::from_fn(|tap| self.tap(dilation, tap));
        for (plane, base) in self.thirds.iter().zip(&mut self.base) {
            minus_taps(base, from.map(|from| &plane[from..]));
        }
    }

    /// Adds a channel's convolution, times `gain`.
    fn add(
        &self,
        channel: usize,
        gain: f32,
        dilation: Dilation,
        kernel: [usize; 3],
        onto: &mut [f32],
    ) {
        let taps = kernel.map(|tap| &self.tripled[channel][self.tap(dilation, tap)..]);
        add_taps(onto, gain, &self.base[channel], taps);
    }

    /// Position of the first value that a tap reads.
    fn tap(&self, dilation: Dilation, tap: usize) -> usize {
        self.margin - dilation.margin() + tap * dilation.step
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use candle_core::Device;
    use rand::{Rng, SeedableRng};
    use rand_pcg::Pcg64;

    use super::*;
    use crate::ops::testing::values;

    fn random(rng: &mut Pcg64, shape: &[usize]) -> Tensor {
        let count = shape.iter().product();
        let values: Vec<f32> = (0..count).map(|_| rng.random_range(-1.0..1.0)).collect();
        Tensor::from_vec(values, shape, &Device::Cpu).unwrap()
    }

    #[test]
    fn features_equal_those_of_the_composed_operations() {
        let mut rng = Pcg64::seed_from_u64(3);
        let (length, axes) = (40, 2);
        let transform = Transform::new(length, axes, DilationPlan::new(length, 5));
        let combinations = transform.plan.dilations().len() * KERNELS;
        let x = random(&mut rng, &[3, length * axes]);
        let gains = random(&mut rng, &[combinations, axes + 1]);
        let biases = random(&mut rng, &[transform.features()]);
        let ours = transform.run(&x, &gains, &biases).unwrap();
        let theirs = transform.composed(&x, &gains, &biases).unwrap();
        assert_eq!(ours.dims(), theirs.dims());
        let (ours, theirs) = (values(&ours), values(&theirs));
        let differing = ours
            .iter()
            .zip(&theirs)
            .filter(|(a, b)| (*a - *b).abs() > 1e-5);
        // Sums in another order may move a value across a bias, seldom.
        assert!(differing.count() < ours.len() / 200);
        let mean = ours.iter().sum::<f32>() / ours.len() as f32;
        assert!((0.2..0.8).contains(&mean), "{mean}");
    }

    #[test]
    fn windows_whose_magnitude_overflows_have_no_features() {
        let (length, axes) = (40, 2);
        let transform = Transform::new(length, axes, DilationPlan::new(length, 5));
        let combinations = transform.plan.dilations().len() * KERNELS;
        let mut rng = Pcg64::seed_from_u64(4);
        let gains = random(&mut rng, &[combinations, axes + 1]);
        let biases = random(&mut rng, &[transform.features()]);
        for wrong in [1e20, f32::NEG_INFINITY, f32::NAN] {
            let mut both = vec![0.5; 2 * length * axes];
            both[7] = wrong;
            let both = Tensor::from_vec(both, (2, length * axes), &Device::Cpu).unwrap();
            for features in [
                transform.run(&both, &gains, &biases).unwrap(),
                transform.composed(&both, &gains, &biases).unwrap(),
            ] {
                let features = values(&features);
                let (wrong, right) = features.split_at(features.len() / 2);
                assert!(wrong.iter().all(|value| value.is_nan()));
                assert!(right.iter().all(|value| value.is_finite()));
            }
        }
    }

    /// A window of one axis with a single 1 in the middle of 11 moments, dilation 1. Kernel [0, 1,
    /// 2] has 2 at its first three taps and -1 at the other six; tap `t` of moment `m` reads moment
    /// `m + t - 4`.
    #[test]
    fn a_feature_computed_by_hand() {
        let mut window = [0.0; 11];
        window[5] = 1.0;
        let dilation = Dilation {
            step: 1,
            features: 1,
            even_padded: true,
        };
        let mut channels = WindowChannels::new(&window, 1, dilation.margin() + 3);
        channels.dilate(dilation);
        let mut convolution = vec![0.0; 11];
        channels.add(0, 1.0, dilation, [0, 1, 2], &mut convolution);
        // Moment 9 reads the 1 at tap 0, moment 1 at tap 8.
        let want = [0., -1., -1., -1., -1., -1., -1., 2., 2., 2., 0.];
        assert_eq!(convolution, want);
        let mut shares = Vec::new();
        shares_above(&convolution, &[0.5, -0.5, 2.0], &mut shares);
        assert_eq!(shares, [3.0 / 11.0, 5.0 / 11.0, 0.0]);
    }
}
