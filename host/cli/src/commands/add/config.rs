//! The configuration that gets an app.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use switchyard_server::config::Config;
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

/// The folder that an app comes from by default.
const ZOO: &str = "models/zoo";

/// A configuration with the app, not yet written.
pub(super) struct Changed {
    file: PathBuf,
    text: String,
    /// The file does not exist yet.
    is_new: bool,
}

// === impl Changed ===

impl Changed {
    /// Names the app, and puts it into the first pool. Comments and order are kept. An app that the
    /// file has gets the variant, if it lists its variants.
    ///
    /// # Errors
    /// The file cannot be read, is no valid configuration, or has an app of this name from another
    /// folder.
    pub(super) fn read(file: &Path, zoo: &Path, app: &str, variant: &str) -> Result<Self, Failure> {
        let refuse = |reason: String| Failure::input(format!("{}: {reason}", file.display()));
        let (text, is_new) = match fs::read_to_string(file) {
            Ok(text) => (text, false),
            Err(error) if error.kind() == ErrorKind::NotFound => (NEW.to_owned(), true),
            Err(error) => return Err(refuse(error.to_string())),
        };
        let folder = file.parent().unwrap_or(Path::new(""));
        let zoo = zoo
            .canonicalize()
            .map_err(|error| refuse(error.to_string()))?;
        let text = added(&text, folder, &zoo, app, variant).map_err(refuse)?;
        Config::parse(&text, file, folder).map_err(Failure::input)?;
        Ok(Self {
            file: file.to_path_buf(),
            text,
            is_new,
        })
    }

    /// Writes the file; a new one gets a folder of policies, which a server watches.
    pub(super) fn write(&self) -> Result<(), Failure> {
        let failed = |file: &Path, error| Failure::input(format!("{}: {error}", file.display()));
        if self.is_new {
            let policies = self.file.with_file_name(POLICIES);
            fs::create_dir_all(&policies).map_err(|error| failed(&policies, error))?;
        }
        fs::write(&self.file, &self.text).map_err(|error| failed(&self.file, error))
    }
}

/// The text with the app, or with the variant of an app that lists its variants. Paths are relative
/// to `folder`; `zoo` is a resolved one.
fn added(
    text: &str,
    folder: &Path,
    zoo: &Path,
    app: &str,
    variant: &str,
) -> Result<String, String> {
    let mut document: DocumentMut = text.parse().map_err(|error| format!("{error}"))?;
    let apps = document
        .entry("app")
        .or_insert(Item::ArrayOfTables(ArrayOfTables::new()));
    let apps = apps.as_array_of_tables_mut();
    let apps = apps.ok_or("`app` is no list of tables: write [[app]]")?;
    if has_app(apps, folder, zoo, app, variant)? {
        return Ok(document.to_string());
    }
    let mut table = Table::new();
    table["name"] = value(app);
    table["zoo"] = value(zoo.display().to_string());
    apps.push(table);
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

/// Whether the app is known; it gets the variant, if it lists its variants.
fn has_app(
    apps: &mut ArrayOfTables,
    folder: &Path,
    zoo: &Path,
    app: &str,
    variant: &str,
) -> Result<bool, String> {
    let is_it = |table: &&mut Table| table.get("name").and_then(Item::as_str) == Some(app);
    let Some(known) = apps.iter_mut().find(is_it) else {
        return Ok(false);
    };
    let stated = known.get("zoo").and_then(Item::as_str).unwrap_or(ZOO);
    let resolved = folder.join(stated).canonicalize();
    if !resolved.is_ok_and(|known| known == zoo) {
        return Err(format!(
            "has an app {app} from {stated}: name it with --zoo, or choose another name: --as"
        ));
    }
    if let Some(variants) = known.get_mut("variants").and_then(Item::as_array_mut) {
        variants.push(variant);
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str, app: &str) -> Result<String, String> {
        added(text, Path::new(""), Path::new("/srv/zoo"), app, "v1")
    }

    #[test]
    fn an_app_is_named_and_put_into_the_first_pool() {
        let first = plain(NEW, "street").unwrap();
        let second = plain(&first, "search").unwrap();
        assert!(
            second.contains("apps = [\"street\", \"search\"]"),
            "{second}"
        );
        assert_eq!(second.matches("[[app]]").count(), 2, "{second}");
        assert_eq!(second.matches("zoo = \"/srv/zoo\"").count(), 2);
    }

    #[test]
    fn comments_are_kept_and_a_file_without_a_pool_is_refused() {
        let text = plain(&format!("# for the fair\n{NEW}"), "street").unwrap();
        assert!(text.starts_with("# for the fair\n"), "{text}");
        let refused = plain("[server]\n", "street").unwrap_err();
        assert!(refused.starts_with("has no [[pool]]"), "{refused}");
    }

    #[test]
    fn an_app_that_is_known_gets_the_variant_unless_it_lies_elsewhere() {
        let here = tempfile::tempdir().unwrap();
        let zoo = here.path().canonicalize().unwrap();
        let known = |folder: &Path| {
            format!(
                "[[app]]\nname = \"street\"\nzoo = \"{}\"\nvariants = [\"day\"]\n{NEW}",
                folder.display()
            )
        };
        let text = added(&known(&zoo), here.path(), &zoo, "street", "night").unwrap();
        assert!(text.contains("variants = [\"day\", \"night\"]"), "{text}");
        assert!(
            text.contains("apps = []"),
            "its pool is its owner's choice: {text}"
        );
        let elsewhere = known(Path::new("/elsewhere"));
        let refused = added(&elsewhere, here.path(), &zoo, "street", "night").unwrap_err();
        assert!(
            refused.starts_with("has an app street from /elsewhere"),
            "{refused}"
        );
    }
}
