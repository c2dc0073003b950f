//! Batches of texts of different lengths, without computing on their padding.
//!
//! A batch is as wide as its longest text. Its texts are computed in groups of similar length, each
//! only as wide as its own longest text.

use candle_core::{Device, Result, Tensor};

/// Tokens whose computation takes as long as the start of one more group: below it a group costs
/// more than the padding that it avoids.
const GROUP_TOKENS: usize = 16;

/// Texts that are computed together.
#[derive(Debug, PartialEq, Eq)]
struct LengthGroup {
    /// Positions in the batch.
    rows: Vec<u32>,
    /// Tokens of the longest.
    tokens: usize,
}

/// Computes `[texts, tokens, ...]` group by group, and puts the results, padded with zeros, back in
/// the order of the batch.
///
/// `lengths` has the tokens of each text.
pub(super) fn in_length_groups(
    x: &Tensor,
    lengths: &[usize],
    compute: impl Fn(&Tensor) -> Result<Tensor>,
) -> Result<Tensor> {
    let width = x.dim(1)?;
    let groups = groups(lengths);
    if let [all] = groups.as_slice()
        && all.tokens == width
    {
        return compute(x);
    }
    let parts = groups.iter().map(|group| {
        let rows = index(&group.rows, x.device())?;
        let texts = x.index_select(&rows, 0)?.narrow(1, 0, group.tokens)?;
        let computed = compute(&texts.contiguous()?)?;
        computed.pad_with_zeros(1, 0, width - group.tokens)
    });
    let parts = Tensor::cat(&parts.collect::<Result<Vec<_>>>()?, 0)?;
    let computed_rows = groups.iter().flat_map(|group| &group.rows);
    let mut place = vec![0; lengths.len()];
    for (at, &row) in (0..).zip(computed_rows) {
        place[row as usize] = at;
    }
    parts.index_select(&index(&place, x.device())?, 0)
}

fn index(rows: &[u32], device: &Device) -> Result<Tensor> {
    Tensor::from_slice(rows, rows.len(), device)
}

/// The groups with the fewest tokens, each group counted as [`GROUP_TOKENS`] more.
fn groups(lengths: &[usize]) -> Vec<LengthGroup> {
    let mut rows: Vec<u32> = (0..lengths.len() as u32).collect();
    let tokens = |row: u32| lengths[row as usize].max(1);
    rows.sort_by_key(|&row| tokens(row));
    // By number of the shortest texts: the least cost, and where the last group of it begins.
    let mut best = vec![(0, 0); rows.len() + 1];
    for end in 1..=rows.len() {
        let longest = tokens(rows[end - 1]);
        let ways = (0..end).map(|from| {
            let (before, _) = best[from];
            (before + (end - from) * longest + GROUP_TOKENS, from)
        });
        best[end] = ways.min().unwrap_or_default();
    }
    let mut groups = Vec::new();
    let mut end = rows.len();
    while end > 0 {
        let (_, from) = best[end];
        groups.push(LengthGroup {
            rows: rows[from..end].to_vec(),
            tokens: tokens(rows[end - 1]),
        });
        end = from;
    }
    groups
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn sizes(lengths: &[usize]) -> Vec<(usize, usize)> {
        let groups = groups(lengths);
        groups.iter().map(|g| (g.rows.len(), g.tokens)).collect()
    }

    #[test]
    fn a_long_text_is_computed_apart_and_similar_ones_together() {
        assert_eq!(sizes(&[9, 10, 256, 11]), [(1, 256), (3, 11)]);
        assert_eq!(sizes(&[30, 31, 32, 33]), [(4, 33)]);
        assert_eq!(sizes(&[7]), [(1, 7)]);
        assert_eq!(sizes(&[0, 0]), [(2, 1)]);
    }

    #[test]
    fn results_come_back_in_order_and_padded() {
        let x = Tensor::from_vec((0..4 * 64).collect::<Vec<u32>>(), (4, 64), &Device::Cpu).unwrap();
        let widths = std::sync::Mutex::new(Vec::new());
        let doubled = in_length_groups(&x, &[2, 64, 3, 1], |texts| {
            widths.lock().unwrap().push(texts.dims().to_vec());
            texts * 2.0
        });
        let doubled = doubled.unwrap().to_vec2::<u32>().unwrap();
        assert_eq!(*widths.lock().unwrap(), [[1, 64], [3, 3]]);
        assert_eq!(doubled[0][..4], [0, 2, 4, 0]);
        assert_eq!(doubled[1][63], 2 * (64 + 63));
        assert_eq!(doubled[3][..4], [384, 386, 388, 0]);
    }
}
