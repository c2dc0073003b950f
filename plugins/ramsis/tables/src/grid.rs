//! The slack grid of the states (section 4.2).

/// Slacks in microseconds, ascending from 0. Slacks between two points are rounded down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SlackGrid {
    /// Equal steps: FLD.
    Even {
        /// Length of a step, in microseconds.
        step_us: i64,
        /// Number of steps from 0 to the largest slack.
        steps: usize,
    },
    /// MD, and FLD whose steps are no whole microseconds.
    Uneven(Box<[i64]>),
}

// === impl SlackGrid ===

impl SlackGrid {
    /// The grid of ascending slacks from 0.
    pub(crate) fn new(slack_us: &[u64]) -> Self {
        let points: Box<[i64]> = slack_us
            .iter()
            .map(|&us| i64::try_from(us).unwrap_or(i64::MAX))
            .collect();
        match *points {
            [first, second, ..]
                if second > first && points.windows(2).all(|p| p[1] - p[0] == second - first) =>
            {
                Self::Even {
                    step_us: second - first,
                    steps: points.len() - 1,
                }
            }
            _ => Self::Uneven(points),
        }
    }

    /// Number of slacks.
    pub fn points(&self) -> usize {
        match self {
            Self::Even { steps, .. } => steps + 1,
            Self::Uneven(points) => points.len(),
        }
    }

    /// Index of the largest slack that is at most `slack_us`; 0 for a missed deadline.
    pub fn position(&self, slack_us: i64) -> usize {
        if slack_us <= 0 {
            return 0;
        }
        match self {
            Self::Even { step_us, steps } => {
                let position = (slack_us / step_us) as u64;
                (*steps as u64).min(position) as usize
            }
            Self::Uneven(points) => points.partition_point(|&p| p <= slack_us).saturating_sub(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slacks_are_rounded_down() {
        let even = SlackGrid::new(&[0, 1_500, 3_000]);
        assert_eq!(
            even,
            SlackGrid::Even {
                step_us: 1_500,
                steps: 2
            }
        );
        let uneven = SlackGrid::new(&[0, 1_500, 3_001]);
        for grid in [even, uneven] {
            let positions = [i64::MIN, -1, 0, 1_499, 1_500, 2_999, 3_001, i64::MAX]
                .map(|slack| grid.position(slack));
            assert_eq!(positions, [0, 0, 0, 0, 1, 1, 2, 2]);
            assert_eq!(grid.points(), 3);
        }
    }
}
