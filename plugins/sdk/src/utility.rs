//! The utility of an answer by its lateness (SneakPeek eq. 2 and section 6.1).

use crate::catalog::Penalty;

/// Utility of an answer (eq. 2): accuracy * (1 - gamma(d, e)).
pub fn utility(penalty: Penalty, accuracy: f64, deadline_us: u64, end_us: u64) -> f64 {
    accuracy * (1.0 - loss(penalty, deadline_us, end_us))
}

/// The penalty gamma(d, e), 0 to 1, of an answer at `end_us` for a deadline `deadline_us`,
/// both counted from the request's arrival. Zero up to the deadline, then with
/// x = (e - d) / d:
/// - step: 1
/// - linear: min(1, x)
/// - sigmoid: min(1, 1 / (1 + (x / (1 - x))^-3)), and 1 from x = 1 on
///
/// The paper prints `max(1, .)` for the last two, which would make every late answer
/// worthless and the penalties exceed 1; its figures show `min`.
pub fn loss(penalty: Penalty, deadline_us: u64, end_us: u64) -> f64 {
    if end_us <= deadline_us {
        return 0.0;
    }
    if deadline_us == 0 {
        return 1.0;
    }
    let x = (end_us - deadline_us) as f64 / deadline_us as f64;
    match penalty {
        Penalty::Step => 1.0,
        Penalty::Linear => x.min(1.0),
        Penalty::Sigmoid if x >= 1.0 => 1.0,
        Penalty::Sigmoid => {
            // (x / (1 - x))^-3, with multiplications only: the same bits on every machine.
            let inverse = (1.0 - x) / x;
            1.0 / (1.0 + inverse * inverse * inverse)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-12, "{a} is not {b}");
    }

    #[test]
    fn nothing_is_lost_up_to_the_deadline() {
        for penalty in [Penalty::Step, Penalty::Linear, Penalty::Sigmoid] {
            close(loss(penalty, 100, 100), 0.0);
            close(utility(penalty, 0.9, 100, 40), 0.9);
            close(loss(penalty, 100, 200), 1.0);
            close(loss(penalty, 100, 1_000), 1.0);
        }
    }

    #[test]
    fn curves_at_points_worked_by_hand() {
        close(loss(Penalty::Step, 100, 101), 1.0);
        // d = 100, e = 125: x = 0.25.
        close(loss(Penalty::Linear, 100, 125), 0.25);
        // (0.25 / 0.75)^-3 = 3^3 = 27; 1 / 28.
        close(loss(Penalty::Sigmoid, 100, 125), 1.0 / 28.0);
        // x = 0.5: (1)^-3 = 1; 1 / 2.
        close(loss(Penalty::Sigmoid, 100, 150), 0.5);
        // x = 0.75: (3)^-3 = 1 / 27; 27 / 28.
        close(loss(Penalty::Sigmoid, 100, 175), 27.0 / 28.0);
        // 0.8 * (1 - 0.25) = 0.6.
        close(utility(Penalty::Linear, 0.8, 100, 125), 0.6);
    }

    #[test]
    fn a_deadline_at_arrival_cannot_be_met_late() {
        close(loss(Penalty::Linear, 0, 1), 1.0);
        close(loss(Penalty::Linear, 0, 0), 0.0);
    }
}
