//! Changes of the phase between two arrivals. Each of them is drawn and kept until the next
//! arrival, so a process that hardly ever has one is refused.

use super::error::WorkloadError;

/// Most phases of a Markovian process: its transitions are a matrix.
const PHASES_MAX: usize = 256;

/// Most changes of the phase between two arrivals, on average.
const CHANGES_MAX: f64 = 10_000.0;

/// Phases in a cycle, each with the arrivals that it has on average.
pub(super) fn check_cycle(
    part: &str,
    arrivals: impl ExactSizeIterator<Item = f64>,
) -> Result<(), WorkloadError> {
    let phases = arrivals.len() as f64;
    check_changes(part, phases / arrivals.sum::<f64>())
}

/// Phases with the rates of their transitions, `d0` without an arrival and `d1` with one. The
/// diagonal of `d0` is not read.
pub(super) fn check_matrices(
    part: &str,
    d0: &[Vec<f64>],
    d1: &[Vec<f64>],
) -> Result<(), WorkloadError> {
    let silent = |i: usize, j: usize| if i == j { 0.0 } else { d0[i][j] };
    let phases = d0.len();
    // Per phase the equation `x[i] - sum of share[i][j] * x[j] = sum of share[i][j]` of the mean
    // number of changes before an arrival; its right side is the last column.
    let row = |i: usize| -> Vec<f64> {
        let moves: f64 = (0..phases).map(|j| silent(i, j)).sum();
        let all = moves + d1[i].iter().sum::<f64>();
        let mut row: Vec<f64> = (0..phases).map(|j| -silent(i, j) / all).collect();
        row[i] = 1.0;
        row.push(moves / all);
        row
    };
    let changes = solve((0..phases).map(row).collect());
    let most = changes.into_iter().fold(0.0, most);
    check_changes(part, most)
}

pub(super) fn check_phases(part: &str, phases: usize) -> Result<(), WorkloadError> {
    if phases <= PHASES_MAX {
        return Ok(());
    }
    let reason = format!("must be at most {PHASES_MAX}, not {phases}");
    Err(WorkloadError::value(format!("{part}.phases"), reason))
}

fn check_changes(part: &str, changes: f64) -> Result<(), WorkloadError> {
    if changes <= CHANGES_MAX {
        return Ok(());
    }
    let reason = format!(
        "the phase must change at most {CHANGES_MAX} times between two arrivals on average; \
         raise the rates of arrivals or lower those of changes"
    );
    Err(WorkloadError::value(part.to_owned(), reason))
}

/// The larger one; a number that is none counts as the largest.
fn most(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() || b < 0.0 {
        return f64::INFINITY;
    }
    a.max(b)
}

/// Gaussian elimination. Rows are diagonally dominant, so no pivot is looked for; a phase from
/// which no arrival can be reached gives infinity or no number.
fn solve(mut rows: Vec<Vec<f64>>) -> Vec<f64> {
    let last = rows.len();
    for i in 0..last {
        let (above, below) = rows.split_at_mut(i + 1);
        let pivot = &above[i];
        for row in below {
            let factor = row[i] / pivot[i];
            if factor != 0.0 {
                for (entry, &by) in row[i..].iter_mut().zip(&pivot[i..]) {
                    *entry -= factor * by;
                }
            }
        }
    }
    let mut x = vec![0.0; last];
    for i in (0..last).rev() {
        let known: f64 = (i + 1..last).map(|j| rows[i][j] * x[j]).sum();
        x[i] = (rows[i][last] - known) / rows[i][i];
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_changes_before_an_arrival_follow_from_the_matrices() {
        // From phase 0: one change with certainty. From phase 1: 3 of 4 transitions arrive, the
        // others go back. x0 = 1 + x1, x1 = (1 + x0) / 4.
        let rows = vec![vec![1.0, -1.0, 1.0], vec![-0.25, 1.0, 0.25]];
        let x = solve(rows);
        assert!((x[0] - 5.0 / 3.0).abs() < 1e-12, "{x:?}");
        assert!((x[1] - 2.0 / 3.0).abs() < 1e-12, "{x:?}");
    }

    #[test]
    fn phases_that_never_reach_an_arrival_are_refused() {
        let d0 = [
            vec![-1.0, 1.0, 0.0],
            vec![1.0, -1.0, 0.0],
            vec![0.0, 0.0, -1.0],
        ];
        let d1 = [vec![0.0; 3], vec![0.0; 3], vec![0.0, 0.0, 1.0]];
        let error = check_matrices("map", &d0, &d1).unwrap_err().to_string();
        assert!(error.contains("at most 10000 times"), "{error}");
    }

    #[test]
    fn the_workload_of_the_router_is_accepted() {
        // PPO router section 4: 180/s and 10/s, left at 0.036 and 0.002 per second.
        check_cycle("mmpp", [180.0 / 0.036, 10.0 / 0.002].into_iter()).unwrap();
    }
}
