//! The discrete Fourier transform of a complex signal whose length is a power of two.
//!
//! Stockham's self-sorting radix-2 algorithm on separate real and imaginary parts: every pass reads
//! and writes runs of memory, which the compiler turns into vector instructions. The features need
//! 512 points only; a crate with a planner for all lengths would be a dependency for one size.

use std::f64::consts::TAU;

/// A transform of one length.
pub(crate) struct Fft {
    /// `exp(-2 pi i k / points)` for `k` below half the points.
    twiddles: Vec<[f32; 2]>,
}

/// A signal, or its spectrum, and memory to work in.
#[derive(Clone, Debug)]
pub(crate) struct Signal {
    pub(crate) re: Vec<f32>,
    pub(crate) im: Vec<f32>,
    spare_re: Vec<f32>,
    spare_im: Vec<f32>,
}

// === impl Signal ===

impl Signal {
    /// `points` zeros.
    pub(crate) fn new(points: usize) -> Self {
        let zeros = vec![0.0; points];
        Self {
            re: zeros.clone(),
            im: zeros.clone(),
            spare_re: zeros.clone(),
            spare_im: zeros,
        }
    }
}

// === impl Fft ===

impl Fft {
    /// `points` must be a power of two, at least 2.
    pub(crate) fn new(points: usize) -> Self {
        let twiddle = |k: usize| {
            let (sine, cosine) = (TAU * k as f64 / points as f64).sin_cos();
            [cosine as f32, -sine as f32]
        };
        Self {
            twiddles: (0..points / 2).map(twiddle).collect(),
        }
    }

    /// Replaces a signal of this length by its spectrum, not scaled.
    pub(crate) fn forward(&self, signal: &mut Signal) {
        let half = self.twiddles.len();
        // `run` neighbours are transformed alike; a pass joins two runs into one of twice the
        // length.
        let mut run = 1;
        while run <= half {
            let reals = signal.re.split_at(half);
            let imaginaries = signal.im.split_at(half);
            let outputs = signal
                .spare_re
                .chunks_exact_mut(2 * run)
                .zip(signal.spare_im.chunks_exact_mut(2 * run));
            for (at, (out_re, out_im)) in outputs.enumerate() {
                let [cosine, sine] = self.twiddles[at * run];
                let from = at * run..(at + 1) * run;
                let (sum_re, difference_re) = out_re.split_at_mut(run);
                let (sum_im, difference_im) = out_im.split_at_mut(run);
                let (a_re, b_re) = (&reals.0[from.clone()], &reals.1[from.clone()]);
                let (a_im, b_im) = (&imaginaries.0[from.clone()], &imaginaries.1[from]);
                for q in 0..run {
                    let (re, im) = (a_re[q] - b_re[q], a_im[q] - b_im[q]);
                    sum_re[q] = a_re[q] + b_re[q];
                    sum_im[q] = a_im[q] + b_im[q];
                    difference_re[q] = re * cosine - im * sine;
                    difference_im[q] = re * sine + im * cosine;
                }
            }
            std::mem::swap(&mut signal.re, &mut signal.spare_re);
            std::mem::swap(&mut signal.im, &mut signal.spare_im);
            run *= 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spectrum_is_the_definitions_sum() {
        for points in [2, 4, 8, 64, 512] {
            let mut signal = Signal::new(points);
            for at in 0..points {
                signal.re[at] = ((at * 37 + 5) % 19) as f32 / 19.0 - 0.4;
                signal.im[at] = ((at * 53 + 2) % 23) as f32 / 23.0 - 0.6;
            }
            let given = signal.clone();
            Fft::new(points).forward(&mut signal);
            for bin in 0..points {
                let (mut re, mut im) = (0.0, 0.0);
                for at in 0..points {
                    let turn = TAU * ((at * bin) % points) as f64 / points as f64;
                    let (x, y) = (f64::from(given.re[at]), f64::from(given.im[at]));
                    re += x * turn.cos() + y * turn.sin();
                    im += y * turn.cos() - x * turn.sin();
                }
                let gap = (f64::from(signal.re[bin]) - re).abs();
                let gap = gap.max((f64::from(signal.im[bin]) - im).abs());
                assert!(gap < 1e-4, "{points} points, bin {bin}: {gap}");
            }
        }
    }

    #[test]
    fn four_points_by_hand() {
        // 1, 2, 3, 4: bins 10, -2 + 2i, -2, -2 - 2i.
        let mut signal = Signal::new(4);
        signal.re.copy_from_slice(&[1.0, 2.0, 3.0, 4.0]);
        Fft::new(4).forward(&mut signal);
        assert_eq!(signal.re, [10.0, -2.0, -2.0, -2.0]);
        let want = [0.0, 2.0, 0.0, -2.0];
        for (ours, theirs) in signal.im.iter().zip(want) {
            assert!((ours - theirs).abs() < 1e-6, "{:?}", signal.im);
        }
    }
}
