//! A configuration file that gets or loses an app. Comments and order are kept.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use switchyard_server::config::{Config, Draft, Overrides};
use toml_edit::{Array, ArrayOfTables, DocumentMut, Item, Table, value};

use super::draft::write_file;
use super::failure::Failure;

/// A server of one pool, whose requests are served in the order of their deadlines.
const NEW: &str = r#"[[worker]]
name = "cpu"

[[pool]]
name = "main"
apps = []
workers = ["cpu"]
policy = "edf-fallback"
"#;

/// The folder that a configuration has policies in by default.
const POLICIES: &str = "policies";

/// The folder that an app comes from by default.
const ZOO: &str = "models/zoo";

/// A change of the text; a file that does not exist has none.
type Change = Box<dyn Fn(Option<&str>) -> Result<String, String>>;

/// A changed configuration, not yet written.
pub(super) struct Changed {
    file: PathBuf,
    change: Change,
    /// The text that was changed.
    before: Option<String>,
    text: String,
    config: Config,
}

// === impl Changed ===

impl Changed {
    /// Names the app, and puts it into the first pool. An app that the file has gets the variant, if it lists its variants.
    ///
    /// # Errors
    /// The file cannot be read, is no valid configuration, or has an app of this name from another
    /// folder.
    pub(super) fn with(file: &Path, zoo: &Path, app: &str, variant: &str) -> Result<Self, Failure> {
        let folder = file.parent().unwrap_or(Path::new("")).to_owned();
        let zoo = zoo
            .canonicalize()
            .map_err(|error| refused(file, error.to_string()))?;
        let (app, variant) = (app.to_owned(), variant.to_owned());
        let change =
            move |text: Option<&str>| added(text.unwrap_or(NEW), &folder, &zoo, &app, &variant);
        Self::of(file, Box::new(change))
    }

    /// Takes out the app, or leaves it the variants `others`.
    ///
    /// # Errors
    /// The file cannot be read, does not have the app, or cannot be served without it.
    pub(super) fn without(
        file: &Path,
        app: &str,
        others: Option<&[String]>,
    ) -> Result<Self, Failure> {
        let (app, others) = (app.to_owned(), others.map(<[String]>::to_vec));
        let change =
            move |text: Option<&str>| removed(text.unwrap_or_default(), &app, others.as_deref());
        Self::of(file, Box::new(change))
    }

    fn of(file: &Path, change: Change) -> Result<Self, Failure> {
        let before = read(file)?;
        let text = change(before.as_deref()).map_err(|reason| refused(file, reason))?;
        let folder = file.parent().unwrap_or(Path::new(""));
        // As a server of this environment reads it: its address may be there.
        let draft = Draft::parse(&text, file, folder, &Overrides::of_environment());
        let config = draft.finish().map_err(Failure::input)?;
        Ok(Self {
            file: file.to_path_buf(),
            change,
            before,
            text,
            config,
        })
    }

    /// Writes the file, and keeps changes that others made since it was read. A new file gets a folder
    /// of policies, which a server watches. Returns the configuration as a server reads it.
    ///
    /// # Errors
    /// The file cannot be written, or does not take the change any more.
    pub(super) fn write(self) -> Result<Config, Failure> {
        let this = match read(&self.file)? == self.before {
            true => self,
            false => Self::of(&self.file, self.change)?,
        };
        let failed = |file: &Path, error| Failure::input(format!("{}: {error}", file.display()));
        if this.before.is_none() {
            let policies = this.file.with_file_name(POLICIES);
            fs::create_dir_all(&policies).map_err(|error| failed(&policies, error))?;
        }
        // A server that follows the file never sees half of it.
        write_file(&this.file, &this.text).map_err(|error| failed(&this.file, error))?;
        Ok(this.config)
    }
}

/// The text of a file, if it exists.
fn read(file: &Path) -> Result<Option<String>, Failure> {
    match fs::read_to_string(file) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(refused(file, error.to_string())),
    }
}

fn refused(file: &Path, reason: String) -> Failure {
    Failure::input(format!("{}: {reason}", file.display()))
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

/// The text without the app, or with some of its variants.
fn removed(text: &str, app: &str, others: Option<&[String]>) -> Result<String, String> {
    let mut document: DocumentMut = text.parse().map_err(|error| format!("{error}"))?;
    let apps = document
        .get_mut("app")
        .and_then(Item::as_array_of_tables_mut);
    let named = |table: &Table| table.get("name").and_then(Item::as_str) == Some(app);
    let unknown = || format!("has no app {app}");
    let apps = apps.ok_or_else(unknown)?;
    let at = apps.iter().position(named).ok_or_else(unknown)?;
    match (others, apps.get_mut(at)) {
        (Some(others), Some(table)) => {
            table["variants"] = value(others.iter().collect::<Array>());
            return Ok(document.to_string());
        }
        _ => apps.remove(at),
    };
    let pools = document
        .get_mut("pool")
        .and_then(Item::as_array_of_tables_mut);
    for pool in pools.into_iter().flat_map(ArrayOfTables::iter_mut) {
        if let Some(apps) = pool.get_mut("apps").and_then(Item::as_array_mut) {
            apps.retain(|name| name.as_str() != Some(app));
        }
    }
    Ok(document.to_string())
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
    fn a_change_of_another_meanwhile_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("switchyard.toml");
        let add = |app| Changed::with(&file, folder.path(), app, "v1").unwrap();
        let (slow, quick) = (add("street"), add("search"));
        quick.write().unwrap();
        let config = slow.write().unwrap();
        let names: Vec<&str> = config.apps.iter().map(|app| app.name.as_str()).collect();
        assert_eq!(names, ["search", "street"]);
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.contains("apps = [\"search\", \"street\"]"), "{text}");

        let next = add("night");
        fs::write(&file, "[server]\n").unwrap();
        let Err(Failure::Input(reason)) = next.write() else {
            panic!("a file without a pool takes no app");
        };
        assert!(reason.contains("has no [[pool]]"), "{reason}");
        assert_eq!(fs::read_to_string(&file).unwrap(), "[server]\n");
    }

    #[cfg(unix)]
    #[test]
    fn a_new_configuration_has_the_mode_of_a_new_file_and_a_link_stays_a_link() {
        use std::os::unix::fs::{PermissionsExt, symlink};

        let folder = tempfile::tempdir().unwrap();
        let at = |name| folder.path().join(name);
        let add = |file: &Path, app| {
            let changed = Changed::with(file, folder.path(), app, "v1").unwrap();
            changed.write().unwrap();
        };
        let mode = |file: &Path| file.metadata().unwrap().permissions().mode();
        add(&at("switchyard.toml"), "street");
        fs::write(at("other"), "").unwrap();
        assert_eq!(mode(&at("switchyard.toml")), mode(&at("other")));

        symlink("switchyard.toml", at("link.toml")).unwrap();
        add(&at("link.toml"), "search");
        assert!(at("link.toml").is_symlink());
        let text = fs::read_to_string(at("switchyard.toml")).unwrap();
        assert!(text.contains("\"search\""), "{text}");
    }

    #[test]
    fn comments_are_kept_and_a_file_without_a_pool_is_refused() {
        let text = plain(&format!("# for the fair\n{NEW}"), "street").unwrap();
        assert!(text.starts_with("# for the fair\n"), "{text}");
        let refused = plain("[server]\n", "street").unwrap_err();
        assert!(refused.starts_with("has no [[pool]]"), "{refused}");
    }

    #[test]
    fn an_app_is_taken_out_of_its_pools() {
        let both = plain(&plain(NEW, "street").unwrap(), "search").unwrap();
        let one = removed(&both, "street", None).unwrap();
        assert!(one.contains("apps = [ \"search\"]"), "{one}");
        assert!(!one.contains("street"), "{one}");
        let some = removed(&both, "street", Some(&["night".to_owned()])).unwrap();
        assert!(some.contains("variants = [\"night\"]"), "{some}");
        let refused = removed(&one, "street", None).unwrap_err();
        assert_eq!(refused, "has no app street");
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
