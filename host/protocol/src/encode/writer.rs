//! JSON text written piece by piece.
//!
//! The keys of an answer are known: serde would escape each of them anew.

use serde::Serialize;

use crate::json::has_special;

/// Appends to a text.
pub(super) struct JsonWriter<'a>(pub(super) &'a mut Vec<u8>);

impl JsonWriter<'_> {
    /// Text that is JSON already.
    pub(super) fn raw(&mut self, json: &str) -> &mut Self {
        self.0.extend_from_slice(json.as_bytes());
        self
    }

    /// A string.
    pub(super) fn text(&mut self, text: &str) -> &mut Self {
        if is_plain(text.as_bytes()) {
            return self.raw("\"").raw(text).raw("\"");
        }
        self.value(text)
            .expect("a string is JSON, and a vector takes it");
        self
    }

    pub(super) fn number(&mut self, number: u64) -> &mut Self {
        self.value(&number)
            .expect("a whole number is JSON, and a vector takes it");
        self
    }

    pub(super) fn boolean(&mut self, value: bool) -> &mut Self {
        self.raw(if value { "true" } else { "false" })
    }

    /// Any value, as serde writes it.
    ///
    /// # Errors
    /// The value has no JSON form.
    pub(super) fn value<T: Serialize + ?Sized>(&mut self, value: &T) -> serde_json::Result<()> {
        serde_json::to_writer(&mut *self.0, value)
    }
}

/// Whether a string has no character that JSON escapes.
fn is_plain(text: &[u8]) -> bool {
    let (eights, rest) = text.as_chunks::<8>();
    let mut last = [b' '; 8];
    last[..rest.len()].copy_from_slice(rest);
    !has_special(last) && !eights.iter().any(|eight| has_special(*eight))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> String {
        let mut bytes = Vec::new();
        JsonWriter(&mut bytes).text(text);
        String::from_utf8(bytes).expect("UTF-8")
    }

    #[test]
    fn a_text_is_written_as_serde_writes_it() {
        for code in 0..0x180 {
            let character = char::from_u32(code).expect("no surrogate");
            for text in [
                format!("{character}"),
                format!("0123456{character}"),
                format!("01234567{character}9"),
            ] {
                assert_eq!(
                    written(&text),
                    serde_json::to_string(&text).expect("a string")
                );
            }
        }
    }
}
