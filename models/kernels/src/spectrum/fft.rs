//! The power spectra of real signals, one signal per lane of a vector.
//!
//! Even and odd samples are the parts of a complex signal of half the length, whose transform is
//! computed in place: radix 4, decimation in frequency. Its results lie in the order of their
//! reversed digits, where the last step, which separates the two real spectra, finds them.

use std::f64::consts::TAU;

use crate::simd::vectors::Simd;

/// A transform of one length.
pub(super) struct RealFft {
    /// Complex points, half of the real ones.
    points: usize,
    /// Of each pass and butterfly, the first, second and third power of its root of unity.
    passes: Vec<Vec<[Root; 3]>>,
    mirrors: Vec<MirrorPair>,
}

/// `exp(-i angle)`: its real and its imaginary part.
type Root = [f32; 2];

/// Two frequencies at the same distance from a quarter of the sampling rate.
struct MirrorPair {
    /// Bins of the real spectrum.
    bins: [usize; 2],
    /// Positions of their values in the complex spectrum.
    places: [usize; 2],
    /// The root of the lower bin.
    root: Root,
}

/// A complex number per lane.
#[derive(Clone, Copy)]
struct Complex<V> {
    re: V,
    im: V,
}

// === impl RealFft ===

impl RealFft {
    /// A transform of `points` real values.
    ///
    /// # Panics
    /// `points` is not twice a power of 4, or less than 8.
    pub(super) fn new(points: usize) -> Self {
        let half = points / 2;
        assert!(
            points >= 8 && points.is_power_of_two() && half.trailing_zeros().is_multiple_of(2),
            "twice a power of 4, not {points}"
        );
        let mut passes = Vec::new();
        let mut length = half;
        while length > 1 {
            let roots = |at: usize| [1, 2, 3].map(|power| root(at * power, length));
            passes.push((0..length / 4).map(roots).collect());
            length /= 4;
        }
        let mirrors = (0..=half / 2).map(|bin| MirrorPair {
            bins: [bin, half - bin],
            places: [place(bin, half), place((half - bin) % half, half)],
            root: root(bin, points),
        });
        Self {
            points: half,
            passes,
            mirrors: mirrors.collect(),
        }
    }

    /// Values of a signal.
    pub(super) fn points(&self) -> usize {
        2 * self.points
    }

    /// Frequencies of a spectrum, from 0 to half the sampling rate.
    pub(super) fn bins(&self) -> usize {
        self.points + 1
    }

    /// Writes the squared magnitudes `[bin][lane]` of the spectra of `signals`, `[point][lane]`;
    /// overwrites the signals.
    #[inline(always)]
    pub(super) fn powers<S: Simd>(&self, simd: S, signals: &mut [f32], powers: &mut [f32]) {
        let signals = &mut signals[..self.points() * S::LANES];
        let mut length = self.points;
        for roots in &self.passes {
            for block in signals.chunks_exact_mut(2 * length * S::LANES) {
                pass(simd, block, roots);
            }
            length /= 4;
        }
        for pair in &self.mirrors {
            let [low, high] = pair.powers(simd, signals);
            let [low_bin, high_bin] = pair.bins;
            simd.store(&mut powers[low_bin * S::LANES..][..S::LANES], low);
            simd.store(&mut powers[high_bin * S::LANES..][..S::LANES], high);
        }
    }
}

/// `exp(-2 pi i k / points)`.
fn root(k: usize, points: usize) -> Root {
    let (sine, cosine) = (TAU * k as f64 / points as f64).sin_cos();
    [cosine as f32, -sine as f32]
}

/// The position of frequency `k` of `length` after all passes.
fn place(k: usize, length: usize) -> usize {
    match length {
        1 => 0,
        _ => k % 4 * (length / 4) + place(k / 4, length / 4),
    }
}

/// One pass over a block: butterflies of its four quarters. Quarter `r` then holds the signal whose
/// transform has the frequencies `4 m + r`.
#[inline(always)]
fn pass<S: Simd>(simd: S, block: &mut [f32], roots: &[[Root; 3]]) {
    let width = 2 * S::LANES;
    let quarter = roots.len() * width;
    let (low, high) = block.split_at_mut(2 * quarter);
    let (first, second) = low.split_at_mut(quarter);
    let (third, fourth) = high.split_at_mut(quarter);
    let low = first
        .chunks_exact_mut(width)
        .zip(second.chunks_exact_mut(width));
    let high = third
        .chunks_exact_mut(width)
        .zip(fourth.chunks_exact_mut(width));
    for (((a, b), (c, d)), powers) in low.zip(high).zip(roots) {
        let [w, mut x, mut y, mut z] = butterfly(simd, [&*a, &*b, &*c, &*d]);
        // The only butterfly of the last pass has roots of 1.
        if roots.len() > 1 {
            x = x.times(simd, powers[0]);
            y = y.times(simd, powers[1]);
            z = z.times(simd, powers[2]);
        }
        w.store(simd, a);
        x.store(simd, b);
        y.store(simd, c);
        z.store(simd, d);
    }
}

/// The transform of four points.
#[inline(always)]
fn butterfly<S: Simd>(simd: S, points: [&[f32]; 4]) -> [Complex<S::Vector>; 4] {
    let [a, b, c, d] = points;
    let (a, b) = (Complex::load(simd, a), Complex::load(simd, b));
    let (c, d) = (Complex::load(simd, c), Complex::load(simd, d));
    let (even, odd) = (a.plus(simd, c), b.plus(simd, d));
    // Multiplied by -i, `turned` is the other difference.
    let (difference, turned) = (a.minus(simd, c), b.minus(simd, d));
    let third = Complex {
        re: simd.sub(difference.re, turned.im),
        im: simd.add(difference.im, turned.re),
    };
    let first = Complex {
        re: simd.add(difference.re, turned.im),
        im: simd.sub(difference.im, turned.re),
    };
    [even.plus(simd, odd), first, even.minus(simd, odd), third]
}

// === impl MirrorPair ===

impl MirrorPair {
    /// The squared magnitudes of both bins.
    #[inline(always)]
    fn powers<S: Simd>(&self, simd: S, spectra: &[f32]) -> [S::Vector; 2] {
        let width = 2 * S::LANES;
        let [low, high] = self.places;
        let low = Complex::load(simd, &spectra[low * width..][..width]);
        let high = Complex::load(simd, &spectra[high * width..][..width]);
        // Twice the spectra of the even and of the odd samples at the lower bin.
        let even = Complex {
            re: simd.add(low.re, high.re),
            im: simd.sub(low.im, high.im),
        };
        let odd = Complex {
            re: simd.add(low.im, high.im),
            im: simd.sub(high.re, low.re),
        };
        let odd = odd.times(simd, self.root);
        [
            even.plus(simd, odd).quarter_of_square(simd),
            even.minus(simd, odd).quarter_of_square(simd),
        ]
    }
}

// === impl Complex ===

impl<V: Copy> Complex<V> {
    /// Loads the real parts, then the imaginary parts.
    #[inline(always)]
    fn load<S: Simd<Vector = V>>(simd: S, from: &[f32]) -> Self {
        let (re, im) = from.split_at(S::LANES);
        Self {
            re: simd.load(re),
            im: simd.load(im),
        }
    }

    #[inline(always)]
    fn store<S: Simd<Vector = V>>(self, simd: S, to: &mut [f32]) {
        let (re, im) = to.split_at_mut(S::LANES);
        simd.store(re, self.re);
        simd.store(im, self.im);
    }

    #[inline(always)]
    fn plus<S: Simd<Vector = V>>(self, simd: S, other: Self) -> Self {
        Self {
            re: simd.add(self.re, other.re),
            im: simd.add(self.im, other.im),
        }
    }

    #[inline(always)]
    fn minus<S: Simd<Vector = V>>(self, simd: S, other: Self) -> Self {
        Self {
            re: simd.sub(self.re, other.re),
            im: simd.sub(self.im, other.im),
        }
    }

    #[inline(always)]
    fn times<S: Simd<Vector = V>>(self, simd: S, [re, im]: Root) -> Self {
        let (re, im, minus) = (simd.splat(re), simd.splat(im), simd.splat(-im));
        Self {
            re: simd.mul_add(self.re, re, simd.mul(self.im, minus)),
            im: simd.mul_add(self.re, im, simd.mul(self.im, re)),
        }
    }

    /// A quarter of the squared magnitude.
    #[inline(always)]
    fn quarter_of_square<S: Simd<Vector = V>>(self, simd: S) -> V {
        let square = simd.mul_add(self.re, self.re, simd.mul(self.im, self.im));
        simd.mul(simd.splat(0.25), square)
    }
}

#[cfg(test)]
mod tests;
