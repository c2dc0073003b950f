//! `switchyard add`: serve a model from its own files.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use switchyard_core::ids::VariantId;
use switchyard_executor::manifest::Manifest;
use switchyard_executor::{Device, ModelSource, trial};
use switchyard_models::card::{APP_CARD, Task, VARIANT_CARD};
use switchyard_models::networks::bert::{Pooling, ScoreActivation};
use switchyard_models::networks::inverted::ImagePadding;
use switchyard_models::onnx::{OnnxScores, engine_of};
use switchyard_models::zoo::{Description, Preprocessing, Statement, describe};
use switchyard_models::{AppCard, Architecture, VariantCard, Zoo};

use super::config_file::Changed;
use super::failure::Failure;
use super::output::{Folders, check_file, check_folder};
use super::print;
use super::running::{self, Taken};

/// Serve a model from its own files: writes its cards, tries it and names it in a configuration
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  switchyard add detector.onnx
  switchyard add resnet50.onnx --classes imagenet.txt --quality 0.76
  switchyard add resnet50.safetensors --classes imagenet.txt
  switchyard add all-MiniLM-L6-v2/ --as search/minilm
  switchyard add encoder.onnx --shape input_ids=64 --shape attention_mask=64
  switchyard serve --config switchyard.toml

A server that runs with the configuration takes the model in while it serves. An ONNX graph answers with its own outputs (task \"tensors\"); with --classes it classifies. A folder
of Hugging Face has config.json and model.safetensors, and for texts tokenizer.json. The tensors of a
lone *.safetensors tell its network: resnet, efficientnet, efficientnet-v2, mobilenet-v3 or vit. A
variant of an existing app must have the app's inputs and outputs.")]
pub(super) struct AddArgs {
    /// A file *.onnx or *.safetensors, or a folder as downloaded from the Hugging Face hub
    #[arg(value_name = "SOURCE")]
    source: PathBuf,
    /// Names of the app and of the variant [default: SOURCE's name, and \"v1\"]
    #[arg(long = "as", value_name = "APP[/VARIANT]")]
    name: Option<String>,
    /// Folder of models, which is made
    #[arg(long, value_name = "DIR", default_value = "models/zoo")]
    zoo: PathBuf,
    /// Configuration that gets the app; made if it is missing
    #[arg(long, value_name = "FILE", default_value = "switchyard.toml")]
    config: PathBuf,
    /// classify, embed, regress, score or tensors [default: read from SOURCE]
    #[arg(long, value_name = "TASK", value_parser = task)]
    task: Option<Task>,
    /// File with a class name per line: the graph classifies
    #[arg(long, value_name = "FILE")]
    classes: Option<PathBuf>,
    /// Meaning of a classifier's numbers: logits or probabilities
    #[arg(long, value_name = "MEANING", value_parser = scores)]
    scores: Option<OnnxScores>,
    /// The output with the classifier's numbers, if the graph has several
    #[arg(long, value_name = "NAME")]
    output: Option<String>,
    /// From an encoder's tokens to an embedding, if its files do not say it: mean, cls, max or
    /// last-token
    #[arg(long, value_name = "WAY", value_parser = pooling)]
    pooling: Option<Pooling>,
    /// Whether an encoder's embedding is scaled to length 1, if its files do not say it
    #[arg(long, value_name = "true|false")]
    normalise: Option<bool>,
    /// Texts that an encoder reads together, if its files do not say it: 1, or 2 for a pair
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=2))]
    texts: Option<u8>,
    /// From an encoder's only output to a score, if its files do not say it: identity or sigmoid
    #[arg(long, value_name = "FUNCTION", value_parser = activation)]
    activation: Option<ScoreActivation>,
    /// Zeros around the images of a network, if its tensors do not say it: centred, or same as
    /// TensorFlow's
    #[arg(long, value_name = "WAY", value_parser = padding)]
    padding: Option<ImagePadding>,
    /// Common shape of an input with open dimensions, without the batch: NAME=64 or NAME=3x640x640;
    /// of weights over images, their size: image=3x224x224
    #[arg(long = "shape", value_name = "NAME=SHAPE", value_parser = shape)]
    shapes: Vec<(String, Vec<usize>)>,
    /// Clients send JPEG, PNG or WebP: a preprocessor_config.json, or "none" for tensors [default: the
    /// file next to SOURCE]
    #[arg(long, value_name = "FILE")]
    image: Option<PathBuf>,
    /// Largest batch
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=1024))]
    max_batch: u32,
    /// Share of right answers, or another quality from 0 to 1; policies compare variants by it
    #[arg(long, value_name = "Q", value_parser = quality)]
    quality: Option<f64>,
    /// Time from arrival to deadline, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 1_000.0)]
    slo_ms: f64,
}

fn task(text: &str) -> Result<Task, String> {
    let all = [
        Task::Classify,
        Task::Embed,
        Task::Regress,
        Task::Score,
        Task::Tensors,
    ];
    let found = all.into_iter().find(|task| task.name() == text);
    found.ok_or_else(|| "expected classify, embed, regress, score or tensors".to_owned())
}

fn scores(text: &str) -> Result<OnnxScores, String> {
    match text {
        "logits" => Ok(OnnxScores::Logits),
        "probabilities" => Ok(OnnxScores::Probabilities),
        _ => Err("expected logits or probabilities".to_owned()),
    }
}

fn pooling(text: &str) -> Result<Pooling, String> {
    match text {
        "mean" => Ok(Pooling::Mean),
        "cls" => Ok(Pooling::Cls),
        "max" => Ok(Pooling::Max),
        "last-token" => Ok(Pooling::LastToken),
        _ => Err("expected mean, cls, max or last-token".to_owned()),
    }
}

fn activation(text: &str) -> Result<ScoreActivation, String> {
    match text {
        "identity" => Ok(ScoreActivation::Identity),
        "sigmoid" => Ok(ScoreActivation::Sigmoid),
        _ => Err("expected identity or sigmoid".to_owned()),
    }
}

fn padding(text: &str) -> Result<ImagePadding, String> {
    match text {
        "centred" => Ok(ImagePadding::Centred),
        "same" => Ok(ImagePadding::Same),
        _ => Err("expected centred or same".to_owned()),
    }
}

fn quality(text: &str) -> Result<f64, String> {
    let quality: f64 = text.parse().map_err(|_| "expected a number")?;
    match (0.0..=1.0).contains(&quality) {
        true => Ok(quality),
        false => Err("expected a number from 0 to 1".to_owned()),
    }
}

fn shape(text: &str) -> Result<(String, Vec<usize>), String> {
    let refuse = || "expected NAME=SIZE or NAME=SIZExSIZE".to_owned();
    let (name, sizes) = text.split_once('=').ok_or_else(refuse)?;
    let sizes = sizes
        .split('x')
        .map(|size| size.parse().map_err(|_| refuse()));
    Ok((name.to_owned(), sizes.collect::<Result<_, _>>()?))
}

/// Writes the cards, tries the model and names it in the configuration.
pub(super) fn run(args: &AddArgs) -> Result<(), Failure> {
    let (app, variant) = args.names()?;
    check_folder("--zoo", &args.zoo)?;
    check_file("--config", &args.config, Folders::Exist)?;
    let place = args.zoo.join(&app).join(&variant);
    if place.exists() {
        return Err(Failure::input(format!(
            "{}: exists; choose another variant: --as {app}/NAME",
            place.display()
        )));
    }
    let statement = args.statement(&app, &variant)?;
    let mut described = describe(&args.source, &statement).map_err(Failure::input)?;
    fs::create_dir_all(&args.zoo).map_err(|error| written(&args.zoo, &error))?;
    // Everything is tried in a folder of its own, on the same disk.
    let draft = tempfile::Builder::new()
        .prefix(".adding-")
        .tempdir_in(&args.zoo);
    let draft = draft.map_err(|error| written(&args.zoo, &error))?;
    let is_new = !args.zoo.join(&app).join(APP_CARD).is_file();
    if !is_new {
        args.check_images(&described, &args.zoo.join(&app).join(APP_CARD))?;
    }
    // Read first: a wrong configuration leaves no model behind.
    let changed = Changed::with(&args.config, &args.zoo, &app, &variant)?;
    write(&described, draft.path(), &args.zoo, is_new)?;
    try_out(&mut described.variant, draft.path(), &app)?;
    let (from, to) = match is_new {
        true => (draft.path().join(&app), args.zoo.join(&app)),
        false => (draft.path().join(&app).join(&variant), place),
    };
    fs::rename(&from, &to).map_err(|error| written(&to, &error))?;
    changed.write()?;
    described.notes.iter().for_each(print::note);
    print::line(args.report(&app, &described.variant))?;
    let path = format!("/v2/models/{app}/versions/{variant}/ready");
    match running::until(changed.config().server.http, &path, 200) {
        Taken::Yes(after) => {
            print::line(format!("the running server serves it, {after:.1?} later"))
        }
        Taken::No(address) => Err(Failure::check(running::not_taken(address))),
        Taken::NoServer => {
            let config = args.config.display();
            print::line(format!("serve it: switchyard serve --config {config}"))
        }
    }
}

// === impl AddArgs ===

impl AddArgs {
    /// The names of the app and the variant, which are names of folders.
    fn names(&self) -> Result<(String, String), Failure> {
        let resolved = self
            .source
            .canonicalize()
            .map_err(|error| Failure::input(format!("{}: {error}", self.source.display())))?;
        let stem = resolved.file_stem().unwrap_or_default().to_string_lossy();
        let (app, variant) = match &self.name {
            None => (stem.to_lowercase(), "v1".to_owned()),
            Some(name) => match name.split_once('/') {
                Some((app, variant)) => (app.to_owned(), variant.to_owned()),
                None => (name.clone(), "v1".to_owned()),
            },
        };
        let is_plain = |name: &str| {
            let known = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            !name.is_empty() && !name.starts_with('.') && name.chars().all(known)
        };
        match is_plain(&app) && is_plain(&variant) {
            true => Ok((app, variant)),
            false => Err(Failure::input(format!(
                "--as {app}/{variant}: names have letters, digits, `-`, `_` and `.`, and begin \
                 with a letter, a digit, `-` or `_`"
            ))),
        }
    }

    fn statement(&self, app: &str, variant: &str) -> Result<Statement, Failure> {
        let classes = match &self.classes {
            Some(file) => {
                let text = fs::read_to_string(file)
                    .map_err(|error| Failure::input(format!("{}: {error}", file.display())))?;
                text.lines().map(|line| line.trim().to_owned()).collect()
            }
            None => Vec::new(),
        };
        if !(self.slo_ms.is_finite() && self.slo_ms > 0.0) {
            let slo_ms = self.slo_ms;
            return Err(Failure::input(format!(
                "--slo-ms {slo_ms}: must be above 0"
            )));
        }
        Ok(Statement {
            app: app.to_owned(),
            variant: variant.to_owned(),
            task: self.task,
            classes,
            scores: self.scores,
            output: self.output.clone(),
            pooling: self.pooling,
            normalise: self.normalise,
            texts: self.texts.map(usize::from),
            activation: self.activation,
            padding: self.padding,
            typical: self.shapes.clone(),
            preprocessing: match &self.image {
                None => Preprocessing::Derived,
                Some(file) if file.as_os_str() == "none" => Preprocessing::None,
                Some(file) => Preprocessing::File(file.clone()),
            },
            max_batch: self.max_batch as usize,
            quality: self.quality,
            slo_ms: self.slo_ms,
            command: format!("switchyard add {}", self.source.display()),
        })
    }

    /// Refuses a variant whose images become other tensors than those of its app: the app's card is
    /// kept, and the variant would answer wrongly.
    fn check_images(&self, described: &Description, card: &Path) -> Result<(), Failure> {
        let app = AppCard::read(card).map_err(Failure::input)?;
        let own = described
            .app
            .inputs
            .iter()
            .find_map(|input| input.image.as_ref());
        let kept = app.inputs.iter().find_map(|input| input.image.as_ref());
        // Where clients send tensors, they have made them for this app.
        let is_stated = self.image.is_some();
        if own.is_none() || own == kept || kept.is_none() && !is_stated {
            return Ok(());
        }
        let card = card.display();
        Err(Failure::input(format!(
            "{card}: inputs.image: makes other tensors than the preprocessor_config.json of the new \
             variant: add it as another app (--as NAME), or keep the app's with --image none"
        )))
    }

    fn report(&self, app: &str, card: &VariantCard) -> String {
        let engine = match &card.architecture {
            Architecture::Onnx(spec) => engine_of(spec),
            _ => "switchyard's own kernels",
        };
        let quality = match self.quality {
            Some(quality) => format!("quality {quality}, as stated"),
            None => "quality unknown: --quality states it".to_owned(),
        };
        format!(
            "added {app}/{}: {} parameters on {engine}, batches of 1 to {}, {quality}",
            card.name, card.parameters, card.max_batch,
        )
    }
}

fn written(path: &Path, error: &std::io::Error) -> Failure {
    Failure::input(format!("{}: {error}", path.display()))
}

/// Writes the cards and the files below `draft`; those of an existing app are copied.
fn write(described: &Description, draft: &Path, zoo: &Path, is_new: bool) -> Result<(), Failure> {
    let app = draft.join(&described.app.name);
    let variant = app.join(&described.variant.name);
    fs::create_dir_all(&variant).map_err(|error| written(&variant, &error))?;
    match is_new {
        true => write_card(&app.join(APP_CARD), &described.app)?,
        false => copy_files(&zoo.join(&described.app.name), &app)?,
    }
    write_card(&variant.join(VARIANT_CARD), &described.variant)?;
    for (from, to) in &described.files {
        copy(from, &variant.join(to))?;
    }
    Ok(())
}

fn write_card(file: &Path, card: &impl Serialize) -> Result<(), Failure> {
    let text = toml::to_string(card).map_err(Failure::check)?;
    fs::write(file, text).map_err(|error| written(file, &error))
}

/// Copies the files of a folder, not its folders: the card of an app and the files that it names.
fn copy_files(from: &Path, to: &Path) -> Result<(), Failure> {
    for entry in fs::read_dir(from).map_err(|error| written(from, &error))? {
        let entry = entry.map_err(|error| written(from, &error))?;
        if entry.path().is_file() {
            copy(&entry.path(), &to.join(entry.file_name()))?;
        }
    }
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<(), Failure> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder).map_err(|error| written(folder, &error))?;
    }
    let copied = fs::copy(from, to).map_err(|error| written(from, &error));
    copied.map(drop)
}

/// Reads the cards as a server does, and runs one input and, where the card allows it, two. A graph
/// that cannot run two gets batches of one.
fn try_out(card: &mut VariantCard, draft: &Path, app: &str) -> Result<(), Failure> {
    let zoo = Zoo::open(draft).map_err(Failure::input)?;
    let manifest = Manifest::all(&zoo).map_err(Failure::input)?;
    // The only variant of the draft.
    let loaded = manifest.source.load(VariantId(0), &Device::Cpu);
    let loaded = loaded.map_err(Failure::input)?;
    trial::run(&loaded, &Device::Cpu).map_err(Failure::input)?;
    if card.max_batch == 1 {
        return Ok(());
    }
    if let Err(error) = trial::run_rows(&loaded, 2) {
        print::note(format!(
            "batches of 1, because two requests do not run together: {error}"
        ));
        card.max_batch = 1;
        write_card(&draft.join(app).join(&card.name).join(VARIANT_CARD), card)?;
    }
    Ok(())
}
