//! The inputs that a variant reads of a sample.

use std::ops::Range;

use crate::data::Sample;

/// Keeps of each sample the values in `ranges`.
pub(super) fn select(samples: Vec<Sample>, ranges: &[Range<usize>]) -> Vec<Sample> {
    if let [all] = ranges
        && samples
            .first()
            .is_none_or(|first| *all == (0..first.values.len()))
    {
        return samples;
    }
    let select = |sample: Sample| Sample {
        label: sample.label,
        values: ranges
            .iter()
            .flat_map(|range| &sample.values[range.clone()])
            .copied()
            .collect(),
    };
    samples.into_iter().map(select).collect()
}
