//! A text of a request, with its tokens where they are known.

use std::sync::Arc;

use switchyard_models::Tokenizer;
use switchyard_models::tokens::{PairToken, TokenizerId};

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
    ids: TokenIds,
}

#[derive(Clone, Debug)]
enum TokenIds {
    Text(Arc<[u32]>),
    /// Of the text together with the second one.
    Pair(Arc<str>, Arc<[PairToken]>),
}

// === impl TextInput ===

impl TextInput {
    /// Makes the tokens. Returns their number.
    ///
    /// # Errors
    /// The tokenizer has no token for a part of the text.
    pub fn tokenise(&mut self, tokenizer: &Tokenizer) -> Result<u32, String> {
        let ids: Arc<[u32]> = tokenizer.ids(&self.text)?.into();
        let count = ids.len();
        Ok(self.keep(tokenizer, TokenIds::Text(ids), count))
    }

    /// Makes the tokens of this text and `second`, which belong to this one. Returns their number.
    ///
    /// # Errors
    /// The tokenizer has no token for a part of a text.
    pub fn tokenise_pair(&mut self, second: &Self, tokenizer: &Tokenizer) -> Result<u32, String> {
        let tokens: Arc<[PairToken]> = tokenizer.pair(&self.text, &second.text)?.into();
        let count = tokens.len();
        let ids = TokenIds::Pair(Arc::clone(&second.text), tokens);
        Ok(self.keep(tokenizer, ids, count))
    }

    fn keep(&mut self, tokenizer: &Tokenizer, ids: TokenIds, count: usize) -> u32 {
        let by = tokenizer.id();
        self.tokens = Some(TextTokens { by, ids });
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    /// The tokens of this tokenizer, made unless they are known.
    pub(crate) fn into_ids(self, tokenizer: &Tokenizer) -> Result<Arc<[u32]>, String> {
        match self.tokens {
            Some(TextTokens {
                by,
                ids: TokenIds::Text(ids),
            }) if by == tokenizer.id() => Ok(ids),
            _ => tokenizer.ids(&self.text).map(Into::into),
        }
    }

    /// The tokens of this tokenizer for this text and `second`, made unless they are known.
    pub(crate) fn into_pair(
        self,
        second: &Self,
        tokenizer: &Tokenizer,
    ) -> Result<Arc<[PairToken]>, String> {
        match self.tokens {
            Some(TextTokens {
                by,
                ids: TokenIds::Pair(with, tokens),
            }) if by == tokenizer.id() && with == second.text => Ok(tokens),
            _ => tokenizer.pair(&self.text, &second.text).map(Into::into),
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
