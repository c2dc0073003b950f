//! The model zoo as a source of models.

use std::path::PathBuf;
use std::sync::Arc;

use candle_core::Device;
use switchyard_core::ids::VariantId;
use switchyard_models::card::VARIANT_CARD;
use switchyard_models::{Precision, VariantCard};

use crate::error::LoadError;
use crate::source::{InputSpec, LoadedModel, ModelSource};

/// Loads variants from their folders. Positions are the catalog's variant ids.
#[derive(Clone, Debug, Default)]
pub struct ZooSource {
    entries: Vec<ZooEntry>,
}

/// The folder of a variant, and the facts that are known without reading its weights.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZooEntry {
    /// `app/variant`.
    pub name: String,
    /// The variant's folder.
    pub dir: PathBuf,
    /// The precision of its weights.
    pub precision: Precision,
    /// The inputs of its app's requests.
    pub inputs: Arc<[InputSpec]>,
    /// Positions of the inputs that it reads, ascending.
    pub reads: Vec<usize>,
    /// Bytes its weights take on a device.
    pub memory_bytes: u64,
    /// The facts of its card that the catalog relies on.
    pub contract: CardContract,
}

/// The facts of a model card that the catalog, the profile and requests under way rely on. A
/// variant that is read again must keep them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CardContract {
    parameters: u64,
    classes: usize,
    stages: usize,
    /// Name and stages before it.
    exits: Vec<(String, usize)>,
    max_batch: usize,
    /// Names of the inputs that it reads.
    inputs: Option<Vec<String>>,
}

// === impl CardContract ===

impl CardContract {
    /// The contract of this card.
    pub fn of(card: &VariantCard) -> Self {
        let exits = card.exits.iter();
        Self {
            parameters: card.parameters,
            classes: card.architecture.classes(),
            stages: card.stages,
            exits: exits.map(|e| (e.name.clone(), e.after_stage)).collect(),
            max_batch: card.max_batch,
            inputs: card.inputs.clone(),
        }
    }

    /// The first field in which another card differs, in words.
    fn difference(&self, card: &VariantCard) -> Option<String> {
        let now = Self::of(card);
        let exits = |exits: &[(String, usize)]| {
            let exits = exits.iter().map(|(name, after)| format!("{name}@{after}"));
            exits.collect::<Vec<_>>().join(" ")
        };
        let names = |inputs: &Option<Vec<String>>| {
            let inputs = inputs.as_ref().map(|inputs| inputs.join(" "));
            inputs.unwrap_or_else(|| "all".to_owned())
        };
        let number = |field, then: u64, now: u64| (field, then.to_string(), now.to_string());
        let size = |field, then: usize, now: usize| number(field, then as u64, now as u64);
        let fields = [
            number("parameters", self.parameters, now.parameters),
            size("architecture.classes", self.classes, now.classes),
            size("stages", self.stages, now.stages),
            ("exits", exits(&self.exits), exits(&now.exits)),
            size("max_batch", self.max_batch, now.max_batch),
            ("inputs", names(&self.inputs), names(&now.inputs)),
        ];
        let differs = fields.iter().find(|(_, then, now)| then != now);
        differs.map(|(field, then, now)| {
            format!("`{field}` is {now} now, the pool started with {then}")
        })
    }
}

// === impl ZooSource ===

impl ZooSource {
    /// The variants, by position.
    pub fn entries(&self) -> &[ZooEntry] {
        &self.entries
    }

    /// A source of these variants.
    pub fn new(entries: Vec<ZooEntry>) -> Arc<Self> {
        Arc::new(Self { entries })
    }

    fn entry(&self, variant: VariantId) -> Result<&ZooEntry, LoadError> {
        self.entries.get(variant.index()).ok_or_else(|| {
            let reason = format!("not one of the {} variants known", self.entries.len());
            LoadError::new(self.name(variant), reason)
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
        let loaded = switchyard_models::load_variant_at(&entry.dir, entry.precision, device)
            .map_err(|error| LoadError::new(&entry.name, error.to_string()))?;
        if let Some(difference) = entry.contract.difference(&loaded.card) {
            let card = entry.dir.join(VARIANT_CARD);
            let reason = format!("{}: {difference}", card.display());
            return Err(LoadError::new(&entry.name, reason));
        }
        Ok(LoadedModel {
            name: entry.name.clone(),
            model: loaded.model,
            inputs: Arc::clone(&entry.inputs),
            reads: entry.reads.clone(),
            bytes: loaded.bytes,
        })
    }
}
