//! The message of a panic.

use std::any::Any;

/// The message of a panic that `catch_unwind` or `join` returned; `no message` if the payload is
/// not a text.
pub fn panic_text(payload: &(dyn Any + Send)) -> String {
    if let Some(text) = payload.downcast_ref::<&str>() {
        return (*text).to_owned();
    }
    let text = payload.downcast_ref::<String>();
    text.cloned().unwrap_or_else(|| "no message".to_owned())
}

#[cfg(test)]
mod tests {
    use std::panic::{catch_unwind, panic_any};

    use super::*;

    #[test]
    fn literals_and_formatted_messages_are_read() {
        let text_of = |panics: fn()| catch_unwind(panics).map_err(|payload| panic_text(&*payload));
        assert_eq!(text_of(|| panic!("plain")), Err("plain".to_owned()));
        let formatted = text_of(|| panic!("number {}", std::hint::black_box(7)));
        assert_eq!(formatted, Err("number 7".to_owned()));
        assert_eq!(text_of(|| panic_any(7)), Err("no message".to_owned()));
    }
}
