//! Where a model's files are.

use std::path::PathBuf;
use std::str::FromStr;

use super::hub::{self, HubModel};
use crate::commands::failure::Failure;

/// Begins the id of a model of the hub.
const HUB: &str = "hf:";

/// The files of a model, or its id.
#[derive(Clone, Debug)]
pub(super) enum Source {
    /// A file or a folder.
    Files(PathBuf),
    /// A model of the Hugging Face hub.
    Hub(HubModel),
}

/// The files of a model on this machine.
pub(super) struct Found {
    /// A graph, or a folder.
    pub(super) files: PathBuf,
    /// For a reader: the path, or the id with its revision.
    pub(super) origin: String,
    /// Names of a graph's classes, if they were published with it.
    pub(super) classes: Vec<String>,
}

impl FromStr for Source {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.strip_prefix(HUB) {
            Some(id) => id.parse().map(Self::Hub),
            None => Ok(Self::Files(PathBuf::from(text))),
        }
    }
}

// === impl Source ===

impl Source {
    /// The name of the file, the folder or the model.
    pub(super) fn name(&self) -> Result<String, Failure> {
        match self {
            Self::Hub(model) => Ok(model.name().to_owned()),
            Self::Files(path) => {
                let resolved = path
                    .canonicalize()
                    .map_err(|error| Failure::input(format!("{}: {error}", path.display())))?;
                let stem = resolved.file_stem().unwrap_or_default();
                Ok(stem.to_string_lossy().into_owned())
            }
        }
    }

    /// The files; those of the hub are downloaded.
    pub(super) fn find(&self) -> Result<Found, Failure> {
        match self {
            Self::Files(path) => Ok(Found {
                files: path.clone(),
                origin: path.display().to_string(),
                classes: Vec::new(),
            }),
            Self::Hub(model) => {
                let downloaded = hub::download(model).map_err(Failure::input)?;
                Ok(Found {
                    files: downloaded.files,
                    origin: format!("{HUB}{model}@{}", downloaded.commit),
                    classes: downloaded.classes,
                })
            }
        }
    }
}
