//! The stage ranges and batch sizes of a variant that are measured.

use switchyard_core::catalog::{Exit, Variant};
use switchyard_core::ids::ExitId;

use super::bench::StageRange;

/// Stage ranges in the order of a profile. First all stages to each exit, which every policy needs.
/// Then the ranges that price a cut: each single stage after which requests can be parked, and each
/// exit's last stage with its head. At the end, marked `true`, all stages as the sum of single ones.
pub(super) fn ranges_of(variant: &Variant) -> Vec<(StageRange, bool)> {
    let exits = (0u32..).map(ExitId).zip(&variant.exits);
    let to_exit = |(id, exit): (ExitId, &Exit)| StageRange {
        from: 0,
        to: exit.after_stage,
        exit: Some(id),
    };
    let mut ranges: Vec<StageRange> = exits.clone().map(to_exit).collect();
    ranges.extend((0..variant.stages.saturating_sub(1)).map(StageRange::single));
    // For an exit after the first stage, the last stage is all stages.
    let cut = exits.clone().filter(|(_, exit)| exit.after_stage > 1);
    ranges.extend(cut.map(to_exit).map(|range| StageRange {
        from: range.to - 1,
        ..range
    }));
    let sliced = exits.last().map(to_exit).filter(|range| range.to > 1);
    let ranges = ranges.into_iter().map(|range| (range, false));
    ranges.chain(sliced.map(|range| (range, true))).collect()
}

/// The batches up to the variant's largest, always with 1 and the largest, ascending.
pub(super) fn batches_of(variant: &Variant, batches: &[u32]) -> Vec<u32> {
    let mut batches: Vec<u32> = batches
        .iter()
        .copied()
        .filter(|&batch| (1..variant.max_batch).contains(&batch))
        .chain([1, variant.max_batch])
        .collect();
    batches.sort_unstable();
    batches.dedup();
    batches
}

/// A variant with exits after these stages.
#[cfg(test)]
pub(super) fn variant(exits_after: &[u32], max_batch: u32) -> Variant {
    let exits = exits_after.iter().map(|&after_stage| Exit {
        name: format!("exit{after_stage}"),
        after_stage,
        accuracy: 0.9,
        recall: vec![0.9; 2],
        confusion: None,
    });
    Variant {
        name: "v".to_owned(),
        app: switchyard_core::ids::AppId(0),
        stages: exits_after.last().copied().unwrap_or_default(),
        exits: exits.collect(),
        memory_bytes: 1,
        max_batch,
        quality_unknown: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(from: u32, to: u32, exit: Option<u32>) -> StageRange {
        StageRange {
            from,
            to,
            exit: exit.map(ExitId),
        }
    }

    #[test]
    fn all_stages_to_each_exit_come_first_then_single_stages_then_the_sum() {
        assert_eq!(
            ranges_of(&variant(&[1], 8)),
            [(range(0, 1, Some(0)), false)]
        );
        assert_eq!(
            ranges_of(&variant(&[1, 3], 8)),
            [
                (range(0, 1, Some(0)), false),
                (range(0, 3, Some(1)), false),
                (range(0, 1, None), false),
                (range(1, 2, None), false),
                (range(2, 3, Some(1)), false),
                (range(0, 3, Some(1)), true),
            ]
        );
    }

    #[test]
    fn batches_end_with_the_largest() {
        let batches = [1, 2, 4, 8, 16, 32];
        let of_largest = |max_batch| batches_of(&variant(&[1], max_batch), &batches);
        assert_eq!(of_largest(1), [1]);
        assert_eq!(of_largest(6), [1, 2, 4, 6]);
        assert_eq!(of_largest(64), [1, 2, 4, 8, 16, 32, 64]);
    }
}
