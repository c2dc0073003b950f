//! A set of tables from the policy's artifacts, matched with the catalog.

use ramsis_tables::{INDEX_FILE, Set, Table};
use switchyard_sdk::host::{self, ArtifactError};
use switchyard_sdk::{AppId, Catalog, VariantId};

/// A set's index, read and not yet matched.
#[derive(Clone, Debug)]
pub(crate) struct Index {
    pub(crate) folder: String,
    pub(crate) set: Set,
}

/// A set whose app and variants the catalog has.
#[derive(Clone, Debug)]
pub(crate) struct Matched {
    pub(crate) index: Index,
    pub(crate) app: AppId,
    /// The set's variants.
    pub(crate) variants: Vec<VariantId>,
}

/// The tables for one kind of worker, by ascending load.
#[derive(Clone, Debug)]
pub(crate) struct Sheet {
    pub(crate) set: Set,
    pub(crate) variants: Vec<VariantId>,
    pub(crate) tables: Vec<Table>,
}

// === impl Index ===

impl Index {
    /// Reads a folder's index.
    ///
    /// # Errors
    /// It is not there, and how it is made; or what in it is at fault.
    pub(crate) fn read(folder: &str) -> Result<Self, String> {
        let folder = folder.trim_end_matches('/');
        let bytes = artifact(folder, INDEX_FILE)?;
        let text = String::from_utf8(bytes).map_err(|_| at(folder, "is no text"))?;
        let set = Set::parse(&text).map_err(|error| at(folder, &error.to_string()))?;
        Ok(Self {
            folder: folder.to_owned(),
            set,
        })
    }

    /// Finds the set's app and variants in the catalog.
    ///
    /// # Errors
    /// What of it the catalog does not have.
    pub(crate) fn matched(self, catalog: &Catalog) -> Result<Matched, String> {
        let Self { folder, set } = &self;
        let app = match &set.app {
            Some(name) => catalog.app_named(name),
            None if catalog.apps().len() == 1 => catalog.apps().next(),
            None => {
                let apps = catalog.apps().len();
                return Err(at(folder, &format!("names no app, and there are {apps}")));
            }
        };
        let app = app.ok_or_else(|| {
            let name = set.app.as_deref().unwrap_or_default();
            at(folder, &format!("there is no app {name}"))
        })?;
        let mut variants = Vec::new();
        for name in &set.variants {
            let mut of_app = catalog.variants_of(app.id);
            let found = of_app.find(|variant| variant.name == *name);
            let found = found.ok_or_else(|| {
                let app = &app.name;
                at(folder, &format!("app {app} has no variant {name}"))
            })?;
            variants.push(found.id);
        }
        Ok(Matched {
            app: app.id,
            variants,
            index: self,
        })
    }
}

// === impl Matched ===

impl Matched {
    /// Reads the tables themselves.
    ///
    /// # Errors
    /// The file that is not there or cannot be used.
    pub(crate) fn read(self) -> Result<Sheet, String> {
        let Index { folder, set } = self.index;
        let mut tables = Vec::new();
        for entry in &set.tables {
            let bytes = artifact(&folder, &entry.file)?;
            let table = Table::parse(&entry.file, &bytes, &set);
            tables.push(table.map_err(|error| at(&folder, &error.to_string()))?);
        }
        Ok(Sheet {
            set,
            variants: self.variants,
            tables,
        })
    }
}

/// A complaint about a folder.
pub(crate) fn at(folder: &str, what: &str) -> String {
    format!("tables {folder}: {what}")
}

fn artifact(folder: &str, file: &str) -> Result<Vec<u8>, String> {
    host::read_artifact(&format!("{folder}/{file}")).map_err(|error| match error {
        ArtifactError::NotFound => at(
            folder,
            &format!("there is no artifact {file}; `switchyard prepare ramsis` makes it"),
        ),
        ArtifactError::TooLarge(bytes) => {
            at(folder, &format!("{file}: {bytes} are too many bytes"))
        }
        error => at(folder, &format!("{file}: {error:?}")),
    })
}
