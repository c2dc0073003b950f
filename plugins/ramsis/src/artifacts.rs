//! Sets of tables from the policy's artifacts, matched with the catalog.

use ramsis_tables::{INDEX_FILE, Set, Table};
use switchyard_sdk::host::{self, ArtifactError};
use switchyard_sdk::{AppId, Catalog, VariantId};

/// The index of a set.
#[derive(Clone, Debug)]
pub(crate) struct SetIndex {
    pub(crate) folder: String,
    pub(crate) set: Set,
}

/// A set whose app and variants are in the catalog.
#[derive(Clone, Debug)]
pub(crate) struct MatchedSet {
    pub(crate) index: SetIndex,
    pub(crate) app: AppId,
    /// The set's variants, in the set's order.
    pub(crate) variants: Vec<VariantId>,
}

/// The tables of one kind of worker, by ascending load.
#[derive(Clone, Debug)]
pub(crate) struct KindTables {
    pub(crate) set: Set,
    pub(crate) variants: Vec<VariantId>,
    pub(crate) tables: Vec<Table>,
}

// === impl SetIndex ===

impl SetIndex {
    /// Reads a folder's index.
    ///
    /// # Errors
    /// The index is missing, with the command that writes it; or the field at fault.
    pub(crate) fn read(folder: &str) -> Result<Self, String> {
        let folder = folder.trim_end_matches('/');
        let bytes = artifact(folder, INDEX_FILE)?;
        let text = String::from_utf8(bytes).map_err(|_| at(folder, "index.json is not UTF-8"))?;
        let set = Set::parse(&text).map_err(|error| at(folder, &error.to_string()))?;
        Ok(Self {
            folder: folder.to_owned(),
            set,
        })
    }

    /// Finds the set's app and variants in the catalog.
    ///
    /// # Errors
    /// The app or variant that the catalog does not have.
    pub(crate) fn matched(self, catalog: &Catalog) -> Result<MatchedSet, String> {
        let Self { folder, set } = &self;
        let app = match &set.app {
            Some(name) => catalog.app_named(name),
            None if catalog.apps().len() == 1 => catalog.apps().next(),
            None => {
                let apps = catalog.apps().len();
                return Err(at(
                    folder,
                    &format!("`app` is missing, but the pool has {apps} apps"),
                ));
            }
        };
        let app = app.ok_or_else(|| {
            let name = set.app.as_deref().unwrap_or_default();
            at(folder, &format!("`app`: the pool has no app {name}"))
        })?;
        let mut variants = Vec::new();
        for name in &set.variants {
            let mut of_app = catalog.variants_of(app.id);
            let found = of_app.find(|variant| variant.name == *name);
            let found = found.ok_or_else(|| {
                let app = &app.name;
                at(
                    folder,
                    &format!("`variants`: app {app} has no variant {name}"),
                )
            })?;
            variants.push(found.id);
        }
        Ok(MatchedSet {
            app: app.id,
            variants,
            index: self,
        })
    }
}

// === impl MatchedSet ===

impl MatchedSet {
    /// Reads the tables themselves.
    ///
    /// # Errors
    /// The file that is missing or damaged.
    pub(crate) fn read(self) -> Result<KindTables, String> {
        let SetIndex { folder, set } = self.index;
        let mut tables = Vec::new();
        for entry in &set.tables {
            let bytes = artifact(&folder, &entry.file)?;
            let table = Table::parse(&entry.file, &bytes, &set);
            tables.push(table.map_err(|error| at(&folder, &error.to_string()))?);
        }
        Ok(KindTables {
            set,
            variants: self.variants,
            tables,
        })
    }
}

/// A reason about a folder of tables.
pub(crate) fn at(folder: &str, reason: &str) -> String {
    format!("tables {folder}: {reason}")
}

fn artifact(folder: &str, file: &str) -> Result<Vec<u8>, String> {
    host::read_artifact(&format!("{folder}/{file}")).map_err(|error| match error {
        ArtifactError::NotFound => at(
            folder,
            &format!("no artifact {file}; run `switchyard prepare ramsis`"),
        ),
        ArtifactError::TooLarge(bytes) => at(
            folder,
            &format!("{file}: {bytes} bytes are too large for an artifact"),
        ),
        error => at(folder, &format!("{file}: {error:?}")),
    })
}
