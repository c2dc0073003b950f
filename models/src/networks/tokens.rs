//! From text to token ids, with the tokenizer of a `tokenizer.json`.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use candle_core::{Device, Tensor};
use tokenizers::{EncodeInput, Encoding, TruncationParams};

use crate::error::ModelError;
use crate::regular_file;

/// Padding after the end of a text that is shorter than another one of its batch.
pub const NO_TOKEN: i64 = -1;

/// The tokenizers in use, so that the variants and workers of a model share one.
static IN_USE: Mutex<Vec<(TokenizerId, Weak<Tokenizer>)>> = Mutex::new(Vec::new());

/// Tokenizers with equal ids make equal tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenizerId {
    file_bytes: usize,
    hash: u64,
    form: TextForm,
}

/// The texts of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextForm {
    /// Texts that are read together: 1, or 2 for a pair.
    pub texts: usize,
    /// Tokens that they are cut to, special ones included; the longer text of a pair first.
    pub max_tokens: usize,
}

/// A token of a pair of texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PairToken {
    /// Its number in the vocabulary.
    pub id: u32,
    /// The text that it belongs to, 0 or 1, as the tokenizer says.
    pub segment: u32,
}

/// A Hugging Face tokenizer that cuts texts to a length.
pub struct Tokenizer {
    id: TokenizerId,
    inner: tokenizers::Tokenizer,
}

// === impl Tokenizer ===

impl Tokenizer {
    /// Reads a `tokenizer.json` for a network that knows ids below `vocabulary`.
    ///
    /// The file's own truncation and padding are ignored: texts are cut to `form.max_tokens`, and a
    /// batch is as long as its longest text.
    ///
    /// # Errors
    /// The file cannot be read, is no tokenizer, or has ids that the network does not know.
    pub(crate) fn open(
        file: &Path,
        form: TextForm,
        vocabulary: usize,
    ) -> Result<Arc<Self>, ModelError> {
        let bytes = regular_file::read(file).map_err(|source| ModelError::io(file, source))?;
        let id = TokenizerId::of(&bytes, form);
        let mut in_use = IN_USE.lock().unwrap_or_else(PoisonError::into_inner);
        in_use.retain(|(_, tokenizer)| tokenizer.strong_count() > 0);
        let known = in_use.iter().find(|(known, _)| *known == id);
        let tokenizer = match known.and_then(|(_, tokenizer)| tokenizer.upgrade()) {
            Some(tokenizer) => tokenizer,
            None => {
                let made = Arc::new(Self::read(file, &bytes, id)?);
                in_use.push((id, Arc::downgrade(&made)));
                made
            }
        };
        drop(in_use);
        tokenizer.check(file, vocabulary)?;
        Ok(tokenizer)
    }

    fn read(file: &Path, bytes: &[u8], id: TokenizerId) -> Result<Self, ModelError> {
        let refuse = |field: &str, reason: String| ModelError::field(file, field, reason);
        // The library panics on some files that are not JSON.
        let parsed = catch_unwind(|| tokenizers::Tokenizer::from_bytes(bytes));
        let parsed = parsed.map_err(|_| refuse(".", "not a tokenizer".to_owned()))?;
        let mut inner = parsed.map_err(|error| refuse(".", format!("not a tokenizer: {error}")))?;
        let truncation = TruncationParams {
            max_length: id.form.max_tokens,
            ..TruncationParams::default()
        };
        inner
            .with_truncation(Some(truncation))
            .map_err(|error| refuse("truncation", error.to_string()))?
            .with_padding(None);
        Ok(Self { id, inner })
    }

    /// Refuses ids that the network does not know, and a file whose parts contradict each other.
    fn check(&self, file: &Path, vocabulary: usize) -> Result<(), ModelError> {
        let tried = match self.texts() {
            1 => self.ids("a").map(drop),
            _ => self.pair("a", "a").map(drop),
        };
        tried.map_err(|reason| ModelError::field(file, ".", reason))?;
        let entries = self.inner.get_vocab(true);
        match entries.iter().max_by_key(|(_, id)| **id) {
            Some((token, id)) if *id as usize >= vocabulary => {
                let reason =
                    format!("`{token}` has id {id}, config.json's vocab_size is {vocabulary}");
                Err(ModelError::field(file, "model.vocab", reason))
            }
            _ => Ok(()),
        }
    }

    /// Its identity.
    pub fn id(&self) -> TokenizerId {
        self.id
    }

    /// Tokens that a text is cut to.
    pub fn max_tokens(&self) -> usize {
        self.id.form.max_tokens
    }

    /// Texts that make one request: 1, or 2 for a pair.
    pub fn texts(&self) -> usize {
        self.id.form.texts
    }

    /// Tokens of a request whose texts are empty: the special ones around them.
    pub fn special_tokens(&self) -> usize {
        let count = match self.texts() {
            1 => self.ids("").map(|ids| ids.len()),
            _ => self.pair("", "").map(|tokens| tokens.len()),
        };
        count.unwrap_or_default()
    }

    /// The ids of a text, at most [`max_tokens`](Self::max_tokens).
    ///
    /// # Errors
    /// The text has a part for which the tokenizer has no token, not even "unknown".
    pub fn ids(&self, text: &str) -> Result<Vec<u32>, String> {
        Ok(self.encoded(text.into())?.get_ids().to_vec())
    }

    /// The tokens of two texts, at most [`max_tokens`](Self::max_tokens) together.
    ///
    /// # Errors
    /// As [`ids`](Self::ids).
    pub fn pair(&self, first: &str, second: &str) -> Result<Vec<PairToken>, String> {
        let encoding = self.encoded((first, second).into())?;
        let tokens = encoding.get_ids().iter().zip(encoding.get_type_ids());
        let token = |(&id, &segment)| PairToken { id, segment };
        Ok(tokens.map(token).collect())
    }

    /// The library panics on some files whose parts contradict each other.
    fn encoded(&self, input: EncodeInput<'_>) -> Result<Encoding, String> {
        let encode = || self.inner.encode_fast(input, true);
        match catch_unwind(AssertUnwindSafe(encode)) {
            Ok(encoding) => encoding.map_err(|error| error.to_string()),
            Err(_) => Err("the parts of the tokenizer's file contradict each other".to_owned()),
        }
    }
}

// === impl TokenizerId ===

impl TokenizerId {
    fn of(bytes: &[u8], form: TextForm) -> Self {
        let mut hasher = DefaultHasher::new();
        bytes.hash(&mut hasher);
        Self {
            file_bytes: bytes.len(),
            hash: hasher.finish(),
            form,
        }
    }
}

/// The ids of several texts as `[texts, tokens of the longest]`, i64, with [`NO_TOKEN`] after the
/// end of a shorter one; at least one token wide.
///
/// # Errors
/// The device has no memory for it.
pub fn stack<I: AsRef<[u32]>>(texts: &[I], device: &Device) -> candle_core::Result<Tensor> {
    let longest = longest(texts.iter().map(|text| text.as_ref().len()));
    let mut ids = vec![NO_TOKEN; texts.len() * longest];
    for (row, text) in ids.chunks_exact_mut(longest).zip(texts) {
        for (slot, id) in row.iter_mut().zip(text.as_ref()) {
            *slot = i64::from(*id);
        }
    }
    Tensor::from_vec(ids, (texts.len(), longest), device)
}

/// The tokens of several pairs as `[pairs, tokens of the longest, 2]`, i64: the id, or [`NO_TOKEN`]
/// after the end of a shorter pair, and the segment.
///
/// # Errors
/// The device has no memory for it.
pub fn stack_pairs<I: AsRef<[PairToken]>>(
    pairs: &[I],
    device: &Device,
) -> candle_core::Result<Tensor> {
    let longest = longest(pairs.iter().map(|pair| pair.as_ref().len()));
    let mut tokens = Vec::with_capacity(pairs.len() * longest * 2);
    for pair in pairs {
        let pair = pair.as_ref();
        for token in pair {
            tokens.extend([i64::from(token.id), i64::from(token.segment)]);
        }
        for _ in pair.len()..longest {
            tokens.extend([NO_TOKEN, 0]);
        }
    }
    Tensor::from_vec(tokens, (pairs.len(), longest, 2), device)
}

/// At least 1.
fn longest(lengths: impl Iterator<Item = usize>) -> usize {
    lengths.max().unwrap_or_default().max(1)
}
