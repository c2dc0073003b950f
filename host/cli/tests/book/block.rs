//! Pages with their includes, and fenced blocks with the comment above them.

use std::fs;
use std::path::Path;

/// One fenced block.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Block {
    /// `toml`, `sh`, `rust`; may be empty.
    pub(crate) language: String,
    /// The text of `<!-- ... -->` on the line before.
    pub(crate) mark: Option<String>,
    pub(crate) text: String,
    /// Of the opening fence, from 1.
    pub(crate) line: usize,
}

/// A page with the files that it includes (`{{#include PATH:FROM:}}`, from line FROM on), as mdBook
/// makes it.
pub(crate) fn page(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let folder = path.parent().unwrap();
    let expand = |line: &str| {
        let Some(include) = line.strip_prefix("{{#include ") else {
            return format!("{line}\n");
        };
        // Others are sources inside fences.
        let Some(include) = include.strip_suffix(":}}") else {
            return format!("{line}\n");
        };
        let (file, from) = include.rsplit_once(':').unwrap();
        let from: usize = from.parse().unwrap();
        let included = fs::read_to_string(folder.join(file)).unwrap();
        let lines: Vec<&str> = included.lines().skip(from - 1).collect();
        lines.join("\n") + "\n"
    };
    text.lines().map(expand).collect()
}

/// All of them, in order.
pub(crate) fn blocks(page: &str) -> Vec<Block> {
    let mut found = Vec::new();
    let mut open: Option<Block> = None;
    let mut before = "";
    for (line, text) in (1..).zip(page.lines()) {
        match (&mut open, text.strip_prefix("```")) {
            (None, Some(language)) => {
                let mark = before.strip_prefix("<!-- ");
                let mark = mark.and_then(|mark| mark.strip_suffix(" -->"));
                open = Some(Block {
                    language: language.to_owned(),
                    mark: mark.map(str::to_owned),
                    text: String::new(),
                    line,
                });
            }
            (Some(_), Some(_)) => found.extend(open.take()),
            (Some(block), None) => {
                block.text += text;
                block.text.push('\n');
            }
            (None, None) => {}
        }
        before = text;
    }
    assert_eq!(open, None, "a fence is not closed");
    found
}

/// The page without its fenced blocks.
pub(crate) fn prose(page: &str) -> String {
    let mut inside = false;
    let lines = page.lines().filter(|line| {
        let is_fence = line.starts_with("```");
        inside ^= is_fence;
        !inside && !is_fence
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn blocks_know_their_marks() {
    let page = "a\n\n<!-- run -->\n```sh\nls\n```\n\n```\nx\n```\n";
    let found = blocks(page);
    assert_eq!(found.len(), 2);
    assert_eq!(found[0].mark.as_deref(), Some("run"));
    assert_eq!((found[0].text.as_str(), found[0].line), ("ls\n", 4));
    assert_eq!(found[1].mark, None);
    assert_eq!(prose(page), "a\n\n<!-- run -->\n");
}
