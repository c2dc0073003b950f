//! docs/contract.md has every function, type, field and case of the WIT, with its type, and
//! nothing else.

use std::collections::BTreeMap;
use std::fs;

use wit_parser::{Handle, Resolve, Type, TypeDefKind, TypeId};

use crate::binary::root;

/// Names of an item's fields or cases, with their types; empty where there is none.
type Rows = BTreeMap<String, String>;

/// Sections `### `name`` of the page, with the first two cells of their tables' rows.
fn documented(page: &str) -> BTreeMap<String, Rows> {
    let mut sections: BTreeMap<String, Rows> = BTreeMap::new();
    let mut section = None;
    let mut has_types = false;
    for line in page.lines() {
        if line.starts_with("## ") {
            section = None;
        }
        if let Some(heading) = line.strip_prefix("### `") {
            let name = heading.strip_suffix('`').unwrap().to_owned();
            sections.insert(name.clone(), Rows::new());
            section = Some(name);
        }
        let cells: Vec<&str> = line.trim_matches(['|', ' ']).split(" | ").collect();
        match (cells[0], &section) {
            ("field" | "case", _) => has_types = cells.len() == 3,
            (name, Some(section)) if line.starts_with("| `") => {
                let ty = if has_types {
                    cells[1].trim_matches('`')
                } else {
                    ""
                };
                let last = cells.last().unwrap();
                assert!(last.len() > 3, "{section}.{name}: says nothing");
                let rows = sections.get_mut(section).unwrap();
                rows.insert(name.trim_matches('`').to_owned(), ty.to_owned());
            }
            _ => {}
        }
    }
    sections
}

/// A type as the WIT writes it.
fn name(resolve: &Resolve, ty: &Type) -> String {
    match ty {
        Type::Id(id) => match (&resolve.types[*id].name, &resolve.types[*id].kind) {
            (Some(name), _) => name.clone(),
            (None, TypeDefKind::List(of)) => format!("list<{}>", name(resolve, of)),
            (None, TypeDefKind::Option(of)) => format!("option<{}>", name(resolve, of)),
            (None, TypeDefKind::Handle(Handle::Own(of) | Handle::Borrow(of))) => {
                name(resolve, &Type::Id(*of))
            }
            (None, other) => panic!("a type that this test does not know: {other:?}"),
        },
        Type::Bool => "bool".to_owned(),
        Type::String => "string".to_owned(),
        plain => format!("{plain:?}").to_lowercase(),
    }
}

fn rows(resolve: &Resolve, id: TypeId) -> Rows {
    let plain = |names: Vec<String>| {
        names
            .into_iter()
            .map(|name| (name, String::new()))
            .collect()
    };
    match &resolve.types[id].kind {
        TypeDefKind::Record(record) => record
            .fields
            .iter()
            .map(|field| (field.name.clone(), name(resolve, &field.ty)))
            .collect(),
        TypeDefKind::Flags(flags) => plain(flags.flags.iter().map(|f| f.name.clone()).collect()),
        TypeDefKind::Enum(cases) => plain(cases.cases.iter().map(|c| c.name.clone()).collect()),
        TypeDefKind::Variant(variant) => variant
            .cases
            .iter()
            .map(|case| {
                let carried = case
                    .ty
                    .map_or("nothing".to_owned(), |ty| name(resolve, &ty));
                (case.name.clone(), carried)
            })
            .collect(),
        // Another name for a type: no rows.
        TypeDefKind::Type(_) => Rows::new(),
        other => panic!("a kind of type that this test does not know: {other:?}"),
    }
}

#[test]
fn every_field_of_the_contract_is_documented_and_nothing_else() {
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_dir(root().join("wit/0.1")).unwrap();
    let mut contract: BTreeMap<String, Rows> = BTreeMap::new();
    for interface in resolve.packages[package].interfaces.values() {
        let interface = &resolve.interfaces[*interface];
        for (name, id) in &interface.types {
            contract.insert(name.clone(), rows(&resolve, *id));
        }
        for name in interface.functions.keys() {
            contract.insert(name.clone(), Rows::new());
        }
    }
    let page = fs::read_to_string(root().join("docs/contract.md")).unwrap();
    let documented = documented(&page);
    assert!(contract.len() > 30, "{} items", contract.len());
    for (name, expected) in &contract {
        let found = documented.get(name);
        let found = found.unwrap_or_else(|| panic!("docs/contract.md has no ### `{name}`"));
        assert_eq!(found, expected, "docs/contract.md, ### `{name}`");
    }
    let unknown: Vec<_> = documented
        .keys()
        .filter(|name| !contract.contains_key(*name))
        .collect();
    assert_eq!(
        unknown,
        Vec::<&String>::new(),
        "in docs/contract.md, and not in the WIT"
    );
}
