//! The model zoo as a source of models.

use std::path::PathBuf;
use std::sync::Arc;

use candle_core::Device;
use switchyard_core::ids::VariantId;

use crate::error::LoadError;
use crate::source::{InputSpec, LoadedModel, ModelSource};

/// Loads variants from their folders. Positions are the catalog's variant ids.
#[derive(Clone, Debug, Default)]
pub struct ZooSource {
    entries: Vec<ZooEntry>,
}

/// Where one variant is and what is known of it without reading its weights.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZooEntry {
    /// `app/variant`.
    pub name: String,
    /// The variant's folder.
    pub dir: PathBuf,
    /// What its app's requests hold.
    pub inputs: Arc<[InputSpec]>,
    /// Positions of the inputs that it reads, ascending.
    pub reads: Vec<usize>,
    /// Bytes its weights take on a device.
    pub memory_bytes: u64,
}

// === impl ZooSource ===

impl ZooSource {
    /// A source of these variants.
    pub fn new(entries: Vec<ZooEntry>) -> Arc<Self> {
        Arc::new(Self { entries })
    }

    fn entry(&self, variant: VariantId) -> Result<&ZooEntry, LoadError> {
        self.entries.get(variant.index()).ok_or_else(|| LoadError {
            variant: self.name(variant),
            reason: format!("not one of the {} variants known", self.entries.len()),
        })
    }
}

impl ModelSource for ZooSource {
    fn name(&self, variant: VariantId) -> String {
        match self.entries.get(variant.index()) {
            Some(entry) => entry.name.clone(),
            None => format!("variant {}", variant.0),
        }
    }

    fn memory_bytes(&self, variant: VariantId) -> Result<u64, LoadError> {
        Ok(self.entry(variant)?.memory_bytes)
    }

    fn load(&self, variant: VariantId, device: &Device) -> Result<LoadedModel, LoadError> {
        let entry = self.entry(variant)?;
        let loaded =
            switchyard_models::load_variant(&entry.dir, device).map_err(|error| LoadError {
                variant: entry.name.clone(),
                reason: error.to_string(),
            })?;
        Ok(LoadedModel {
            name: entry.name.clone(),
            model: loaded.model,
            inputs: Arc::clone(&entry.inputs),
            reads: entry.reads.clone(),
            bytes: loaded.bytes,
        })
    }
}
