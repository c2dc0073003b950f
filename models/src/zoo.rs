//! The zoo: a folder of applications, each a folder of variants.
//!
//! `ZOO/APP/app.toml`, `ZOO/APP/VARIANT/model.toml` and the weights beside it. Opening reads and
//! checks every card; weights are read when a variant is loaded.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use candle_core::{DType, Device};

use crate::architecture::Architecture;
use crate::card::{APP_CARD, AppCard, Datatype, Task, TensorCard, VARIANT_CARD, VariantCard};
use crate::device::Standing;
use crate::error::ModelError;
use crate::evidence::SneakPeek;
use crate::flow::Mode;
use crate::model::StagedModel;
use crate::onnx;
use crate::params::Params;
use crate::precision::Precision;

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
    /// The variant's folder; what [`load_variant`] takes.
    pub dir: PathBuf,
    /// Its card.
    pub card: VariantCard,
}

/// A variant with its weights on a device.
pub struct LoadedVariant {
    /// Its card.
    pub card: VariantCard,
    /// The network.
    pub model: Arc<dyn StagedModel>,
    /// Bytes its parameters occupy on the device.
    pub bytes: u64,
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

    /// The variant that `NAME` or `NAME@PRECISION` stands for.
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

/// Loads the variant in folder `dir` onto `device`, as it was trained.
///
/// # Errors
/// The card or the weights cannot be read, do not fit each other, or do not fit on the device.
pub fn load_variant(dir: &Path, device: &Device) -> Result<LoadedVariant, ModelError> {
    load_variant_at(dir, Precision::F32, device)
}

/// Loads the variant in folder `dir` onto `device`, the weights of its products in `precision`.
///
/// # Errors
/// As [`load_variant`]; or a weight is too large for the precision.
pub fn load_variant_at(
    dir: &Path,
    precision: Precision,
    device: &Device,
) -> Result<LoadedVariant, ModelError> {
    // No kernel multiplies half precision: its weights are widened as they are used.
    let way = match device {
        Device::Cpu if precision != Precision::F16 => Way::Packed,
        Device::Cpu => Way::Widened,
        _ => Way::Device,
    };
    load(dir, device, precision, way)
}

/// As [`load_variant`], but computing as training does, with candle's operations, on any device:
/// what the CPU's kernels are held against.
///
/// # Errors
/// As [`load_variant`].
pub fn load_variant_plain(dir: &Path, device: &Device) -> Result<LoadedVariant, ModelError> {
    load(dir, device, Precision::F32, Way::Widened)
}

/// As [`load_variant_at`] on a device that has no kernels of ours, such as a card, but on the CPU:
/// the same operations in the same precision, so that what a card will compute can be seen on
/// machines without one.
///
/// # Errors
/// As [`load_variant_at`].
pub fn load_variant_standing_in(
    dir: &Path,
    precision: Precision,
) -> Result<LoadedVariant, ModelError> {
    let mut loaded = load(dir, &Device::Cpu, precision, Way::Device)?;
    loaded.model = Arc::new(Standing(loaded.model));
    Ok(loaded)
}

/// How what is loaded computes.
#[derive(Clone, Copy)]
enum Way {
    /// With our kernels on packed weights.
    Packed,
    /// In f32, by operations one after another; narrow weights are widened as they are used.
    Widened,
    /// As [`Way::Widened`], but with half-precision weights in half precision: a card computes in
    /// it, a processor only stores in it.
    Device,
}

impl Way {
    fn mode(self) -> Mode {
        match self {
            Self::Packed => Mode::Packed,
            Self::Widened | Self::Device => Mode::Graph,
        }
    }

    fn compute(self, precision: Precision) -> DType {
        match (self, precision) {
            (Self::Device, Precision::F16) => DType::F16,
            _ => DType::F32,
        }
    }
}

fn load(
    dir: &Path,
    device: &Device,
    precision: Precision,
    way: Way,
) -> Result<LoadedVariant, ModelError> {
    let card_file = dir.join(VARIANT_CARD);
    let card = VariantCard::read(&card_file)?;
    if let Architecture::Onnx(spec) = &card.architecture {
        if precision.is_reduced() {
            let reason =
                format!("an ONNX graph has the precision of its file, {precision} cannot be had");
            return Err(ModelError::field(&card_file, "architecture.kind", reason));
        }
        let spec = spec.clone();
        return onnx::load(dir, card, &spec, device);
    }
    let weights = dir.join(&card.weights);
    let compute = way.compute(precision);
    let mut params = Params::open(&weights, device, precision, compute, way.mode())?;
    let model = card.architecture.build(&mut params)?;
    let parameters = params.count();
    let saved_bytes = params.saved_bytes();
    params.finish()?;
    if parameters != card.parameters {
        let reason = format!("{}, the weights have {parameters}", card.parameters);
        return Err(ModelError::field(&card_file, "parameters", reason));
    }
    Ok(LoadedVariant {
        card,
        model: model.into(),
        bytes: (parameters * size_of::<f32>() as u64).saturating_sub(saved_bytes),
    })
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

fn check_fit(file: &Path, app: &AppCard, variant: &VariantCard) -> Result<(), ModelError> {
    let classes = variant.architecture.classes();
    if classes != app.classes.len() {
        let reason = format!("{classes}, the application has {}", app.classes.len());
        return Err(ModelError::field(file, "architecture.classes", reason));
    }
    let Some(ranges) = app.input_ranges(variant.inputs.as_deref()) else {
        let known: Vec<&str> = app.inputs.iter().map(|input| input.name.as_str()).collect();
        let reason = format!(
            "must be some of the application's inputs, in its order: {}",
            known.join(", ")
        );
        return Err(ModelError::field(file, "inputs", reason));
    };
    check_task(file, app, variant)?;
    let (samples, given) = (
        variant.architecture.samples(),
        ranges.iter().map(Range::len).sum::<usize>(),
    );
    if samples != given {
        let reason = format!("{samples}, the inputs it reads have {given}");
        return Err(ModelError::field(file, "architecture.samples", reason));
    }
    Ok(())
}

/// Checks that a variant makes what its application's answers are, from the kind of input it has.
fn check_task(file: &Path, app: &AppCard, variant: &VariantCard) -> Result<(), ModelError> {
    let embedding = variant.architecture.embedding();
    if embedding.is_some() != (app.task == Task::Embed) {
        let reason = format!("does not fit the application's task {:?}", app.task);
        return Err(ModelError::field(file, "architecture", reason));
    }
    if let Some(width) = embedding
        && app.outputs.iter().any(|output| output.shape != [width])
    {
        let reason = format!("{width}, the application's output is another shape");
        return Err(ModelError::field(file, "architecture.outputs", reason));
    }
    let is_read = |input: &&TensorCard| match &variant.inputs {
        Some(names) => names.contains(&input.name),
        None => true,
    };
    if let Architecture::Onnx(spec) = &variant.architecture {
        let other = |input: &&TensorCard| is_read(input) && input.datatype != spec.datatype();
        if let Some(input) = app.inputs.iter().find(other) {
            let reason = format!(
                "the graph takes {:?}, the application's input `{}` is {:?}",
                spec.datatype(),
                input.name,
                input.datatype
            );
            return Err(ModelError::field(file, "architecture.input", reason));
        }
    }
    let takes_text = variant.architecture.takes_text();
    let strange = |input: &TensorCard| (input.datatype == Datatype::Bytes) != takes_text;
    match app
        .inputs
        .iter()
        .filter(is_read)
        .find(|input| strange(input))
    {
        Some(input) if takes_text => {
            let reason = format!("takes text, input `{}` is not BYTES", input.name);
            Err(ModelError::field(file, "architecture", reason))
        }
        Some(input) => {
            let reason = format!("takes numbers, input `{}` is BYTES", input.name);
            Err(ModelError::field(file, "architecture", reason))
        }
        None => Ok(()),
    }
}
