//! Parts of pages that are generated from their sources, so that no fact stands twice.
//!
//! A page marks such a part with `<!-- KIND: ARGUMENTS -->` and `<!-- /KIND -->`:
//!
//! - `settings: FILE STRUCT`: [`settings`], a table of a struct of the configuration
//! - `policy-settings: FILE STRUCT`: [`policy_settings`], a table of a policy's settings
//!
//! [`crates`] draws a picture: which crate links which. The contract needs no generator: its page
//! includes the WIT.

mod crates;
mod docs;
mod policy_settings;
mod settings;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::workspace::Workspace;

/// A file as it should be.
struct Generated {
    path: PathBuf,
    text: String,
}

/// Writes every generated part anew; names the files that changed.
///
/// # Errors
/// A mark or a source cannot be read, or a file cannot be written.
pub(crate) fn write(workspace: &Workspace) -> Result<()> {
    for file in stale_files(workspace)? {
        fs::write(&file.path, file.text)
            .with_context(|| format!("cannot write {}", file.path.display()))?;
        println!("{}", workspace.relative(&file.path));
    }
    Ok(())
}

/// Files whose generated parts are not in step with their sources, as breaches.
///
/// # Errors
/// A mark or a source cannot be read.
pub(crate) fn stale(workspace: &Workspace) -> Result<Vec<String>> {
    let files = stale_files(workspace)?.into_iter();
    let breach = |file: Generated| {
        let path = workspace.relative(&file.path);
        format!("{path}:1: not in step with its sources; run `cargo xtask pages`")
    };
    Ok(files.map(breach).collect())
}

fn stale_files(workspace: &Workspace) -> Result<Vec<Generated>> {
    let mut files = Vec::new();
    for path in workspace.pages()? {
        let before = read(&path)?;
        let folder = path.parent().unwrap_or(&path);
        let text = filled(folder, &before).with_context(|| format!("{}", path.display()))?;
        files.push((before, Generated { path, text }));
    }
    let picture = Generated {
        path: workspace.root.join(crates::PICTURE),
        text: crates::picture(workspace)?,
    };
    files.push((read(&picture.path).unwrap_or_default(), picture));
    let changed = files
        .into_iter()
        .filter(|(before, file)| *before != file.text);
    Ok(changed.map(|(_, file)| file).collect())
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

/// The page with all marked parts made anew.
fn filled(folder: &Path, page: &str) -> Result<String> {
    let mut text = String::new();
    let mut rest = page;
    while let Some(mark) = Mark::find(rest) {
        text += &rest[..mark.begin];
        text += &format!(
            "\n{}\n",
            generate(folder, mark.kind, mark.arguments)?.trim()
        );
        rest = &rest[mark.end..];
    }
    Ok(text + rest)
}

fn generate(folder: &Path, kind: &str, arguments: &str) -> Result<String> {
    let (file, name) = arguments
        .split_once(' ')
        .with_context(|| format!("`{kind}:` takes a file and a struct"))?;
    match kind {
        "settings" => settings::table(&folder.join(file), name),
        "policy-settings" => policy_settings::table(&folder.join(file), name),
        other => bail!("no part of a page is called `{other}`"),
    }
}

/// A marked part of a page.
struct Mark<'a> {
    kind: &'a str,
    arguments: &'a str,
    /// Where the part begins, behind its mark.
    begin: usize,
    /// Where its end mark begins.
    end: usize,
}

impl<'a> Mark<'a> {
    const KINDS: [&'static str; 2] = ["settings", "policy-settings"];

    /// The first mark with an end.
    fn find(text: &'a str) -> Option<Self> {
        let found = Self::KINDS.iter().filter_map(|kind| {
            let begin = text.find(&format!("<!-- {kind}:"))?;
            let inside = begin + "<!-- ".len() + kind.len() + 1;
            let close = inside + text[inside..].find("-->")?;
            let end = close + text[close..].find(&format!("<!-- /{kind} -->"))?;
            Some(Self {
                kind,
                arguments: text[inside..close].trim(),
                begin: close + "-->\n".len(),
                end,
            })
        });
        found.min_by_key(|mark| mark.begin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_found_in_order() {
        let page = "a\n<!-- settings: a.rs A -->\nold\n<!-- /settings -->\n<!-- settings: a.rs B -->\n<!-- /settings -->\n";
        let first = Mark::find(page).unwrap();
        assert_eq!((first.kind, first.arguments), ("settings", "a.rs A"));
        assert_eq!(&page[first.begin..first.end], "old\n");
        let second = Mark::find(&page[first.end..]).unwrap();
        assert_eq!((second.kind, second.arguments), ("settings", "a.rs B"));
    }

    #[test]
    fn a_mark_without_an_end_is_none() {
        assert!(Mark::find("<!-- settings: a.rs A -->\n").is_none());
    }
}
