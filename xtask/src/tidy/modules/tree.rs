//! A crate's files as a tree of modules, read with `syn`.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use syn::visit::{self, Visit};
use syn::{Attribute, Item, UseTree, Visibility};

use crate::tidy::source::{SourceFile, Sources};

/// A module's place in the tree; the root is empty.
pub(super) type ModulePath = Vec<String>;

/// A library or program.
pub(super) struct Crate {
    /// Its folder, relative to the root of the repository.
    pub(super) folder: String,
    modules: BTreeMap<ModulePath, Module>,
}

/// One file.
pub(super) struct Module {
    /// The file, relative to the root of the repository.
    pub(super) path: String,
    pub(super) text: String,
    /// Names of public structs, enums, traits and type aliases.
    pub(super) public_types: BTreeSet<String>,
    /// Names that the file itself defines.
    pub(super) defines: BTreeSet<String>,
    /// Imports: the name here, and the path it stands for. Those of `*` have no name.
    pub(super) imports: Vec<Import>,
    /// Paths in code, with two segments or more.
    pub(super) paths: BTreeSet<Vec<String>>,
    /// First segments of all paths in code.
    pub(super) names: BTreeSet<String>,
    /// Modules that are compiled for tests only.
    tests: BTreeSet<String>,
}

/// One leaf of a `use`.
pub(super) struct Import {
    /// None for `*`.
    pub(super) name: Option<String>,
    pub(super) path: Vec<String>,
    /// Hands the name on to others.
    pub(super) is_re_export: bool,
}

// === impl Crate ===

impl Crate {
    /// Reads the modules below `folder/src`; none where there is no library or program.
    ///
    /// # Errors
    /// A file does not parse.
    pub(super) fn read(folder: &str, sources: &Sources) -> Result<Option<Self>> {
        let src = format!("{folder}/src");
        let mut modules = BTreeMap::new();
        for file in sources.below(&src).filter(|file| file.is("rs")) {
            let place = place(&file.path[src.len() + 1..]);
            let module = Module::read(file).with_context(|| file.path.clone())?;
            modules.insert(place, module);
        }
        let mut own = Self {
            folder: folder.to_owned(),
            modules,
        };
        own.drop_tests();
        Ok(own.modules.contains_key(&Vec::new()).then_some(own))
    }

    pub(super) fn root(&self) -> &Module {
        &self.modules[&Vec::new()]
    }

    pub(super) fn modules(&self) -> impl Iterator<Item = &Module> {
        self.modules.values()
    }

    pub(super) fn places(&self) -> impl Iterator<Item = (&ModulePath, &Module)> {
        self.modules.iter()
    }

    pub(super) fn get(&self, place: &[String]) -> Option<&Module> {
        self.modules.get(place)
    }

    /// Files below a module that only tests compile.
    fn drop_tests(&mut self) {
        let tests: Vec<ModulePath> = self
            .modules
            .iter()
            .flat_map(|(place, module)| {
                let below = |name: &String| [place.as_slice(), std::slice::from_ref(name)].concat();
                module.tests.iter().map(below)
            })
            .collect();
        self.modules
            .retain(|place, _| !tests.iter().any(|test| place.starts_with(test)));
    }
}

/// `a/b.rs` is `[a, b]`; `lib.rs` and `main.rs` are the root.
fn place(file: &str) -> ModulePath {
    match file.strip_suffix(".rs").unwrap_or(file) {
        "lib" | "main" => Vec::new(),
        path => path.split('/').map(str::to_owned).collect(),
    }
}

// === impl Module ===

impl Module {
    fn read(file: &SourceFile) -> Result<Self> {
        let mut module = Self {
            path: file.path.clone(),
            text: file.text.clone(),
            public_types: BTreeSet::new(),
            defines: BTreeSet::new(),
            imports: Vec::new(),
            paths: BTreeSet::new(),
            names: BTreeSet::new(),
            tests: BTreeSet::new(),
        };
        let parsed = syn::parse_file(&file.text)?;
        module.visit_file(&parsed);
        Ok(module)
    }

    /// The path that a name of this file stands for.
    pub(super) fn import(&self, name: &str) -> Option<&Import> {
        self.imports
            .iter()
            .find(|import| import.name.as_deref() == Some(name))
    }

    fn define(&mut self, name: &syn::Ident, visibility: &Visibility, is_type: bool) {
        self.defines.insert(name.to_string());
        if is_type && matches!(visibility, Visibility::Public(_)) {
            self.public_types.insert(name.to_string());
        }
    }

    fn add_use(&mut self, tree: &UseTree, path: &[String], is_re_export: bool) {
        let mut add = |name: Option<String>, last: Option<String>| {
            let path = path.iter().cloned().chain(last).collect();
            self.imports.push(Import {
                name,
                path,
                is_re_export,
            });
        };
        match tree {
            UseTree::Path(inner) => {
                let path = [path, &[inner.ident.to_string()]].concat();
                self.add_use(&inner.tree, &path, is_re_export);
            }
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.add_use(tree, path, is_re_export);
                }
            }
            UseTree::Glob(_) => add(None, None),
            UseTree::Name(name) if name.ident == "self" => add(path.last().cloned(), None),
            UseTree::Name(name) => add(Some(name.ident.to_string()), Some(name.ident.to_string())),
            UseTree::Rename(rename) if rename.ident == "self" => {
                add(Some(rename.rename.to_string()), None);
            }
            UseTree::Rename(rename) => add(
                Some(rename.rename.to_string()),
                Some(rename.ident.to_string()),
            ),
        }
    }
}

impl<'ast> Visit<'ast> for Module {
    fn visit_item(&mut self, item: &'ast Item) {
        if let Item::Mod(module) = item
            && is_test(&module.attrs)
        {
            self.tests.insert(module.ident.to_string());
            return;
        }
        match item {
            Item::Struct(item) => self.define(&item.ident, &item.vis, true),
            Item::Enum(item) => self.define(&item.ident, &item.vis, true),
            Item::Union(item) => self.define(&item.ident, &item.vis, true),
            Item::Trait(item) => self.define(&item.ident, &item.vis, true),
            Item::Type(item) => self.define(&item.ident, &item.vis, true),
            Item::Fn(item) if is_test(&item.attrs) => return,
            Item::Fn(item) => self.define(&item.sig.ident, &item.vis, false),
            Item::Const(item) => self.define(&item.ident, &item.vis, false),
            Item::Static(item) => self.define(&item.ident, &item.vis, false),
            Item::Use(item) if is_test(&item.attrs) => return,
            Item::Use(item) => {
                let is_re_export = !matches!(item.vis, Visibility::Inherited);
                self.add_use(&item.tree, &[], is_re_export);
                return;
            }
            Item::Impl(item) if is_test(&item.attrs) => return,
            _ => {}
        }
        visit::visit_item(self, item);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments: Vec<String> = path
            .segments
            .iter()
            .map(|segment| segment.ident.to_string())
            .collect();
        self.names.insert(segments[0].clone());
        if segments.len() > 1 {
            self.paths.insert(segments);
        }
        visit::visit_path(self, path);
    }
}

/// `#[cfg(test)]`, `#[test]`, and `#[cfg(all(test, ...))]`.
fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let is_cfg = attribute.path().is_ident("cfg");
        let text = match &attribute.meta {
            syn::Meta::List(list) => list.tokens.to_string(),
            _ => String::new(),
        };
        attribute.path().is_ident("test")
            || is_cfg
                && (text == "test" || text.starts_with("all (test") || text.starts_with("all(test"))
    })
}
