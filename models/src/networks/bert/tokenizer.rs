//! The tokenizer of an encoder.

use std::path::Path;
use std::sync::Arc;

use super::config::BertConfig;
use super::spec::BertSpec;
use crate::error::ModelError;
use crate::networks::tokens::{TextForm, Tokenizer};

/// Opens the tokenizer next to a model's `config.json`.
///
/// # Errors
/// One of the two files cannot be read, or they contradict each other or the card.
pub(crate) fn open(spec: &BertSpec, config: &Path) -> Result<Arc<Tokenizer>, ModelError> {
    let vocabulary = BertConfig::read(config, spec)?.vocab_size;
    let file = config.with_file_name("tokenizer.json");
    let form = TextForm {
        texts: spec.texts,
        max_tokens: spec.max_tokens,
    };
    Tokenizer::open(&file, form, vocabulary)
}
