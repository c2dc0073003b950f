//! The tokens of a batch as rows: one text after the other, without padding.

use candle_core::{Device, Result, Tensor};
use switchyard_kernels::FeatureMap;

use crate::networks::tokens::NO_TOKEN;

/// Texts of a batch, and where their tokens lie in it.
#[derive(Debug)]
pub(super) struct TextRows {
    /// By text: the rows that are computed. A text without tokens has one, which counts as padding.
    lengths: Vec<usize>,
    /// Tokens that the batch is wide.
    width: usize,
}

/// Consecutive texts of a batch.
pub(super) struct TextSlice<'a> {
    rows: &'a TextRows,
    /// The first one.
    from: usize,
    pub(super) lengths: &'a [usize],
}

// === impl TextRows ===

impl TextRows {
    /// Of token ids `[texts, width]`.
    ///
    /// # Errors
    /// There are no ids, or padding in front of a token.
    pub(super) fn of_ids(ids: &[i64], width: usize) -> Result<Self> {
        Self::new(ids.iter().map(|id| *id > NO_TOKEN), width)
    }

    /// Of activations `[texts, width, channels]`, the last channel the mask.
    ///
    /// # Errors
    /// As [`of_ids`](Self::of_ids).
    pub(super) fn of_activations(values: &[f32], width: usize, channels: usize) -> Result<Self> {
        let mask = values.iter().skip(channels - 1).step_by(channels);
        Self::new(mask.map(|mask| *mask != 0.0), width)
    }

    fn new(is_token: impl Iterator<Item = bool>, width: usize) -> Result<Self> {
        if width == 0 {
            candle_core::bail!("texts of 0 tokens, the model takes at least 1");
        }
        let is_token: Vec<bool> = is_token.collect();
        let mut lengths = Vec::with_capacity(is_token.len() / width);
        for (i, text) in is_token.chunks_exact(width).enumerate() {
            let tokens = text.iter().take_while(|is_token| **is_token).count();
            if text[tokens..].contains(&true) {
                candle_core::bail!("text {i} has padding in front of a token");
            }
            lengths.push(tokens.max(1));
        }
        Ok(Self { lengths, width })
    }

    /// Consecutive texts of at most this many rows together, or one text.
    pub(super) fn slices(&self, most: usize) -> impl Iterator<Item = TextSlice<'_>> {
        let mut from = 0;
        std::iter::from_fn(move || {
            let rest = &self.lengths[from..];
            let mut rows = 0;
            let fits = rest.iter().take_while(|length| {
                rows += *length;
                rows <= most
            });
            let count = fits.count().max(1).min(rest.len());
            let slice = TextSlice {
                rows: self,
                from,
                lengths: &rest[..count],
            };
            from += count;
            (count > 0).then_some(slice)
        })
    }
}

// === impl TextSlice ===

impl TextSlice<'_> {
    /// The ids of each text.
    pub(super) fn ids<'a>(&self, ids: &'a [i64]) -> Vec<&'a [i64]> {
        let texts = ids.chunks_exact(self.rows.width).skip(self.from);
        let texts = texts.zip(self.lengths);
        texts.map(|(text, length)| &text[..*length]).collect()
    }

    /// The hidden states of activations `[texts, width, channels]`.
    pub(super) fn hidden(&self, activations: &[f32], channels: usize) -> FeatureMap {
        let tokens = self.lengths.iter().sum();
        let mut rows = FeatureMap::new([tokens, 1, 1, channels - 1]);
        let mut to = rows.values.chunks_exact_mut((channels - 1).max(1));
        let texts = activations.chunks_exact(self.rows.width * channels);
        for (text, length) in texts.skip(self.from).zip(self.lengths) {
            let tokens = text.chunks_exact(channels).take(*length);
            for (token, to) in tokens.zip(&mut to) {
                to.copy_from_slice(&token[..channels - 1]);
            }
        }
        rows
    }

    /// Writes hidden states to activations `[texts, width, channels]`; padding and masks are left.
    pub(super) fn put(&self, rows: &FeatureMap, activations: &mut [f32], channels: usize) {
        let mut from = rows.values.chunks_exact((channels - 1).max(1));
        let texts = activations.chunks_exact_mut(self.rows.width * channels);
        for (text, length) in texts.skip(self.from).zip(self.lengths) {
            let tokens = text.chunks_exact_mut(channels).take(*length);
            for (token, from) in tokens.zip(&mut from) {
                token[..channels - 1].copy_from_slice(from);
            }
        }
    }
}

/// Activations `[texts, width, channels]` of zeros, with this mask.
pub(super) fn masked(mask: impl Iterator<Item = f32>, count: usize, channels: usize) -> Vec<f32> {
    let mut activations = vec![0.0; count * channels];
    for (token, mask) in activations.chunks_exact_mut(channels).zip(mask) {
        token[channels - 1] = mask;
    }
    activations
}

/// As a tensor of the CPU.
pub(super) fn tensor(activations: Vec<f32>, texts: usize, channels: usize) -> Result<Tensor> {
    let width = activations.len() / (texts * channels).max(1);
    Tensor::from_vec(activations, (texts, width, channels), &Device::Cpu)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn rows_are_taken_out_of_a_batch_and_put_back() {
        // Three texts of 2, 0 and 3 tokens, with one channel and the mask.
        let lengths = [2, 0, 3];
        let activations: Vec<f32> = (0..9)
            .flat_map(|i| [i as f32, f32::from(u8::from(i % 3 < lengths[i / 3]))])
            .collect();
        let rows = TextRows::of_activations(&activations, 3, 2).unwrap();
        assert_eq!(rows.lengths, [2, 1, 3]);
        let slices: Vec<_> = rows.slices(3).collect();
        let found: Vec<_> = slices.iter().map(|slice| slice.lengths).collect();
        assert_eq!(found, [&[2, 1][..], &[3]]);
        let hidden = slices[0].hidden(&activations, 2);
        assert_eq!(*hidden.values, [0.0, 1.0, 3.0]);
        let mask = activations.iter().skip(1).step_by(2).copied();
        let mut back = masked(mask, 9, 2);
        for slice in &slices {
            slice.put(&slice.hidden(&activations, 2), &mut back, 2);
        }
        assert_eq!(back[..8], [0.0, 1.0, 1.0, 1.0, 0.0, 0.0, 3.0, 0.0]);
        assert_eq!(back[12..], [6.0, 1.0, 7.0, 1.0, 8.0, 1.0]);
        assert_eq!(tensor(back, 3, 2).unwrap().dims(), [3, 3, 2]);
    }

    #[test]
    fn a_slice_has_at_least_one_text() {
        let rows = TextRows::of_ids(&[5; 8], 4).unwrap();
        let slices: Vec<_> = rows.slices(1).map(|slice| slice.lengths.len()).collect();
        assert_eq!(slices, [1, 1]);
        let ids = [7, 8, NO_TOKEN, NO_TOKEN, 9, NO_TOKEN, NO_TOKEN, NO_TOKEN];
        let rows = TextRows::of_ids(&ids, 4).unwrap();
        let all = rows.slices(100).next().unwrap();
        assert_eq!(all.ids(&ids), [&[7, 8][..], &[9]]);
    }

    #[test]
    fn padding_in_front_of_a_token_is_refused() {
        let refused = TextRows::of_ids(&[3, NO_TOKEN, 4, 5], 4).unwrap_err();
        assert!(refused.to_string().contains("text 0"), "{refused}");
        assert!(TextRows::of_ids(&[], 0).is_err());
    }
}
