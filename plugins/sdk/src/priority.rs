//! Priorities of requests and groups (SneakPeek eq. 12 and 14).

/// Priority of a request (eq. 12): (1 + Var\[accuracies\]) * exp(-d), with the
/// [`variance`] of the accuracies of its app's variants for this request, and d the time left
/// to its deadline.
///
/// The paper leaves the unit of d open. The unit sets the weight of the variance against the
/// deadline: `unit_us` microseconds count as 1.
pub fn priority(variance: f64, slack_us: i64, unit_us: f64) -> f64 {
    // Not `f64::exp`: the system's differs in the last bit from machine to machine.
    (1.0 + variance) * libm::exp(-(slack_us as f64 / unit_us))
}

/// Population variance (the paper's footnote 3: 0 for a single variant).
pub fn variance(values: &[f64]) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    let mean = mean(values.iter().copied());
    mean_of_squares(values, mean)
}

/// Arithmetic mean, 0 of nothing. Of the priorities of a group's requests it is the group's
/// priority (eq. 14).
pub fn mean(values: impl IntoIterator<Item = f64>) -> f64 {
    let (sum, count) = values
        .into_iter()
        .fold((0.0, 0u32), |(sum, count), value| (sum + value, count + 1));
    if count == 0 {
        0.0
    } else {
        sum / f64::from(count)
    }
}

fn mean_of_squares(values: &[f64], around: f64) -> f64 {
    mean(
        values
            .iter()
            .map(|value| (value - around) * (value - around)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-12, "{a} is not {b}");
    }

    #[test]
    fn variance_is_the_populations() {
        // Mean 0.8; squares 0.01 and 0.01; (0.01 + 0.01) / 2 = 0.01.
        close(variance(&[0.7, 0.9]), 0.01);
        close(variance(&[0.7]), 0.0);
    }

    #[test]
    fn priority_worked_by_hand() {
        // d = 150 ms in seconds: (1 + 0.01) * exp(-0.15) = 1.01 * 0.8607079764250578.
        close(
            priority(variance(&[0.7, 0.9]), 150_000, 1e6),
            1.01 * 0.860_707_976_425_057_8,
        );
        // At the deadline exp(0) = 1; 20 ms past it, exp(0.02).
        close(priority(0.0, 0, 1e6), 1.0);
        close(priority(0.0, -20_000, 1e6), 1.020_201_340_026_755_8);
        // In milliseconds the deadline drowns the variance: exp(-150).
        assert!(priority(variance(&[0.0, 1.0]), 150_000, 1e3) < 1e-60);
    }

    #[test]
    fn a_groups_priority_is_the_mean() {
        // (0.9 + 0.6 + 0.3) / 3 = 0.6.
        close(mean([0.9, 0.6, 0.3]), 0.6);
    }
}
