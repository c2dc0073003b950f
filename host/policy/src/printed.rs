//! The output that a policy prints, split into lines.

/// The unfinished line of one stream.
#[derive(Default)]
pub(crate) struct PrintedLines {
    line: Vec<u8>,
}

impl PrintedLines {
    /// Takes bytes and passes each line that they end to `write`. Keeps `bytes_max` bytes of a line
    /// and one more, which shows that the line was longer.
    pub(crate) fn take(&mut self, bytes: &[u8], bytes_max: usize, mut write: impl FnMut(String)) {
        for piece in bytes.split_inclusive(|&byte| byte == b'\n') {
            let (text, ends) = match piece.strip_suffix(b"\n") {
                Some(text) => (text, true),
                None => (piece, false),
            };
            let room = (bytes_max + 1).saturating_sub(self.line.len());
            self.line.extend_from_slice(&text[..text.len().min(room)]);
            if ends {
                self.end(&mut write);
            }
        }
    }

    /// Passes the unfinished line to `write`, if there is one.
    pub(crate) fn end(&mut self, write: impl FnOnce(String)) {
        if !self.line.is_empty() {
            write(String::from_utf8_lossy(&self.line).into_owned());
            self.line.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(pieces: &[&str], bytes_max: usize) -> Vec<String> {
        let (mut output, mut lines) = (PrintedLines::default(), Vec::new());
        for piece in pieces {
            output.take(piece.as_bytes(), bytes_max, |line| lines.push(line));
        }
        output.end(|line| lines.push(line));
        lines
    }

    #[test]
    fn lines_are_joined_from_pieces() {
        assert_eq!(lines(&["a", "b\nc\n\nd"], 80), ["ab", "c", "d"]);
        assert_eq!(lines(&["x\n"], 80), ["x"]);
        assert!(lines(&["", "\n"], 80).is_empty());
    }

    #[test]
    fn a_long_line_is_cut() {
        assert_eq!(lines(&["aaaa", "aaaa\nb"], 3), ["aaaa", "b"]);
    }
}
