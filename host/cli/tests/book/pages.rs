//! Every page is in the summary, every link leads somewhere, every configuration can be read.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use switchyard_models::card::AppCard;
use switchyard_models::{Architecture, VariantCard};
use switchyard_server::config::Config;

use super::block::{blocks, page, prose};
use crate::binary::root;

const SUMMARY: &str = "SUMMARY.md";

/// Pages by path with their includes, without the summary.
pub(crate) fn pages() -> Vec<(PathBuf, String)> {
    let (mut found, mut folders) = (Vec::new(), vec![root().join("docs")]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "md") && !path.ends_with(SUMMARY) {
                let text = page(&path);
                found.push((path, text));
            }
        }
    }
    found.sort();
    found
}

/// Targets of links, with those of the summary.
fn links(page: &str) -> Vec<String> {
    let prose = prose(page);
    let parts = prose.split("](").skip(1);
    let targets = parts.filter_map(|part| part.split(')').next());
    targets.map(str::to_owned).collect()
}

/// The anchor that GitHub and mdBook give a heading.
fn slug(heading: &str) -> String {
    let lower = heading.to_lowercase();
    let kept = lower
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

fn anchors(page: &str) -> BTreeSet<String> {
    let prose = prose(page);
    let headings = prose.lines().filter_map(|line| line.strip_prefix('#'));
    headings
        .map(|heading| slug(heading.trim_start_matches('#').trim()))
        .collect()
}

#[test]
fn every_page_is_in_the_summary() {
    let docs = root().join("docs");
    let summary = fs::read_to_string(docs.join(SUMMARY)).unwrap();
    let listed: BTreeSet<PathBuf> = links(&summary).iter().map(|to| docs.join(to)).collect();
    let there: BTreeSet<PathBuf> = pages().into_iter().map(|(path, _)| path).collect();
    assert_eq!(listed, there, "listed in SUMMARY.md, and there");
}

#[test]
fn every_link_leads_somewhere() {
    let mut checked = 0;
    let readme = root().join("README.md");
    let readme_text = fs::read_to_string(&readme).unwrap();
    for (path, text) in pages().into_iter().chain([(readme, readme_text)]) {
        for link in links(&text) {
            if link.starts_with("http") {
                continue;
            }
            let (file, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let target = match file {
                "" => path.clone(),
                file => path.parent().unwrap().join(file),
            };
            let page = path.display();
            assert!(target.exists(), "{page}: {link}: there is no such file");
            if !anchor.is_empty() && target.extension().is_some_and(|e| e == "md") {
                let known = anchors(&fs::read_to_string(&target).unwrap());
                assert!(
                    known.contains(anchor),
                    "{page}: {link}: no such heading in {known:?}"
                );
            }
            checked += 1;
        }
    }
    assert!(checked > 40, "only {checked} links were found");
}

#[test]
fn whole_configurations_and_cards_are_read() {
    let (mut configurations, mut cards) = (0, 0);
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in pages() {
        for block in blocks(&text) {
            let at = format!("{}:{}", path.display(), block.line);
            if block.language == "toml" && block.text.contains("[[pool]]") {
                Config::parse(&block.text, Path::new("book.toml"), Path::new(""))
                    .unwrap_or_else(|error| panic!("{at}: {error}"));
                configurations += 1;
            } else if block.language == "toml" {
                let table: Result<toml::Table, _> = block.text.parse();
                table.unwrap_or_else(|error| panic!("{at}: {error}"));
            } else if block.language == "json" && !block.text.starts_with("{\"interval_s\"") {
                let json: Result<serde_json::Value, _> = serde_json::from_str(&block.text);
                json.unwrap_or_else(|error| panic!("{at}: {error}"));
            }
            if block.mark.as_deref() == Some("card: onnx") {
                // The graph itself is not in the book.
                let card: Result<VariantCard, _> = toml::from_str(&block.text);
                let card = card.unwrap_or_else(|error| panic!("{at}: {error}"));
                assert!(matches!(card.architecture, Architecture::Onnx(_)), "{at}");
                cards += 1;
            }
            if block.mark.as_deref() == Some("card: app") {
                let file = folder.path().join("app.toml");
                fs::write(&file, &block.text).unwrap();
                AppCard::read(&file).unwrap_or_else(|error| panic!("{at}: {error}"));
                cards += 1;
            }
        }
    }
    assert!(
        configurations >= 2 && cards == 2,
        "{configurations} {cards}"
    );
}
