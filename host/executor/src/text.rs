//! A text of a request, with its tokens where they are known.

use std::sync::Arc;

use switchyard_models::Tokenizer;
use switchyard_models::tokens::TokenizerId;

/// One text. The host counts its tokens before it is scheduled, and keeps them for the model.
#[derive(Clone, Debug)]
pub struct TextInput {
    /// The text.
    pub text: Arc<str>,
    tokens: Option<TextTokens>,
}

#[derive(Clone, Debug)]
struct TextTokens {
    by: TokenizerId,
    ids: Arc<[u32]>,
}

// === impl TextInput ===

impl TextInput {
    /// Makes the tokens. Returns their number.
    ///
    /// # Errors
    /// The tokenizer has no token for a part of the text.
    pub fn tokenise(&mut self, tokenizer: &Tokenizer) -> Result<u32, String> {
        let ids: Arc<[u32]> = tokenizer.ids(&self.text)?.into();
        let count = u32::try_from(ids.len()).unwrap_or(u32::MAX);
        self.tokens = Some(TextTokens {
            by: tokenizer.id(),
            ids,
        });
        Ok(count)
    }

    /// The tokens of this tokenizer, made unless they are known.
    pub(crate) fn into_ids(self, tokenizer: &Tokenizer) -> Result<Arc<[u32]>, String> {
        match self.tokens {
            Some(known) if known.by == tokenizer.id() => Ok(known.ids),
            _ => tokenizer.ids(&self.text).map(Into::into),
        }
    }
}

impl From<String> for TextInput {
    fn from(text: String) -> Self {
        Self {
            text: text.into(),
            tokens: None,
        }
    }
}

impl From<&str> for TextInput {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

/// Equal texts, whether their tokens are known or not.
impl PartialEq for TextInput {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}
