//! Modules that import each other, directly or through others.
//!
//! A module imports another when a `use` or a path in its code names something that the other
//! defines. A parent that only declares its children and hands their names on imports nothing.

use std::collections::{BTreeMap, BTreeSet};

use super::tree::{Crate, ModulePath};

/// Imports: from, to, and the names.
type Arrows = BTreeMap<ModulePath, BTreeMap<ModulePath, BTreeSet<String>>>;

/// Each circle of a crate in one text, with the arrows that close it.
pub(super) fn breaches(own: &Crate) -> Vec<String> {
    let arrows = arrows(own);
    let circles = circles(&arrows);
    circles
        .iter()
        .map(|circle| describe(own, &arrows, circle))
        .collect()
}

fn describe(own: &Crate, arrows: &Arrows, circle: &[ModulePath]) -> String {
    let path = |place: &ModulePath| own.get(place).map_or("", |module| module.path.as_str());
    let mut text = format!(
        "{}:1: {} modules import each other",
        path(&circle[0]),
        circle.len()
    );
    for (from, targets) in arrows.iter().filter(|(from, _)| circle.contains(from)) {
        for (to, names) in targets.iter().filter(|(to, _)| circle.contains(to)) {
            let names: Vec<_> = names.iter().map(String::as_str).collect();
            text += &format!(
                "\n    {} takes {} from {}",
                path(from),
                names.join(", "),
                path(to)
            );
        }
    }
    text
}

fn arrows(own: &Crate) -> Arrows {
    let mut arrows = Arrows::new();
    for (place, module) in own.places() {
        let mut add = |path: &[String]| {
            if let Some(target) = resolve(own, place, path, 0)
                && target != *place
            {
                let name = path.last().cloned().unwrap_or_default();
                let targets = arrows.entry(place.clone()).or_default();
                targets.entry(target).or_default().insert(name);
            }
        };
        for import in &module.imports {
            let is_used = import
                .name
                .as_ref()
                .is_some_and(|name| module.names.contains(name));
            if !import.is_re_export || is_used {
                add(&import.path);
            }
        }
        for path in &module.paths {
            add(path);
        }
    }
    arrows
}

/// The module that defines the item of a path, seen from `place`; none outside of the crate.
fn resolve(own: &Crate, place: &[String], path: &[String], depth: usize) -> Option<ModulePath> {
    // Names that stand for each other in a ring do not compile; a bound keeps this one finite.
    if depth > 16 {
        return None;
    }
    let (first, mut rest) = path.split_first()?;
    let mut at: ModulePath = match first.as_str() {
        "crate" => Vec::new(),
        "self" => place.to_vec(),
        "super" => place.split_last()?.1.to_vec(),
        name => {
            let child = [place, std::slice::from_ref(first)].concat();
            if own.get(&child).is_some() {
                child
            } else if let Some(import) = own.get(place)?.import(name) {
                if import.path.first() == Some(first) && import.path.len() == 1 {
                    return None;
                }
                let path = [import.path.as_slice(), rest].concat();
                return resolve(own, place, &path, depth + 1);
            } else {
                return None;
            }
        }
    };
    while let Some((next, after)) = rest.split_first() {
        if next == "super" {
            at.pop()?;
            rest = after;
            continue;
        }
        let child = [at.as_slice(), std::slice::from_ref(next)].concat();
        if own.get(&child).is_some() {
            at = child;
            rest = after;
            continue;
        }
        let module = own.get(&at)?;
        if module.defines.contains(next) {
            return Some(at);
        }
        if let Some(import) = module.import(next) {
            let path = [import.path.as_slice(), after].concat();
            return resolve(own, &at, &path, depth + 1);
        }
        let globs = module.imports.iter().filter(|import| import.name.is_none());
        for glob in globs {
            let target = resolve(own, &at, &glob.path, depth + 1);
            if let Some(target) = target
                && own
                    .get(&target)
                    .is_some_and(|module| module.defines.contains(next))
            {
                return Some(target);
            }
        }
        return Some(at);
    }
    own.get(&at).is_some().then_some(at)
}

/// Groups of modules that reach each other, by Tarjan's algorithm.
fn circles(arrows: &Arrows) -> Vec<Vec<ModulePath>> {
    let mut search = Search {
        arrows,
        index: BTreeMap::new(),
        low: BTreeMap::new(),
        stack: Vec::new(),
        found: Vec::new(),
    };
    for place in arrows.keys() {
        if !search.index.contains_key(place) {
            search.visit(place);
        }
    }
    search.found
}

struct Search<'a> {
    arrows: &'a Arrows,
    index: BTreeMap<&'a ModulePath, usize>,
    low: BTreeMap<&'a ModulePath, usize>,
    stack: Vec<&'a ModulePath>,
    found: Vec<Vec<ModulePath>>,
}

impl<'a> Search<'a> {
    fn visit(&mut self, place: &'a ModulePath) {
        let number = self.index.len();
        self.index.insert(place, number);
        self.low.insert(place, number);
        self.stack.push(place);
        for next in self.arrows.get(place).into_iter().flat_map(BTreeMap::keys) {
            if !self.index.contains_key(next) {
                self.visit(next);
                let low = self.low[next].min(self.low[place]);
                self.low.insert(place, low);
            } else if self.stack.contains(&next) {
                let low = self.index[next].min(self.low[place]);
                self.low.insert(place, low);
            }
        }
        if self.low[place] == number {
            let from = self.stack.iter().position(|other| *other == place);
            let mut group: Vec<_> = self
                .stack
                .split_off(from.unwrap_or_default())
                .into_iter()
                .cloned()
                .collect();
            if group.len() > 1 {
                group.sort();
                self.found.push(group);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::source::Sources;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join("own/src").join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let sources = Sources::read(root.path()).unwrap();
        breaches(&Crate::read("own", &sources).unwrap().unwrap())
    }

    #[test]
    fn a_child_that_takes_from_a_parent_that_calls_it_is_a_circle() {
        let circle = found(&[
            ("lib.rs", "mod a;"),
            ("a.rs", "mod b;\npub struct A;\nfn f() { b::g(); }"),
            ("a/b.rs", "use super::A;\npub fn g() -> A { A }"),
        ]);
        assert_eq!(circle.len(), 1, "{circle:?}");
        assert!(
            circle[0].contains("own/src/a/b.rs takes A from own/src/a.rs"),
            "{circle:?}"
        );
    }

    #[test]
    fn a_parent_that_hands_names_on_is_none() {
        let files = [
            ("lib.rs", "mod a;\nmod c;"),
            ("a.rs", "mod b;\nmod d;\npub use b::B;"),
            ("a/b.rs", "use super::d::D;\npub struct B(D);"),
            ("a/d.rs", "pub struct D;"),
            ("c.rs", "use crate::a::B;"),
        ];
        assert_eq!(found(&files), Vec::<String>::new());
    }

    #[test]
    fn names_are_followed_to_where_they_are_defined() {
        let circle = found(&[
            ("lib.rs", "mod a;\nmod c;"),
            ("a.rs", "mod b;\npub use b::B;"),
            ("a/b.rs", "use crate::c::C;\npub struct B(C);"),
            ("c.rs", "use crate::a::B;\npub struct C(B);"),
        ]);
        assert_eq!(circle.len(), 1, "{circle:?}");
        assert!(
            circle[0].starts_with("own/src/a/b.rs:1: 2 modules"),
            "{circle:?}"
        );
    }

    #[test]
    fn tests_do_not_count() {
        let files = [
            ("lib.rs", "mod a;\nmod b;"),
            (
                "a.rs",
                "pub struct A;\n#[cfg(test)]\nmod tests { use crate::b::B; }",
            ),
            ("b.rs", "use crate::a::A;\npub struct B(A);"),
        ];
        assert_eq!(found(&files), Vec::<String>::new());
    }
}
