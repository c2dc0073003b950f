use super::*;

#[derive(Clone, Copy)]
struct Exp;

impl VectorFunction for Exp {
    #[inline(always)]
    fn of<S: Simd>(self, simd: S, x: S::Vector) -> S::Vector {
        exp(simd, x)
    }
}

#[derive(Clone, Copy)]
struct Ln;

impl VectorFunction for Ln {
    #[inline(always)]
    fn of<S: Simd>(self, simd: S, x: S::Vector) -> S::Vector {
        ln(simd, x)
    }
}

#[derive(Clone, Copy)]
struct Tanh;

impl VectorFunction for Tanh {
    #[inline(always)]
    fn of<S: Simd>(self, simd: S, x: S::Vector) -> S::Vector {
        tanh(simd, x)
    }
}

#[test]
fn logarithms_agree_with_the_library() {
    // All exponents, and values around 1.
    let wide = (0..5_000).map(|i| f32::MIN_POSITIVE * (i as f32 * 0.035).exp2());
    let narrow = (-9_000..20_000).map(|i| 1.0 + i as f32 * 1e-4);
    let x: Vec<f32> = wide.chain(narrow).filter(|x| x.is_finite()).collect();
    let mut ours = x.clone();
    each(&mut ours, Ln);
    for (x, ours) in x.iter().zip(&ours) {
        let want = f64::from(*x).ln();
        let gap = (f64::from(*ours) - want).abs();
        assert!(gap <= 1.5e-7 * want.abs(), "{x}: {ours} {want}");
    }
    let mut extremes = [f32::MIN_POSITIVE, f32::MAX, f32::INFINITY, f32::NAN];
    each(&mut extremes, Ln);
    assert!((extremes[0] + 87.336_54).abs() < 1e-5 && (extremes[1] - 88.722_84).abs() < 1e-5);
    assert!(extremes[2].is_nan() && extremes[3].is_nan());
}

#[test]
fn tangents_agree_with_the_library() {
    let wide = (-100_000..100_000).map(|i| i as f32 * 1e-4);
    let small = (-110..0).flat_map(|e| [1.0f32, -1.7].map(|m| m * (e as f32).exp2()));
    let x: Vec<f32> = wide.chain(small).collect();
    let mut ours = x.clone();
    each(&mut ours, Tanh);
    for (x, ours) in x.iter().zip(&ours) {
        let want = f64::from(*x).tanh();
        let gap = (f64::from(*ours) - want).abs();
        assert!(gap <= 4e-7 * want.abs(), "{x}: {ours} {want}");
        assert!(ours.abs() <= 1.0, "{x}: {ours}");
    }
    let mut extremes = [f32::INFINITY, f32::MIN, f32::NAN];
    each(&mut extremes, Tanh);
    assert!((extremes[0] - 1.0).abs() < 1e-6 && (extremes[1] + 1.0).abs() < 1e-6);
    assert!(extremes[2].is_nan());
}

#[test]
fn exponentials_agree_with_the_library_and_stay_normal() {
    let x: Vec<f32> = (-8_700..8_800).map(|i| i as f32 * 0.01).collect();
    let mut ours = x.clone();
    each(&mut ours, Exp);
    for (x, ours) in x.iter().zip(&ours) {
        let want = f64::from(*x).exp();
        assert!((f64::from(*ours) - want).abs() < 3e-7 * want, "{x}: {ours}");
    }
    let mut extremes = [
        f32::NEG_INFINITY,
        f32::MIN,
        f32::MAX,
        f32::INFINITY,
        f32::NAN,
    ];
    each(&mut extremes, Exp);
    assert!(extremes[..4].iter().all(|x| x.is_normal()), "{extremes:?}");
    assert!(extremes[4].is_nan());
}
