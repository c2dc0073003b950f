//! Medians of calls that take turns, so that other load on the machine affects all of them alike.
//!
//! criterion measures one contestant after the other and reports each alone. Here the ratio is the
//! result, and on a shared machine only turns make it reliable.

use std::time::Instant;

/// A call that is measured again and again.
pub(crate) type BenchCall<'a> = Box<dyn FnMut() + 'a>;

/// Turns of each contestant. `--quick` on the command line makes them fewer.
pub(crate) fn turns() -> usize {
    if std::env::args().any(|arg| arg == "--quick") {
        301
    } else {
        3_001
    }
}

/// Median time of one call of each contestant, in microseconds. A turn has enough calls to take
/// about 20 us, so that reading the clock does not count.
pub(crate) fn medians_us(contestants: &mut [BenchCall<'_>]) -> Vec<f64> {
    let calls: Vec<u32> = contestants.iter_mut().map(calls_per_turn).collect();
    let mut times = vec![Vec::new(); contestants.len()];
    for _ in 0..turns() {
        for ((call, calls), times) in contestants.iter_mut().zip(&calls).zip(&mut times) {
            let began = Instant::now();
            for _ in 0..*calls {
                call();
            }
            times.push(began.elapsed().as_secs_f64() * 1e6 / f64::from(*calls));
        }
    }
    times.iter_mut().map(|times| median(times)).collect()
}

/// The middle value, or the upper of the two middle ones.
pub(crate) fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn calls_per_turn(call: &mut BenchCall<'_>) -> u32 {
    let began = Instant::now();
    for _ in 0..64 {
        call();
    }
    let one_us = began.elapsed().as_secs_f64() * 1e6 / 64.0;
    (20.0 / one_us).ceil().clamp(1.0, 1_000.0) as u32
}
