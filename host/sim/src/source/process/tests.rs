//! Rates, variances and phases of the processes.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::random::Purpose;

/// Arrivals of a spec up to a time, as (microseconds, phase).
fn draw(spec: &str, until_s: f64) -> Vec<(f64, usize)> {
    let mut random = Stream::new(11, Purpose::Arrivals, 0);
    let mut process = ArrivalProcess::new(&spec.parse().unwrap());
    std::iter::from_fn(|| process.next(&mut random))
        .take_while(|(at, _)| *at < until_s * SECOND_US)
        .collect()
}

#[test]
fn every_process_keeps_its_rate_and_never_goes_back() {
    for (spec, rate) in [
        ("poisson:200", 200.0),
        ("gamma:200,0.5", 200.0),
        ("erlang:200,4", 200.0),
        ("periodic:200", 200.0),
        ("mmpp:300,100,2,2", 200.0),
        ("phases:300x100ms,100x100ms", 200.0),
        ("window:20x100ms", 200.0),
        ("burst:180,20x1s", 200.0),
    ] {
        let drawn = draw(spec, 2_000.0);
        let got = drawn.len() as f64 / 2_000.0;
        assert!((got / rate - 1.0).abs() < 0.02, "{spec}: {got} per second");
        assert!(
            drawn.windows(2).all(|pair| pair[0].0 <= pair[1].0),
            "{spec}"
        );
    }
}

#[test]
fn gaps_vary_as_their_law_says() {
    for (spec, squared_cv) in [
        ("poisson:100", 1.0),
        ("gamma:100,0.25", 4.0),
        ("erlang:100,4", 0.25),
    ] {
        let drawn = draw(spec, 3_000.0);
        let gaps: Vec<f64> = drawn.windows(2).map(|p| p[1].0 - p[0].0).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let squares = gaps.iter().map(|g| (g - mean) * (g - mean)).sum::<f64>();
        let got = squares / gaps.len() as f64 / (mean * mean);
        assert!((got / squared_cv - 1.0).abs() < 0.05, "{spec}: {got}");
    }
}

/// The PPO router's workload: the normal phase is 18 times as long as the bursty one, so the mean
/// rate is (180 * 1 + 10 * 18) / 19.
#[test]
fn a_modulated_process_holds_its_phases() {
    let drawn = draw("mmpp:180,10,0.036,0.002", 400_000.0);
    let rate = drawn.len() as f64 / 400_000.0;
    assert!((rate / (360.0 / 19.0) - 1.0).abs() < 0.1, "{rate}");
    let bursty = drawn.iter().filter(|(_, phase)| *phase == 0).count();
    let share = bursty as f64 / drawn.len() as f64;
    assert!((share - 0.5).abs() < 0.05, "{share}");
}

#[test]
fn windows_hold_exactly_their_count() {
    let drawn = draw("window:12x100ms", 10.0);
    let mut counts = [0; 100];
    for (at, _) in drawn {
        counts[(at / 1e5) as usize] += 1;
    }
    assert_eq!(counts, [12; 100]);
}

#[test]
fn a_trace_of_rates_ends_with_its_last_interval() {
    let trace = Trace {
        interval_s: Some(10.0),
        qps: Some(vec![100.0, 0.0, 300.0]),
        ..Trace::default()
    };
    let mut random = Stream::new(3, Purpose::Arrivals, 0);
    let mut process = ArrivalProcess::new(&Arrivals::Trace(trace));
    let mut counts = [0; 3];
    while let Some((at, phase)) = process.next(&mut random) {
        assert_eq!((at / 1e7) as usize, phase);
        counts[phase] += 1;
    }
    assert!((900..1_100).contains(&counts[0]), "{counts:?}");
    assert_eq!(counts[1], 0);
    assert!((2_800..3_200).contains(&counts[2]), "{counts:?}");
}
