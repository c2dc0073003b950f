//! The variants of the shipped zoo, with inputs.

use std::path::Path;
use std::sync::Arc;

use candle_core::{Device, Tensor};
use switchyard_models::card::{APP_CARD, AppCard, VARIANT_CARD};
use switchyard_models::{StagedModel, load_variant};

use super::inputs;
use super::onnx::Onnx;
use super::times::Result;

/// Inputs of the largest batch.
const BATCH_MAX: usize = 8;

/// Largest difference to onnxruntime's logits, relative to the largest of them.
const TOLERANCE: f32 = 1e-3;

/// A variant of the zoo and inputs for it.
pub(crate) struct BenchVariant {
    /// `APP/VARIANT`.
    pub(crate) name: String,
    pub(crate) model: Arc<dyn StagedModel>,
    /// The last one.
    pub(crate) exit: usize,
    /// [`BATCH_MAX`] rows.
    rows: Vec<f32>,
}

// === impl BenchVariant ===

impl BenchVariant {
    /// The variants below `zoo` with `only` in their name, sorted.
    pub(crate) fn all(zoo: &Path, only: &str) -> Result<Vec<Self>> {
        let mut all = Vec::new();
        for app in names(zoo)? {
            let dir = zoo.join(&app);
            let card = AppCard::read(&dir.join(APP_CARD))?;
            for variant in names(&dir)? {
                let folder = dir.join(&variant);
                let name = format!("{app}/{variant}");
                if name.contains(only) && folder.join(VARIANT_CARD).exists() {
                    all.push(Self::load(&folder, &card, name)?);
                }
            }
        }
        Ok(all)
    }

    fn load(dir: &Path, app: &AppCard, name: String) -> Result<Self> {
        let loaded = load_variant(dir, &Device::Cpu)?;
        let inputs = app.inputs.iter();
        let read: Vec<_> = inputs.filter(|input| loaded.card.reads(input)).collect();
        Ok(Self {
            name,
            exit: loaded.model.exits().len() - 1,
            model: loaded.model,
            rows: inputs::rows(&read, BATCH_MAX)?,
        })
    }

    /// The first inputs, `[batch, samples]`.
    pub(crate) fn rows(&self, batch: usize) -> Result<Tensor> {
        let samples = self.rows.len() / BATCH_MAX;
        let rows = self.rows[..batch * samples].to_vec();
        Ok(Tensor::from_vec(rows, (batch, samples), &Device::Cpu)?)
    }

    /// Writes the inputs for `zoo.py`.
    pub(crate) fn write_rows(&self, folder: &Path) -> Result<()> {
        let file = folder.join(format!("{}.input", self.name.replace('/', "-")));
        let bytes: Vec<u8> = self
            .rows
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect();
        Ok(std::fs::write(file, bytes)?)
    }

    /// Both engines must compute the same network, otherwise the times prove nothing.
    pub(crate) fn compare(&self, onnx: &mut Onnx) -> Result<()> {
        let stages = 0..self.model.stages();
        let x = self.model.run_stages(stages, &self.rows(BATCH_MAX)?)?;
        let ours = self.model.logits(self.exit, &x)?;
        let ours: Vec<f32> = ours.flatten_all()?.to_vec1()?;
        let theirs = onnx.ask(&format!("logits {} {BATCH_MAX}", self.name))?;
        let theirs: Vec<f32> = serde_json::from_str(&theirs)?;
        let scale = theirs.iter().fold(0f32, |most, x| most.max(x.abs()));
        let apart = ours.iter().zip(&theirs).map(|(a, b)| (a - b).abs());
        let apart = apart.fold(0f32, f32::max) / scale;
        let name = &self.name;
        if ours.len() != theirs.len() || apart.is_nan() || apart > TOLERANCE {
            return Err(format!("{name}: logits differ by {apart:.1e} of the largest").into());
        }
        println!("{name}: logits differ by {apart:.1e} of the largest");
        Ok(())
    }
}

/// Names in a folder, sorted.
fn names(folder: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}
