//! Cutting a chain of units into stages of similar cost.
//!
//! A unit cannot be cut, for example a residual block. Between stages a batch may be
//! preempted and parked, so stages should take similar time, and every exit must lie between two.

use std::ops::Range;

use candle_core::Result;

use super::staged::no_stages;

/// One stage of a network.
pub(crate) struct StageRange {
    /// Its units.
    pub(crate) units: Range<usize>,
    /// Most activations per input at any point of it.
    pub(crate) width: usize,
}

/// Neighbouring stages as one.
///
/// # Errors
/// One of them does not exist, or there is none.
pub(crate) fn joined(all: &[StageRange], stages: Range<usize>) -> Result<StageRange> {
    match all.get(stages.clone()) {
        Some([first, rest @ ..]) => Ok(StageRange {
            units: first.units.start..rest.last().unwrap_or(first).units.end,
            width: rest
                .iter()
                .map(|stage| stage.width)
                .fold(first.width, usize::max),
        }),
        _ => no_stages(&stages, all.len()),
    }
}

/// The stages that end at `ends`, of units with `widths` (most activations per input).
pub(crate) fn stage_ranges(ends: &[usize], widths: &[usize]) -> Vec<StageRange> {
    let starts = std::iter::once(0).chain(ends.iter().copied());
    starts
        .zip(ends)
        .map(|(start, &end)| StageRange {
            width: widths[start..end].iter().copied().fold(1, usize::max),
            units: start..end,
        })
        .collect()
}

/// Groups units with costs `costs` (multiply-adds, or any other measure of time) into stages.
///
/// `exits` holds, for each exit in increasing order, how many units run before it; the last one
/// is all of them. Returns for each stage where its units end. There are at least `stages` stages
/// unless there are fewer units than that, and every exit ends one.
pub(crate) fn stage_ends(costs: &[f64], exits: &[usize], stages: usize) -> Vec<usize> {
    let starts = std::iter::once(0).chain(exits.iter().copied());
    let segments: Vec<&[f64]> = starts
        .zip(exits)
        .map(|(start, &end)| &costs[start..end])
        .collect();
    let mut ends = Vec::new();
    let mut start = 0;
    for (segment, parts) in segments.iter().zip(shares(&segments, stages)) {
        ends.extend(cut(segment, parts).into_iter().map(|end| start + end));
        start += segment.len();
    }
    ends
}

/// For each exit, how many stages run before it, if `exits` units run before it and stages end at
/// `ends`.
pub(crate) fn exits_after(ends: &[usize], exits: &[usize]) -> Vec<usize> {
    let stages = |units: &usize| ends.partition_point(|end| end <= units);
    exits.iter().map(stages).collect()
}

/// Stages per segment: in proportion to its cost, at least one, at most one per unit.
fn shares(segments: &[&[f64]], stages: usize) -> Vec<usize> {
    let cost = |segment: &[f64]| segment.iter().sum::<f64>();
    let total: f64 = segments.iter().map(|segment| cost(segment)).sum();
    let mut parts: Vec<usize> = segments
        .iter()
        .map(|segment| {
            let share = cost(segment) / total.max(1.0) * stages as f64;
            (share.round() as usize).clamp(1, segment.len())
        })
        .collect();
    while parts.iter().sum::<usize>() < stages {
        // One more for the segment whose stages cost most.
        let each = |i: usize| cost(segments[i]) / parts[i] as f64;
        let Some(most) = (0..segments.len())
            .filter(|&i| parts[i] < segments[i].len())
            .max_by(|&a, &b| each(a).total_cmp(&each(b)))
        else {
            break;
        };
        parts[most] += 1;
    }
    parts
}

/// Ends of `parts` runs of units whose costs are as near to each other as single cuts allow.
fn cut(costs: &[f64], parts: usize) -> Vec<usize> {
    let total: f64 = costs.iter().sum();
    let mut ends = Vec::with_capacity(parts);
    let (mut end, mut sum) = (0, 0.0);
    for part in 1..=parts {
        let goal = total * part as f64 / parts as f64;
        // A unit for this part, and one for each part still to come.
        let (first, last) = (end + 1, costs.len() - (parts - part));
        while end < first || (end < last && sum + costs[end] / 2.0 <= goal) {
            sum += costs[end];
            end += 1;
        }
        if part == parts {
            end = costs.len();
        }
        ends.push(end);
    }
    ends
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_units_are_shared_evenly() {
        assert_eq!(
            stage_ends(&[1.0; 16], &[16], 8),
            [2, 4, 6, 8, 10, 12, 14, 16]
        );
        assert_eq!(stage_ends(&[5.0; 4], &[4], 3).len(), 3);
    }

    #[test]
    fn every_exit_ends_a_stage() {
        let ends = stage_ends(&[3., 1., 1., 1., 9., 2., 2.], &[1, 4, 7], 5);
        assert!(ends.len() >= 5, "{ends:?}");
        for exit in [1, 4, 7] {
            assert!(ends.contains(&exit), "{ends:?}");
        }
        assert!(ends.is_sorted_by(|a, b| a < b), "{ends:?}");
    }

    #[test]
    fn there_are_no_more_stages_than_units() {
        assert_eq!(stage_ends(&[1., 100., 1.], &[2, 3], 50), [1, 2, 3]);
        assert_eq!(stage_ends(&[0., 0.], &[2], 1), [2]);
    }

    #[test]
    fn costs_decide_where_to_cut() {
        // 4 + 4, 8, 8: no other cut into three is as even.
        assert_eq!(stage_ends(&[4., 4., 8., 8.], &[4], 3), [2, 3, 4]);
    }
}
