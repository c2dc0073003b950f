//! Text of a request in messages, cut: a client chooses its length.

use std::borrow::Cow;

/// Characters of a name or value that a message repeats: enough to recognise it.
const NAME_CHARS_MAX: usize = 128;

/// Characters of a whole reason. The longest reasons list the names of a server's apps.
pub(crate) const REASON_CHARS_MAX: usize = 1_024;

/// A name or value of a request, at most 128 characters and `…`.
pub(crate) fn excerpt(text: &str) -> Cow<'_, str> {
    cut(text, NAME_CHARS_MAX)
}

/// At most `chars` characters, and `…` if some are missing.
pub(crate) fn cut(text: &str, chars: usize) -> Cow<'_, str> {
    match text.char_indices().nth(chars) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_between_characters() {
        assert_eq!(cut("Zürich", 6), "Zürich");
        assert_eq!(cut("Zürich", 2), "Zü…");
        assert_eq!(excerpt(&"é".repeat(1_000)).chars().count(), 129);
    }
}
