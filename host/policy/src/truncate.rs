//! Bounds on texts that come from a policy.

/// Cuts a text to at most `bytes`, at the end of a character, and marks the cut.
pub(crate) fn truncate(text: &mut String, bytes: usize) {
    if text.len() > bytes {
        text.truncate(text.floor_char_boundary(bytes));
        text.push_str(" [cut]");
    }
}

/// Makes a text one line of at most `bytes`, so that it cannot look like other log lines: control
/// characters and the separators of lines are written as escapes.
pub(crate) fn one_line(text: &mut String, bytes: usize) {
    if text.len() > bytes {
        truncate(text, bytes);
    }
    // Most texts are printable ASCII.
    let is_plain = text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    if is_plain || !text.contains(breaks_line) {
        return;
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        if breaks_line(letter) {
            escaped.extend(letter.escape_default());
        } else {
            escaped.push(letter);
        }
    }
    truncate(&mut escaped, bytes);
    *text = escaped;
}

/// Control characters, U+2028 and U+2029, which end a line, and the marks that change the direction
/// of a text.
fn breaks_line(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_at_the_end_of_a_character() {
        let mut text = "aé".repeat(4);
        truncate(&mut text, 2);
        assert_eq!(text, "a [cut]");
    }

    #[test]
    fn a_text_cannot_forge_a_second_line() {
        let line = |text: &str| {
            let mut text = text.to_owned();
            one_line(&mut text, 40);
            text
        };
        assert_eq!(line("no\r\n2026 ERROR x"), "no\\r\\n2026 ERROR x");
        assert_eq!(line("\x1b[31mred\u{2028}"), "\\u{1b}[31mred\\u{2028}");
        assert_eq!(line("plain é text"), "plain é text");
        let escaped = line(&"\n".repeat(40));
        assert_eq!(escaped, format!("{} [cut]", "\\n".repeat(20)));
    }
}
