//! What a policy prints, as lines.

/// One stream's line under way.
#[derive(Default)]
pub(crate) struct Output {
    line: Vec<u8>,
}

impl Output {
    /// Takes bytes and hands on each line that they end. Of a line, `most` bytes and one more are
    /// kept: enough to see that it was longer.
    pub(crate) fn take(&mut self, bytes: &[u8], most: usize, mut hand_on: impl FnMut(String)) {
        for piece in bytes.split_inclusive(|&byte| byte == b'\n') {
            let (text, ends) = match piece.strip_suffix(b"\n") {
                Some(text) => (text, true),
                None => (piece, false),
            };
            let room = (most + 1).saturating_sub(self.line.len());
            self.line.extend_from_slice(&text[..text.len().min(room)]);
            if ends {
                self.end(&mut hand_on);
            }
        }
    }

    /// Hands on what has no end yet, if there is any.
    pub(crate) fn end(&mut self, hand_on: impl FnOnce(String)) {
        if !self.line.is_empty() {
            hand_on(String::from_utf8_lossy(&self.line).into_owned());
            self.line.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(pieces: &[&str], most: usize) -> Vec<String> {
        let (mut output, mut lines) = (Output::default(), Vec::new());
        for piece in pieces {
            output.take(piece.as_bytes(), most, |line| lines.push(line));
        }
        output.end(|line| lines.push(line));
        lines
    }

    #[test]
    fn pieces_become_lines() {
        assert_eq!(lines(&["a", "b\nc\n\nd"], 80), ["ab", "c", "d"]);
        assert_eq!(lines(&["x\n"], 80), ["x"]);
        assert!(lines(&["", "\n"], 80).is_empty());
    }

    #[test]
    fn a_long_line_is_bounded() {
        assert_eq!(lines(&["aaaa", "aaaa\nb"], 3), ["aaaa", "b"]);
    }
}
