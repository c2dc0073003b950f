//! The part of an error of this machine that a client may see.

/// Longest reason for a client, in characters.
const CHARS_MAX: usize = 512;

/// Characters around a path in messages.
const AROUND: [char; 10] = ['"', '\'', '`', '(', ')', '[', ']', ',', ';', '='];

/// The first line with text, without backtraces, and with the last part of each absolute path
/// instead of the path.
pub(super) fn reason(text: &str) -> String {
    let mut lines = text.lines().map(str::trim);
    let first = lines.find(|line| !line.is_empty() && !is_backtrace(line));
    let line = first.unwrap_or("see the log of the server");
    let mut public = String::with_capacity(line.len());
    let is_end = |c: char| c.is_whitespace() || AROUND.contains(&c);
    for word in line.split_inclusive(is_end) {
        let path = word.trim_end_matches(is_end);
        public.push_str(last_part(path));
        public.push_str(&word[path.len()..]);
    }
    match public.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{}…", &public[..end]),
        None => public,
    }
}

/// Frames of a backtrace begin with their number.
fn is_backtrace(line: &str) -> bool {
    let after = line.trim_start_matches(|c: char| c.is_ascii_digit());
    line.eq_ignore_ascii_case("stack backtrace:")
        || after.len() < line.len() && after.starts_with(": ")
        || line.starts_with("at /")
}

/// `weights.safetensors: ` of `/srv/zoo/heart/weights.safetensors: `; a text that is no absolute
/// path stays.
fn last_part(word: &str) -> &str {
    if !word.starts_with('/') && !word.starts_with("file:///") {
        return word;
    }
    let path = word.trim_end_matches('/');
    match path.rsplit_once('/') {
        Some((_, last)) if !last.is_empty() => last,
        _ => word,
    }
}

#[cfg(test)]
mod tests {
    use super::reason;

    #[test]
    fn a_reason_without_machine_is_kept() {
        for text in [
            "worker cpu-a stopped",
            "shape mismatch in matmul, lhs: [1, 3], rhs: [4, 2]",
            "1/2 of the batch, and/or none",
        ] {
            assert_eq!(reason(text), text);
        }
    }

    #[test]
    fn backtraces_and_paths_stay_on_the_machine() {
        let traced = "shape mismatch in matmul\n   0: candle_core::error::Error::bt\n             \
                      at /root/.cargo/registry/src/candle-core/src/error.rs:264:25\n   1: main";
        assert_eq!(reason(traced), "shape mismatch in matmul");
        let only =
            "stack backtrace:\n   0: rust_begin_unwind\n at /rustc/1/library/std/panicking.rs";
        assert_eq!(reason(only), "see the log of the server");
        assert_eq!(
            reason("\ncannot read \"/srv/zoo/heart/cnn/weights.safetensors\": No such file"),
            "cannot read \"weights.safetensors\": No such file"
        );
        assert_eq!(
            reason("/tmp/a/b.onnx: refused (/opt/lib/x.so)"),
            "b.onnx: refused (x.so)"
        );
        assert_eq!(reason(&"x".repeat(2_000)).chars().count(), 513);
    }
}
