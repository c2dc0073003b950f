//! A position in a JSON text, and the steps of a reader that gives up on anything unusual.

/// Most arrays and objects inside each other. Real tensors have four or five.
pub(super) const DEPTH_MAX: usize = 16;

/// Longest array or object that serde reads inside this reader, in bytes: parameters and outputs
/// are short, and a longer one may hold a string that serde would repeat in its message.
const NESTED_BYTES_MAX: usize = 64 << 10;

/// The position in a text. Every step returns `None` on unusual or wrong JSON.
pub(super) struct JsonCursor<'a> {
    pub(super) json: &'a [u8],
    pub(super) at: usize,
}

impl<'a> JsonCursor<'a> {
    pub(super) const fn new(json: &'a [u8]) -> Self {
        Self { json, at: 0 }
    }

    #[inline]
    pub(super) fn peek(&self) -> Option<u8> {
        self.json.get(self.at).copied()
    }

    #[inline]
    pub(super) fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
    }

    /// Skips white space, and `byte` if it is next.
    #[inline]
    pub(super) fn takes(&mut self, byte: u8) -> bool {
        self.skip_space();
        let next = self.peek() == Some(byte);
        self.at += usize::from(next);
        next
    }

    #[inline]
    pub(super) fn expect(&mut self, byte: u8) -> Option<()> {
        self.takes(byte).then_some(())
    }

    /// Whether only white space is left.
    pub(super) fn is_at_end(&mut self) -> bool {
        self.skip_space();
        self.at == self.json.len()
    }

    /// Walks an object of at least one member; `member` reads the value of its key.
    pub(super) fn members(
        &mut self,
        mut member: impl FnMut(&mut Self, &[u8]) -> Option<()>,
    ) -> Option<()> {
        self.expect(b'{')?;
        loop {
            let key = self.quoted()?;
            self.expect(b':')?;
            member(self, key)?;
            if !self.takes(b',') {
                return self.expect(b'}');
            }
        }
    }

    /// Walks an array of at least one element; `element` reads it.
    pub(super) fn elements(
        &mut self,
        mut element: impl FnMut(&mut Self) -> Option<()>,
    ) -> Option<()> {
        self.expect(b'[')?;
        loop {
            element(self)?;
            if !self.takes(b',') {
                return self.expect(b']');
            }
        }
    }

    /// A string without escapes.
    pub(super) fn string(&mut self) -> Option<&'a str> {
        str::from_utf8(self.quoted()?).ok()
    }

    /// The bytes of a string without escapes, which need not be UTF-8.
    fn quoted(&mut self) -> Option<&'a [u8]> {
        self.expect(b'"')?;
        let from = self.at;
        while let Some(eight) = self.json.get(self.at..)?.first_chunk()
            && !has_special(*eight)
        {
            self.at += 8;
        }
        loop {
            match self.peek()? {
                b'"' => break,
                b'\\' | 0..0x20 => return None,
                _ => self.at += 1,
            }
        }
        let text = &self.json[from..self.at];
        self.at += 1;
        Some(text)
    }

    /// `true` or `false`.
    pub(super) fn boolean(&mut self) -> Option<bool> {
        self.skip_space();
        let rest = self.json.get(self.at..)?;
        let value = rest.starts_with(b"true");
        if !value && !rest.starts_with(b"false") {
            return None;
        }
        self.at += if value { 4 } else { 5 };
        Some(value)
    }

    /// The text of an array or object. Only its end is found here; serde must read the text.
    pub(super) fn nested_text(&mut self) -> Option<&'a [u8]> {
        self.skip_space();
        let from = self.at;
        let mut depth = 0_usize;
        loop {
            match self.peek()? {
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth = depth.checked_sub(1)?,
                b'"' => {
                    self.quoted()?;
                    continue;
                }
                _ => {}
            }
            // Neither an array nor an object: where it ends depends on its type.
            let length = self.at - from;
            if length == 0 && depth == 0 || depth > DEPTH_MAX || length > NESTED_BYTES_MAX {
                return None;
            }
            self.at += 1;
            if depth == 0 {
                return Some(&self.json[from..self.at]);
            }
        }
    }
}

/// Whether one of eight bytes ends a string, begins an escape, or is a control character.
#[inline]
pub(crate) fn has_special(bytes: [u8; 8]) -> bool {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = 0x8080_8080_8080_8080;
    let text = u64::from_le_bytes(bytes);
    let quotes = text ^ (ONES * b'"' as u64);
    let escapes = text ^ (ONES * b'\\' as u64);
    // A byte below the subtracted one borrows, which sets its high bit.
    let found = (quotes.wrapping_sub(ONES) & !quotes)
        | (escapes.wrapping_sub(ONES) & !escapes)
        | (text.wrapping_sub(ONES * 0x20) & !text);
    found & HIGHS != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_bytes_are_found_at_every_place() {
        for byte in 0..=u8::MAX {
            let special = matches!(byte, b'"' | b'\\' | 0..0x20);
            for place in 0..8 {
                for around in [b' ', b'#', b'a', 0x7f, 0x80, 0xff] {
                    let mut bytes = [around; 8];
                    bytes[place] = byte;
                    assert_eq!(has_special(bytes), special, "{bytes:?}");
                }
            }
        }
    }

    #[test]
    fn a_string_of_any_length_ends_at_its_quote() {
        for length in 0..40 {
            let text = "é".repeat(length / 2) + &"x".repeat(length % 2);
            let json = format!("\"{text}\"rest");
            let mut cursor = JsonCursor::new(json.as_bytes());
            assert_eq!(cursor.string(), Some(&*text));
            assert_eq!(cursor.peek(), Some(b'r'));
            let open = format!("\"{text}");
            assert_eq!(JsonCursor::new(open.as_bytes()).string(), None);
        }
    }
}
