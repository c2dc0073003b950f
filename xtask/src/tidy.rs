//! Rules of the house that no compiler checks.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// Longest file of code, in lines. One file holds one idea.
const LINES_MAX: usize = 600;

/// What counts as code here, by extension.
const CODE: [&str; 5] = ["rs", "wit", "py", "js", "c"];

/// Work left undone is an issue, not a comment. Spelled so that this file passes.
const UNFINISHED: [&str; 4] = [
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("unimplemented", "!"),
    concat!("todo", "!"),
];

/// The deterministic core, and what would make it anything else.
const CORE: &str = "host/core/src";
const NOT_IN_CORE: [&str; 4] = [
    "Instant::now",
    "SystemTime",
    "std::collections::HashMap",
    "std::collections::HashSet",
];

/// Checks every file of code below `root`.
///
/// # Errors
/// Lists every breach as `path:line: rule`, or names the file that cannot be read.
pub(crate) fn check(root: &Path) -> Result<()> {
    let mut findings = Vec::new();
    for path in code_files(root)? {
        let text =
            fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let relative = path
            .strip_prefix(root)
            .unwrap_or(&path)
            .to_string_lossy()
            .replace('\\', "/");
        findings.extend(breaches(&relative, &text));
    }
    if !findings.is_empty() {
        bail!(
            "{} breaches of the house rules:\n{}",
            findings.len(),
            findings.join("\n")
        );
    }
    Ok(())
}

/// Files of code below `folder`, without build outputs and hidden folders, in a fixed order.
fn code_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let entries =
            fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?;
        for entry in entries {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if name.starts_with('.') || name == "target" || name == "node_modules" {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else if path
                .extension()
                .is_some_and(|e| CODE.iter().any(|code| e == *code))
            {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// The rules that one file breaks; `path` is relative to the root, with forward slashes.
fn breaches(path: &str, text: &str) -> Vec<String> {
    let mut findings = Vec::new();
    let lines = text.lines().count();
    if lines > LINES_MAX {
        findings.push(format!(
            "{path}:{lines}: longer than {LINES_MAX} lines; split it by idea"
        ));
    }
    if path == "mod.rs" || path.ends_with("/mod.rs") {
        findings.push(format!(
            "{path}:1: name the file after its module, beside its folder"
        ));
    }
    for (number, line) in (1..).zip(text.lines()) {
        for word in UNFINISHED.iter().filter(|word| line.contains(**word)) {
            findings.push(format!(
                "{path}:{number}: `{word}`: finish it, or open an issue"
            ));
        }
        if path.starts_with(CORE) {
            let code = line.split_once("//").map_or(line, |(code, _)| code);
            for name in NOT_IN_CORE.iter().filter(|name| code.contains(**name)) {
                findings.push(format!(
                    "{path}:{number}: `{name}`: the core has no clock and no unordered maps"
                ));
            }
        }
    }
    findings
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
        assert!(one("host/core/src/plan/mod.rs", "").contains("beside its folder"));
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

    #[test]
    fn outputs_and_hidden_folders_are_left_alone() {
        let root = tempfile::tempdir().unwrap();
        for folder in ["src", "target", ".venv"] {
            fs::create_dir(root.path().join(folder)).unwrap();
            fs::write(root.path().join(folder).join("mod.rs"), "").unwrap();
        }
        fs::write(root.path().join("notes.md"), UNFINISHED[0]).unwrap();
        let error = check(root.path()).unwrap_err().to_string();
        assert!(
            error.contains("1 breaches") && error.contains("src/mod.rs"),
            "{error}"
        );
    }
}
