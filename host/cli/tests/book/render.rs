//! mdBook renders the book; every link of the rendered pages has a target.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use mdbook_driver::MDBook;

use crate::binary::root;

/// A rendered page.
struct Page {
    /// Values of `href` and `src`.
    links: Vec<String>,
    /// Values of `id`.
    anchors: BTreeSet<String>,
}

fn values(html: &str, attribute: &str) -> Vec<String> {
    let start = format!(" {attribute}=\"");
    let parts = html.split(start.as_str()).skip(1);
    let values = parts.filter_map(|part| part.split('"').next());
    values.map(|value| value.replace("&amp;", "&")).collect()
}

fn read(folder: &Path, found: &mut BTreeMap<PathBuf, Page>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read(&path, found);
        } else if path
            .extension()
            .is_some_and(|extension| extension == "html")
        {
            let html = fs::read_to_string(&path).unwrap();
            let links = [values(&html, "href"), values(&html, "src")].concat();
            let anchors = values(&html, "id").into_iter().collect();
            found.insert(path, Page { links, anchors });
        }
    }
}

#[test]
fn the_book_renders_and_every_link_of_it_has_a_target() {
    let out = tempfile::tempdir().unwrap();
    let mut book = MDBook::load(root().join("docs")).unwrap();
    book.config.build.build_dir = out.path().to_path_buf();
    book.build().unwrap();
    let mut pages = BTreeMap::new();
    read(out.path(), &mut pages);
    let (mut checked, mut broken) = (0, Vec::new());
    for (path, page) in &pages {
        for link in &page.links {
            if link.contains("://") || link.starts_with("data:") || link.starts_with("mailto:") {
                continue;
            }
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = match file {
                "" => path.clone(),
                file => path.parent().unwrap().join(file),
            };
            let exists = target.exists();
            let target = target.canonicalize().ok();
            let has_anchor = anchor.is_empty()
                || target
                    .and_then(|target| pages.get(&target))
                    .is_some_and(|page| page.anchors.contains(anchor));
            if !exists || !has_anchor {
                let page = path.strip_prefix(out.path()).unwrap().display();
                broken.push(format!("{page}: {link}"));
            }
            checked += 1;
        }
    }
    assert_eq!(broken, Vec::<String>::new());
    assert!(
        pages.len() > 20 && checked > 500,
        "{} {checked}",
        pages.len()
    );
}

#[test]
fn the_contract_page_has_every_definition_of_the_wit() {
    let out = tempfile::tempdir().unwrap();
    let mut book = MDBook::load(root().join("docs")).unwrap();
    book.config.build.build_dir = out.path().to_path_buf();
    book.build().unwrap();
    let page = fs::read_to_string(out.path().join("contract.html")).unwrap();
    let mut definitions = 0;
    for file in ["scheduling.wit", "host.wit"] {
        let wit = fs::read_to_string(root().join("wit/0.2").join(file)).unwrap();
        let inner = wit.lines().filter(|line| line.starts_with("    "));
        for line in inner.filter(|line| line.ends_with([';', '{', ','])) {
            let shown = line.trim().replace('<', "&lt;").replace('>', "&gt;");
            assert!(
                page.contains(&shown),
                "contract.html lacks `{}`",
                line.trim()
            );
            definitions += 1;
        }
    }
    assert!(
        definitions > 150,
        "only {definitions} definitions were found"
    );
}
