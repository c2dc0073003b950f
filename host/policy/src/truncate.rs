//! Bounds on texts that come from a policy.

/// Cuts a text to at most `bytes`, at the end of a character, and marks the cut.
pub(crate) fn truncate(text: &mut String, bytes: usize) {
    if text.len() > bytes {
        text.truncate(text.floor_char_boundary(bytes));
        text.push_str(" [cut]");
    }
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
}
