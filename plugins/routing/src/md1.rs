//! Waiting times of the M/D/1 queue: Poisson arrivals, one server, constant service time.

use libm::{exp, floor};

/// Longer waits, in services, count as this long: beyond any likely wait of a stable queue.
const SERVICES_MAX: f64 = 200.0;

/// Poisson counts beyond the needed ones by more than this have probability 0.
const TAIL: usize = 60;

/// The probability that a request waits longer than `services` service times. `load` is the arrival
/// rate times the service time; from 1 on there is no stationary state, and the result is 1.
///
/// Erlang's distribution in the form of Franx (2001), whose terms are positive: for
/// k - 1 <= x < k, with u = load * (k - x),
/// P(W <= x) = e^-u * sum over j < k of P(L <= k - j) u^j / j!, L the number in the system.
pub(crate) fn waits_longer(load: f64, services: f64) -> f64 {
    if load >= 1.0 || services < 0.0 {
        return 1.0;
    }
    let x = services.min(SERVICES_MAX);
    let k = floor(x) as usize + 1;
    let at_most = in_system_at_most(load, k);
    let u = load * (k as f64 - x);
    let mut term = exp(-u);
    let mut within = 0.0;
    for j in 0..k {
        within += term * at_most[k - j];
        term *= u / (j + 1) as f64;
    }
    (1.0 - within).clamp(0.0, 1.0)
}

/// P(L <= i) for i up to `most`, by level crossings: the flow from at most j to more than j in one
/// service equals the flow back from j + 1, so
/// p(j+1) P(A = 0) = p(0) P(A > j) + sum over i = 1..j of p(i) P(A > j - i + 1),
/// A the arrivals in a service.
fn in_system_at_most(load: f64, most: usize) -> Vec<f64> {
    let mut arrivals = vec![exp(-load)];
    for i in 1..most + TAIL {
        arrivals.push(arrivals[i - 1] * load / i as f64);
    }
    // more_than[i] = P(A > i).
    let mut more_than = vec![0.0; arrivals.len()];
    for i in (1..arrivals.len()).rev() {
        more_than[i - 1] = more_than[i] + arrivals[i];
    }
    let mut p = vec![1.0 - load];
    for j in 0..most {
        let from_busy: f64 = (1..=j).map(|i| p[i] * more_than[j - i + 1]).sum();
        p.push((p[0] * more_than[j] + from_busy) / arrivals[0]);
    }
    let sums = p.iter().scan(0.0, |sum, p| {
        *sum += p;
        Some(*sum)
    });
    sums.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Erlang's form; its terms alternate, which is exact enough for short waits.
    fn erlang(load: f64, x: f64) -> f64 {
        let term = |i: i32| {
            let u = load * (f64::from(i) - x);
            let factorial: f64 = (1..=i).map(f64::from).product();
            libm::pow(u, f64::from(i)) / factorial * exp(-u)
        };
        1.0 - (1.0 - load) * (0..=floor(x) as i32).map(term).sum::<f64>()
    }

    #[test]
    fn short_waits_by_hand() {
        // P(W > 0) = load.
        assert!((waits_longer(0.5, 0.0) - 0.5).abs() < 1e-12);
        // Below one service: P(W <= x) = (1 - load) e^(load x).
        assert!((waits_longer(0.5, 0.5) - (1.0 - 0.5 * exp(0.25))).abs() < 1e-12);
    }

    #[test]
    fn it_equals_erlangs_distribution() {
        for load in [0.1, 0.5, 0.77, 0.95] {
            for x in [0.3, 1.0, 1.7, 3.3, 6.0, 9.9] {
                let (franx, erlang) = (waits_longer(load, x), erlang(load, x));
                assert!(
                    (franx - erlang).abs() < 1e-9,
                    "load {load}, {x}: {franx} {erlang}"
                );
            }
        }
    }

    #[test]
    fn long_waits_are_unlikely_unless_overloaded() {
        // The tail falls by e^-0.498 per service at a load of 0.77 (e^u - 1 = u / load).
        let ratio = waits_longer(0.77, 31.0) / waits_longer(0.77, 30.0);
        assert!((ratio - exp(-0.498)).abs() < 5e-3, "{ratio}");
        assert!(waits_longer(0.9, 1e9) < 1e-12);
        assert!((waits_longer(1.0, 5.0) - 1.0).abs() < f64::EPSILON);
        assert!((waits_longer(0.5, -1.0) - 1.0).abs() < f64::EPSILON);
    }
}
