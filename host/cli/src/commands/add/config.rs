//! The configuration that gets an app.

use std::fs;
use std::path::Path;

use toml_edit::{Array, ArrayOfTables, DocumentMut, Item, Table, value};

use crate::commands::Failure;

/// A server of one pool, without a policy: requests are served in the order of their deadlines.
const NEW: &str = r#"[[worker]]
name = "cpu"

[[pool]]
name = "main"
apps = []
workers = ["cpu"]
policy = "none"
"#;

/// The folder that a configuration has policies in by default.
const POLICIES: &str = "policies";

/// Names the app, and puts it into the first pool. Comments and order are kept. Does nothing for an
/// app that the file has.
pub(super) fn add(file: &Path, zoo: &Path, app: &str) -> Result<(), Failure> {
    let refuse = |reason: String| Failure::input(format!("{}: {reason}", file.display()));
    let text = match fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            // The server watches it.
            let policies = file.with_file_name(POLICIES);
            let made = fs::create_dir_all(&policies);
            made.map_err(|error| refuse(format!("{}: {error}", policies.display())))?;
            NEW.to_owned()
        }
        Err(error) => return Err(refuse(error.to_string())),
    };
    let folder = zoo
        .canonicalize()
        .map_err(|error| refuse(error.to_string()))?;
    let text = added(&text, &folder, app).map_err(refuse)?;
    fs::write(file, text).map_err(|error| refuse(error.to_string()))
}

fn added(text: &str, zoo: &Path, app: &str) -> Result<String, String> {
    let mut document: DocumentMut = text.parse().map_err(|error| format!("{error}"))?;
    let tables = |item: &mut Item| item.as_array_of_tables_mut().map(std::mem::take);
    let mut apps = match document.get_mut("app") {
        Some(item) => tables(item).ok_or("`app` is no list of tables: write [[app]]")?,
        None => ArrayOfTables::new(),
    };
    let is_it = |table: &Table| table.get("name").and_then(Item::as_str) == Some(app);
    if apps.iter().any(is_it) {
        return Ok(text.to_owned());
    }
    let mut table = Table::new();
    table["name"] = value(app);
    table["zoo"] = value(zoo.display().to_string());
    apps.push(table);
    document["app"] = Item::ArrayOfTables(apps);
    let pools = document
        .get_mut("pool")
        .and_then(Item::as_array_of_tables_mut);
    let first = pools.and_then(|pools| pools.get_mut(0));
    let first = first.ok_or("has no [[pool]]: add one, whose `apps` may be empty")?;
    let apps = first
        .entry("apps")
        .or_insert(value(Array::new()))
        .as_array_mut();
    apps.ok_or("`apps` of its first [[pool]] is no list")?
        .push(app);
    Ok(document.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_app_is_named_and_put_into_the_first_pool() {
        let first = added(NEW, Path::new("/srv/zoo"), "street").unwrap();
        let second = added(&first, Path::new("/srv/zoo"), "search").unwrap();
        assert!(
            second.contains("apps = [\"street\", \"search\"]"),
            "{second}"
        );
        assert_eq!(second.matches("[[app]]").count(), 2, "{second}");
        assert_eq!(second.matches("zoo = \"/srv/zoo\"").count(), 2);
        assert_eq!(
            added(&second, Path::new("/other"), "street").unwrap(),
            second
        );
    }

    #[test]
    fn comments_are_kept_and_a_file_without_a_pool_is_refused() {
        let text = format!("# for the fair\n{NEW}");
        let text = added(&text, Path::new("zoo"), "street").unwrap();
        assert!(text.starts_with("# for the fair\n"), "{text}");
        let refused = added("[server]\n", Path::new("zoo"), "street").unwrap_err();
        assert!(refused.starts_with("has no [[pool]]"), "{refused}");
    }
}
