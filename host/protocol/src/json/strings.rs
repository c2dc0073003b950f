//! The length of strings in a body, before a parser copies one of them into a message.

use crate::datatype::TEXT_BYTES_MAX;

/// Longest string in a body, in bytes between its quotes: the longest text with every byte written as an
/// escape of six bytes. Longer ones may be images.
const STRING_BYTES_MAX: usize = 6 * TEXT_BYTES_MAX;

/// Checks that no string is longer than 384 KiB, or than `image_bytes_max` in base64. Reads the bytes once,
/// without the grammar: of wrong JSON it may refuse any part or none.
///
/// # Errors
/// The offset of the first longer string.
pub(super) fn check(json: &[u8], image_bytes_max: usize) -> Result<(), String> {
    let mut at = 0;
    // The rest of a body that is not longer than the limit has no string that is.
    while json.len() - at > STRING_BYTES_MAX {
        let Some(quote) = json[at..].iter().position(|byte| *byte == b'"') else {
            return Ok(());
        };
        let begin = at + quote + 1;
        let end = end_of_string(json, begin);
        let string = &json[begin..end];
        if string.len() > STRING_BYTES_MAX && !is_image(string, image_bytes_max) {
            let reason =
                format!("the string at byte {begin} is longer than {STRING_BYTES_MAX} bytes");
            return Err(match image_bytes_max > STRING_BYTES_MAX {
                true => format!("{reason}, and no base64 of at most {image_bytes_max}"),
                false => reason,
            });
        }
        at = json.len().min(end + 1);
    }
    Ok(())
}

/// Whether it may be an image. A message that repeats it is about as long as it is.
fn is_image(string: &[u8], bytes_max: usize) -> bool {
    // A `/` may be escaped.
    let is_base64 = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/=\\".contains(byte);
    string.len() <= bytes_max && string.iter().all(is_base64)
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
        let check = |json: &str| check(json.as_bytes(), 0);
        assert_eq!(check(&body(STRING_BYTES_MAX)), Ok(()));
        let found = check(&body(STRING_BYTES_MAX + 1)).unwrap_err();
        assert_eq!(found, "the string at byte 17 is longer than 393216 bytes");
        // Many strings, and one that does not end.
        let strings = r#""\\","abc","#.repeat(60_000);
        assert_eq!(check(&strings), Ok(()));
        assert!(check(&format!("\"{}", "\\\"".repeat(1 << 19))).is_err());
    }

    #[test]
    fn an_image_may_be_longer_in_base64_alone() {
        let (length, image) = (2 * STRING_BYTES_MAX, "aZ09+\\/=");
        let image = format!("\"{}\"", image.repeat(length / image.len()));
        assert_eq!(check(image.as_bytes(), length), Ok(()));
        let longer = check(image.as_bytes(), length - 1).unwrap_err();
        let limits = "is longer than 393216 bytes, and no base64 of at most 786431";
        assert!(longer.ends_with(limits), "{longer}");
        let text = image.replacen('a', " ", 1);
        assert!(check(text.as_bytes(), length).is_err());
    }
}
