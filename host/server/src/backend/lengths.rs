//! The lengths of requests, counted before they are scheduled: tokens of texts, values of tensors with
//! open dimensions.

use std::path::Path;
use std::sync::Arc;

use switchyard_core::catalog::Catalog;
use switchyard_core::ids::AppId;
use switchyard_executor::{InputTensor, open_values};
use switchyard_models::{Tokenizer, tokenizer_of};

use crate::driver::RowInput;
use crate::ingress::InferError;

/// Largest texts of a call, in bytes together, whose tokens are made on a connection's thread. A
/// tokenizer makes some megabytes of text into tokens per second.
const INLINE_BYTES_MAX: usize = 4 << 10;

/// Fills in the costs of an app's requests.
pub(super) enum LengthMeter {
    Texts(TextMeter),
    Values(ValueMeter),
}

/// Counts the values of tensors with open dimensions.
pub(super) struct ValueMeter {
    catalog: Arc<Catalog>,
    app: AppId,
}

/// Counts the tokens of an app's texts. They stay with the texts, so that a model with the same
/// tokenizer does not make them again.
#[derive(Clone)]
pub(super) struct TextMeter {
    tokenizer: Arc<Tokenizer>,
    catalog: Arc<Catalog>,
    app: AppId,
}

// === impl LengthMeter ===

impl LengthMeter {
    /// None if the profile has no latencies by length.
    pub(super) fn of(
        catalog: &Arc<Catalog>,
        app: AppId,
        variants: &[impl AsRef<Path>],
    ) -> Option<Self> {
        catalog.profile.costs(app)?;
        let texts = TextMeter::of(catalog, app, variants).map(Self::Texts);
        let values = || {
            Self::Values(ValueMeter {
                catalog: Arc::clone(catalog),
                app,
            })
        };
        Some(texts.unwrap_or_else(values))
    }

    /// A request without a length keeps cost 1.
    pub(super) async fn measure(&self, rows: Vec<RowInput>) -> Result<Vec<RowInput>, InferError> {
        match self {
            Self::Texts(texts) => texts.measure(rows).await,
            Self::Values(values) => Ok(values.measure(rows)),
        }
    }
}

// === impl ValueMeter ===

impl ValueMeter {
    fn measure(&self, mut rows: Vec<RowInput>) -> Vec<RowInput> {
        for row in &mut rows {
            match open_values(&row.tensors) {
                0 => {}
                values => row.cost = self.catalog.profile.cost(self.app, values),
            }
        }
        rows
    }
}

// === impl TextMeter ===

impl TextMeter {
    /// None if the app takes no texts.
    fn of(catalog: &Arc<Catalog>, app: AppId, variants: &[impl AsRef<Path>]) -> Option<Self> {
        let mut found = variants.iter().filter_map(|dir| {
            // A variant that cannot be read has no models either, and its load says why.
            tokenizer_of(dir.as_ref()).ok().flatten()
        });
        Some(Self {
            tokenizer: found.next()?,
            catalog: Arc::clone(catalog),
            app,
        })
    }

    /// Fills in the costs of rows. A text without tokens keeps cost 1, and its model refuses it.
    async fn measure(&self, mut rows: Vec<RowInput>) -> Result<Vec<RowInput>, InferError> {
        let bytes: usize = rows.iter().map(text_bytes).sum();
        if bytes <= INLINE_BYTES_MAX {
            self.fill_in(&mut rows);
            return Ok(rows);
        }
        let meter = self.clone();
        let measured = tokio::task::spawn_blocking(move || {
            meter.fill_in(&mut rows);
            rows
        });
        let stopped = |error| InferError::Failed(format!("the tokenizer stopped: {error}"));
        measured.await.map_err(stopped)
    }

    fn fill_in(&self, rows: &mut [RowInput]) {
        for row in rows {
            let mut texts = row.tensors.iter_mut().filter_map(|tensor| match tensor {
                InputTensor::Text(text) => Some(text),
                _ => None,
            });
            let tokens = match self.tokenizer.texts() {
                2 => texts
                    .next()
                    .zip(texts.next())
                    .and_then(|(text, second)| text.tokenise_pair(second, &self.tokenizer).ok()),
                _ => texts
                    .filter_map(|text| text.tokenise(&self.tokenizer).ok())
                    .reduce(u32::saturating_add),
            };
            if let Some(tokens) = tokens {
                row.cost = self.catalog.profile.cost(self.app, tokens);
            }
        }
    }
}

fn text_bytes(row: &RowInput) -> usize {
    let texts = row.tensors.iter().map(|tensor| match tensor {
        InputTensor::Text(text) => text.text.len(),
        _ => 0,
    });
    texts.sum()
}
