//! From text to token ids, with the tokenizer of a `tokenizer.json`.

use std::path::Path;

use candle_core::{Device, Tensor};
use tokenizers::TruncationParams;

use crate::error::ModelError;
use crate::regular_file;

/// Padding after the end of a text that is shorter than another one of its batch.
pub const NO_TOKEN: i64 = -1;

/// A Hugging Face tokenizer that cuts texts to a length.
pub struct Tokenizer {
    inner: tokenizers::Tokenizer,
    max_tokens: usize,
}

// === impl Tokenizer ===

impl Tokenizer {
    /// Reads a `tokenizer.json` for a network that knows ids below `vocabulary`.
    ///
    /// The file's own truncation and padding are ignored: a text is cut to `max_tokens`, special
    /// tokens included, and a batch is as long as its longest text.
    ///
    /// # Errors
    /// The file cannot be read, is no tokenizer, or has ids that the network does not know.
    pub(crate) fn open(
        file: &Path,
        max_tokens: usize,
        vocabulary: usize,
    ) -> Result<Self, ModelError> {
        let bytes = regular_file::read(file).map_err(|source| ModelError::io(file, source))?;
        let refuse = |field: &str, reason: String| ModelError::field(file, field, reason);
        let mut inner = tokenizers::Tokenizer::from_bytes(&bytes)
            .map_err(|error| refuse(".", format!("not a tokenizer: {error}")))?;
        let entries = inner.get_vocab(true);
        if let Some((token, id)) = entries.iter().max_by_key(|(_, id)| **id)
            && *id as usize >= vocabulary
        {
            let reason = format!("`{token}` has id {id}, config.json's vocab_size is {vocabulary}");
            return Err(refuse("model.vocab", reason));
        }
        let truncation = TruncationParams {
            max_length: max_tokens,
            ..TruncationParams::default()
        };
        inner
            .with_truncation(Some(truncation))
            .map_err(|error| refuse("truncation", error.to_string()))?
            .with_padding(None);
        Ok(Self { inner, max_tokens })
    }

    /// Tokens that a text is cut to.
    pub fn max_tokens(&self) -> usize {
        self.max_tokens
    }

    /// The ids of a text, at most [`max_tokens`](Self::max_tokens).
    ///
    /// # Errors
    /// The text has a part for which the tokenizer has no token, not even "unknown".
    pub fn ids(&self, text: &str) -> Result<Vec<u32>, String> {
        let encoding = self.inner.encode_fast(text, true);
        let encoding = encoding.map_err(|error| error.to_string())?;
        Ok(encoding.get_ids().to_vec())
    }
}

/// The ids of several texts as `[texts, tokens of the longest]`, i64, with [`NO_TOKEN`] after the
/// end of a shorter one; at least one token wide.
///
/// # Errors
/// The device has no memory for it.
pub fn stack(texts: &[Vec<u32>], device: &Device) -> candle_core::Result<Tensor> {
    let longest = texts.iter().map(Vec::len).max().unwrap_or_default().max(1);
    let mut ids = vec![NO_TOKEN; texts.len() * longest];
    for (row, text) in ids.chunks_exact_mut(longest).zip(texts) {
        for (slot, id) in row.iter_mut().zip(text) {
            *slot = i64::from(*id);
        }
    }
    Tensor::from_vec(ids, (texts.len(), longest), device)
}
