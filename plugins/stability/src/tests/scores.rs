//! Eq. 3 and 4.

use proptest::prelude::*;

use crate::score::{UrgencySums, urgency};

fn close(a: f64, b: f64) {
    assert!((a - b).abs() <= 1e-9 * a.abs().max(1.0), "{a} is not {b}");
}

#[test]
fn urgency_is_one_at_the_slo_and_clipped() {
    close(urgency(50.0, 50.0, 2.0), 1.0);
    // exp(-1), exp(-0.5), exp(0.5).
    close(urgency(0.0, 50.0, 2.0), 0.367_879_441_171_442_3);
    close(urgency(25.0, 50.0, 2.0), 0.606_530_659_712_633_4);
    close(urgency(75.0, 50.0, 2.0), 1.648_721_270_700_128);
    // exp(1) = 2.718 is above 2, as are overflows.
    close(urgency(100.0, 50.0, 2.0), 2.0);
    close(urgency(1e300, 50.0, 2.0), 2.0);
    close(urgency(-1e300, 50.0, 2.0), 0.0);
}

#[test]
fn a_sum_computed_by_hand() {
    let waits = [90.0, 40.0, 0.0];
    let mut sums = UrgencySums::default();
    sums.fill(waits.into_iter(), 50.0, 2.0);
    // Now: exp(0.8) = 2.226 is clipped to 2, exp(-0.2), exp(-1).
    let now = 2.0 + 0.818_730_753_077_981_8 + 0.367_879_441_171_442_3;
    close(sums.after(0, 0.0, |at| waits[at]), now);
    // After 45: 2, exp(0.7) = 2.014 clipped to 2, exp(-0.1).
    let later = 2.0 + 2.0 + 0.904_837_418_035_959_6;
    close(sums.after(0, 45.0, |at| waits[at]), later);
    // Without the first task, and without all.
    close(sums.after(1, 45.0, |at| waits[at]), later - 2.0);
    close(sums.after(3, 45.0, |at| waits[at]), 0.0);
}

proptest! {
    #[test]
    fn suffix_sums_equal_the_plain_sum(
        mut waits in prop::collection::vec(-500_000.0..500_000.0f64, 0..200),
        tau_us in 1_000.0..200_000.0f64,
        clip in 0.1..50.0f64,
        longer_us in 0.0..400_000.0f64,
        skipped in 0..200usize,
    ) {
        waits.sort_by(|a, b| b.total_cmp(a));
        let skipped = skipped.min(waits.len());
        let mut sums = UrgencySums::default();
        sums.fill(waits.iter().copied(), tau_us, clip);
        let quick = sums.after(skipped, longer_us, |at| waits[at]);
        let urgencies = waits[skipped..].iter().map(|wait| urgency(wait + longer_us, tau_us, clip));
        let plain: f64 = urgencies.sum();
        prop_assert!((quick - plain).abs() <= 1e-9 * plain.max(1.0), "{quick} is not {plain}");
    }
}
