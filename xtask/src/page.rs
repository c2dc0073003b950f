//! A page with a marked part for each measurement.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use switchyard_kit::shell;

/// The page as it stands, to be saved when it has changed.
pub(crate) struct Page {
    file: PathBuf,
    text: String,
}

// === impl Page ===

impl Page {
    pub(crate) fn open(file: &Path) -> Result<Self> {
        let text =
            fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        let file = file.to_path_buf();
        Ok(Self { file, text })
    }

    /// Whether there are marks of `name`.
    pub(crate) fn has(&self, name: &str) -> bool {
        between(&self.text, name).is_some()
    }

    /// Replaces the part between the marks of `name`.
    ///
    /// # Errors
    /// The page has no such marks.
    pub(crate) fn put(&mut self, name: &str, command: &str, printed: &str) -> Result<()> {
        let place = between(&self.text, name).with_context(|| {
            format!(
                "{}: no `<!-- begin: {name} -->` and its end",
                self.file.display()
            )
        })?;
        let body = format!("\n{}\n\n{}\n", about(command), block(printed));
        self.text.replace_range(place, &body);
        Ok(())
    }

    pub(crate) fn save(&self) -> Result<()> {
        fs::write(&self.file, &self.text)
            .with_context(|| format!("cannot write {}", self.file.display()))
    }
}

fn between(text: &str, name: &str) -> Option<std::ops::Range<usize>> {
    let (begin, end) = (
        format!("<!-- begin: {name} -->\n"),
        format!("<!-- end: {name} -->"),
    );
    let from = text.find(&begin)? + begin.len();
    let to = from + text[from..].find(&end)?;
    Some(from..to)
}

/// A Markdown table stays as it is; other text goes into a code block.
fn block(printed: &str) -> String {
    let printed = printed.trim_end();
    if printed.lines().all(|line| line.starts_with('|')) {
        printed.to_owned()
    } else {
        format!("```\n{printed}\n```")
    }
}

/// Command, date, machine and compiler of a run.
fn about(command: &str) -> String {
    let of = |program: &str, args: &[&str]| shell::answer(Command::new(program).args(args));
    let unknown = || "unknown".to_owned();
    format!(
        "`{command}`, {} at `{}`, on {} ({} cores), {}.",
        of("date", &["-u", "+%Y-%m-%d %H:%M UTC"]).unwrap_or_else(unknown),
        of("git", &["rev-parse", "--short", "HEAD"]).unwrap_or_else(unknown),
        cpu().unwrap_or_else(unknown),
        std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
        of("rustc", &["--version"]).unwrap_or_else(unknown),
    )
}

fn cpu() -> Option<String> {
    let info = fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = info.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(text: &str) -> Page {
        Page {
            file: "page.md".into(),
            text: text.to_owned(),
        }
    }

    #[test]
    fn a_table_replaces_the_one_before_it() {
        let mut page = page("a\n<!-- begin: race -->\nold\n<!-- end: race -->\nb\n");
        page.put("race", "cargo bench", "| x |\n| - |\n").unwrap();
        page.put("race", "cargo bench", "| y |\n| - |\n").unwrap();
        assert!(
            page.text
                .starts_with("a\n<!-- begin: race -->\n\n`cargo bench`, ")
        );
        assert!(
            page.text
                .ends_with("\n\n| y |\n| - |\n<!-- end: race -->\nb\n")
        );
        assert!(!page.text.contains("old") && !page.text.contains("| x |"));
    }

    #[test]
    fn text_that_is_not_a_table_keeps_its_columns() {
        assert_eq!(block("a  b\n1  2\n"), "```\na  b\n1  2\n```");
    }

    #[test]
    fn a_bench_without_a_place_is_named() {
        let error = page("nothing").put("race", "x", "y").unwrap_err();
        assert_eq!(
            error.to_string(),
            "page.md: no `<!-- begin: race -->` and its end"
        );
    }
}
