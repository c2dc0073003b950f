//! The folders of a zoo and their cards.

use std::path::{Path, PathBuf};

use super::card::{APP_CARD, AppCard, VARIANT_CARD, VariantCard};
use super::fit::check_fit;
use crate::error::ModelError;
use crate::evidence::SneakPeek;
use crate::weights::precision::Precision;

/// Every application of a folder, in order of name.
#[derive(Clone, Debug)]
pub struct Zoo {
    /// The folder.
    pub dir: PathBuf,
    /// The applications.
    pub apps: Vec<ZooApp>,
}

/// One application and its variants, in order of name.
#[derive(Clone, Debug)]
pub struct ZooApp {
    /// The application's folder.
    pub dir: PathBuf,
    /// Its card.
    pub card: AppCard,
    /// Its variants.
    pub variants: Vec<ZooVariant>,
}

/// One variant, not yet loaded.
#[derive(Clone, Debug)]
pub struct ZooVariant {
    /// The variant's folder, for [`load_variant`](super::load_variant).
    pub dir: PathBuf,
    /// Its card.
    pub card: VariantCard,
}

// === impl Zoo ===

impl Zoo {
    /// Reads and checks every card under `dir`. Folders without an application card are skipped.
    ///
    /// # Errors
    /// A folder or card cannot be read or is wrong, or a variant does not fit its application.
    pub fn open(dir: &Path) -> Result<Self, ModelError> {
        let mut apps = Vec::new();
        for app_dir in folders_with(dir, APP_CARD)? {
            apps.push(ZooApp::open(&app_dir)?);
        }
        Ok(Self {
            dir: dir.to_path_buf(),
            apps,
        })
    }

    /// The application called `name`.
    pub fn app(&self, name: &str) -> Option<&ZooApp> {
        self.apps.iter().find(|app| app.card.name == name)
    }
}

// === impl ZooApp ===

impl ZooApp {
    /// Reads and checks one application's folder.
    ///
    /// # Errors
    /// As [`Zoo::open`].
    pub fn open(dir: &Path) -> Result<Self, ModelError> {
        let file = dir.join(APP_CARD);
        let card = AppCard::read(&file)?;
        check_folder_name(&file, dir, &card.name)?;
        let mut variants = Vec::new();
        for variant_dir in folders_with(dir, VARIANT_CARD)? {
            let file = variant_dir.join(VARIANT_CARD);
            let variant = VariantCard::read(&file)?;
            check_folder_name(&file, &variant_dir, &variant.name)?;
            check_fit(&file, &card, &variant)?;
            variants.push(ZooVariant {
                dir: variant_dir,
                card: variant,
            });
        }
        Ok(Self {
            dir: dir.to_path_buf(),
            card,
            variants,
        })
    }

    /// The variant called `name`.
    pub fn variant(&self, name: &str) -> Option<&ZooVariant> {
        self.variants
            .iter()
            .find(|variant| variant.card.name == name)
    }

    /// The variant of `NAME` or `NAME@PRECISION`.
    pub fn variant_at(&self, name: &str) -> Option<(&ZooVariant, Precision)> {
        let (name, precision) = Precision::split(name).ok()?;
        Some((self.variant(name)?, precision))
    }

    /// Opens the application's nearest-neighbour evidence, if it has any.
    ///
    /// # Errors
    /// The file cannot be read or does not fit the card.
    pub fn sneakpeek(&self) -> Result<Option<SneakPeek>, ModelError> {
        let Some(card) = &self.card.sneakpeek else {
            return Ok(None);
        };
        let file = self.dir.join(&card.file);
        let (samples, classes) = (self.card.samples(), self.card.classes.len());
        SneakPeek::open(&file, card.features.clone(), samples, classes).map(Some)
    }
}

/// The folders directly under `dir` that hold `card`, sorted by name.
fn folders_with(dir: &Path, card: &str) -> Result<Vec<PathBuf>, ModelError> {
    let failed = |source| ModelError::io(dir, source);
    let mut folders = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.join(card).is_file() {
            folders.push(path);
        }
    }
    folders.sort();
    Ok(folders)
}

fn check_folder_name(file: &Path, dir: &Path, name: &str) -> Result<(), ModelError> {
    // `open(".")` has no last component to compare with; resolve it first.
    let resolved = dir
        .canonicalize()
        .map_err(|source| ModelError::io(dir, source))?;
    if resolved.file_name() == Some(name.as_ref()) {
        return Ok(());
    }
    let reason = format!("`{name}` differs from the folder's name");
    Err(ModelError::field(file, "name", reason))
}
