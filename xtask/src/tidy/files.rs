//! Rules for one file of code at a time.

/// Longest file of code, in lines. One file holds one idea.
const LINES_MAX: usize = 600;

/// Work left undone is an issue, not a comment. Spelled so that this file passes.
const UNFINISHED: [&str; 4] = [
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("unimplemented", "!"),
    concat!("todo", "!"),
];

/// The deterministic core, and names that would make it anything else.
const CORE: &str = "host/core/src";
const NOT_IN_CORE: [&str; 4] = [
    "Instant::now",
    "SystemTime",
    "std::collections::HashMap",
    "std::collections::HashSet",
];

/// The rules that a file breaks; `path` is relative to the root, with forward slashes.
pub(super) fn breaches(path: &str, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let lines = text.lines().count();
    if lines > LINES_MAX {
        found.push(format!(
            "{path}:{lines}: longer than {LINES_MAX} lines; split it by idea"
        ));
    }
    if path == "mod.rs" || path.ends_with("/mod.rs") {
        found.push(format!(
            "{path}:1: name the file after its module, next to its folder"
        ));
    }
    for (number, line) in (1..).zip(text.lines()) {
        for word in UNFINISHED.iter().filter(|word| line.contains(**word)) {
            found.push(format!(
                "{path}:{number}: `{word}`: finish it, or open an issue"
            ));
        }
        if path.starts_with(CORE) {
            let code = line.split_once("//").map_or(line, |(code, _)| code);
            for name in NOT_IN_CORE.iter().filter(|name| code.contains(**name)) {
                found.push(format!(
                    "{path}:{number}: `{name}`: the core has no clock and no unordered maps"
                ));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(path: &str, text: &str) -> String {
        let mut found = breaches(path, text);
        assert_eq!(found.len(), 1, "{found:?}");
        found.remove(0)
    }

    #[test]
    fn long_files_are_found() {
        assert!(breaches("a.rs", &"\n".repeat(600)).is_empty());
        assert!(one("a.rs", &"\n".repeat(601)).contains("a.rs:601: longer"));
    }

    #[test]
    fn mod_files_are_found() {
        assert!(one("host/core/src/plan/mod.rs", "").contains("next to its folder"));
        assert!(breaches("host/core/src/plan/model.rs", "").is_empty());
    }

    #[test]
    fn unfinished_work_is_found() {
        for word in UNFINISHED {
            assert!(one("a.py", &format!("fine\n# {word} later")).starts_with("a.py:2:"));
        }
    }

    #[test]
    fn only_the_core_may_not_know_the_time() {
        let text = "let now = Instant::now();";
        assert!(one("host/core/src/window.rs", text).contains("no clock"));
        assert!(breaches("host/server/src/driver.rs", text).is_empty());
        assert!(breaches("host/core/src/time.rs", "//! Never calls `Instant::now`.").is_empty());
        assert!(one("host/core/src/a.rs", "use std::collections::HashMap;").contains("HashMap"));
    }
}
