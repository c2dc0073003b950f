//! The length of strings in a body, before a parser copies one of them into a message.

use crate::datatype::TEXT_BYTES_MAX;

/// Longest string in a body, in bytes between its quotes: the longest element of BYTES
/// with every byte written as an escape of six bytes.
const STRING_BYTES_MAX: usize = 6 * TEXT_BYTES_MAX;

/// Checks that no string is longer than 384 KiB. Reads the bytes once, without the grammar: of
/// wrong JSON it may refuse any part or none.
///
/// # Errors
/// The offset of the first longer string.
pub(super) fn check(json: &[u8]) -> Result<(), String> {
    let mut at = 0;
    // The rest of a body that is not longer than the limit has no string that is.
    while json.len() - at > STRING_BYTES_MAX {
        let Some(quote) = json[at..].iter().position(|byte| *byte == b'"') else {
            return Ok(());
        };
        let begin = at + quote + 1;
        let end = end_of_string(json, begin);
        if end - begin > STRING_BYTES_MAX {
            return Err(format!(
                "the string at byte {begin} is longer than {STRING_BYTES_MAX} bytes"
            ));
        }
        at = json.len().min(end + 1);
    }
    Ok(())
}

/// The position of the quote that ends the string, or the end of the body.
fn end_of_string(json: &[u8], begin: usize) -> usize {
    let mut at = begin;
    while let Some(next) = json[at..]
        .iter()
        .position(|byte| matches!(byte, b'"' | b'\\'))
    {
        at += next;
        if json[at] == b'"' {
            return at;
        }
        // The byte after a backslash ends no string.
        at = json.len().min(at + 2);
    }
    json.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_beyond_the_limit_is_found() {
        let body = |length: usize| format!(r#"{{"a":"x\"y","b":"{}","c":3}}"#, "z".repeat(length));
        assert_eq!(check(body(STRING_BYTES_MAX).as_bytes()), Ok(()));
        let found = check(body(STRING_BYTES_MAX + 1).as_bytes()).unwrap_err();
        assert_eq!(found, "the string at byte 17 is longer than 393216 bytes");
        // Many strings, and one that does not end.
        let strings = r#""\\","abc","#.repeat(60_000);
        assert_eq!(check(strings.as_bytes()), Ok(()));
        assert!(check(format!("\"{}", "\\\"".repeat(1 << 19)).as_bytes()).is_err());
    }
}
