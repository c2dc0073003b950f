//! `switchyard add`: serve a model from its own files.

mod files;
mod hub;
mod source;
mod values;

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use switchyard_executor::LoadedModel;
use switchyard_models::card::{APP_CARD, Task, VARIANT_CARD};
use switchyard_models::networks::bert::{Pooling, ScoreActivation};
use switchyard_models::networks::inverted::ImagePadding;
use switchyard_models::onnx::OnnxScores;
use switchyard_models::zoo::{Description, Preprocessing, Statement, describe};
use switchyard_models::{AppCard, VariantCard};
use switchyard_server::ingress::ANY_VARIANT;

use self::files::{try_out, write, write_card, written};
use self::source::{Found, Source};
use self::values::{activation, padding, pooling, quality, scores, shape, task};
use super::config_file::Changed;
use super::failure::Failure;
use super::output::{Folders, check_file, check_folder};
use super::print;
use super::running::{self, Taken};
use crate::probe::Answer;
use crate::quality::{self as measuring, LABEL, Measured};

/// Serve a model from its own files: writes its cards, tries it and names it in a configuration
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  switchyard add detector.onnx
  switchyard add resnet50.onnx --classes imagenet.txt --quality 0.76
  switchyard add flowers.onnx --data flowers/test
  switchyard add resnet50.safetensors --classes imagenet.txt
  switchyard add hf:sentence-transformers/all-MiniLM-L6-v2 --as search/minilm
  switchyard add encoder.onnx --shape input_ids=64 --shape attention_mask=64
  switchyard serve --config switchyard.toml

A server that runs with the configuration takes the model in while it serves. An ONNX graph answers
with its own outputs (task \"tensors\"); with --classes it classifies. A folder of Hugging Face has
config.json and model.safetensors, and for texts tokenizer.json; hf:ORG/NAME@REVISION downloads it, with
HF_ENDPOINT, HF_HOME and HF_TOKEN. The tensors of a lone *.safetensors tell its network: resnet,
efficientnet, efficientnet-v2, mobilenet-v3 or vit. A variant of an existing app must have the app's inputs and
outputs.")]
pub(super) struct AddArgs {
    /// A file *.onnx or *.safetensors, a folder of the Hugging Face hub, or hf:ORG/NAME@REVISION
    #[arg(value_name = "SOURCE")]
    source: Source,
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
    /// Labelled rows that the quality is measured on: .csv, .jsonl, .npz, or a folder of images with
    /// a folder per class
    #[arg(long, value_name = "FILE", conflicts_with = "quality")]
    data: Option<PathBuf>,
    /// Name of the labels in FILE
    #[arg(long, value_name = "NAME", default_value = LABEL)]
    label: String,
    /// Time from arrival to deadline, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 1_000.0)]
    slo_ms: f64,
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
    let found = args.source.find()?;
    let statement = args.statement(&app, &variant, &found)?;
    let mut described = describe(&found.files, &statement).map_err(Failure::input)?;
    described.variant.summary = format!("From {}", found.origin);
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
    let loaded = try_out(&mut described.variant, draft.path(), &app)?;
    let measured = args.measure(&loaded, &mut described, draft.path(), is_new)?;
    let (from, to) = match is_new {
        true => (draft.path().join(&app), args.zoo.join(&app)),
        false => (draft.path().join(&app).join(&variant), place),
    };
    fs::rename(&from, &to).map_err(|error| written(&to, &error))?;
    let config = changed.write().inspect_err(|_| {
        // The draft is removed, and the command can be repeated.
        if let Err(error) = fs::rename(&to, &from) {
            print::note(format!("{}: stays in the zoo: {error}", to.display()));
        }
    })?;
    described.notes.iter().for_each(print::note);
    print::line(args.report(&app, &described.variant, measured.as_ref()))?;
    let path = format!("/v2/models/{app}/versions/{variant}/ready");
    let is_ready = |answer: &Answer| answer.status == 200;
    match running::until(&config.server.http, &path, is_ready) {
        Taken::Yes(after) => {
            print::line(format!("the running server serves it, {after:.1?} later"))
        }
        Taken::No(address) => Err(Failure::check(running::not_taken(&address))),
        Taken::Unknown(reason) => {
            print::note(reason);
            Ok(())
        }
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
        let (app, variant) = match &self.name {
            None => (self.source.name()?.to_lowercase(), "v1".to_owned()),
            Some(name) => match name.split_once('/') {
                Some((app, variant)) => (app.to_owned(), variant.to_owned()),
                None => (name.clone(), "v1".to_owned()),
            },
        };
        let is_plain = |name: &str| {
            let known = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            !name.is_empty() && !name.starts_with('.') && name.chars().all(known)
        };
        if ANY_VARIANT.contains(&variant.as_str()) {
            return Err(Failure::input(format!(
                "--as {app}/{variant}: clients that name this version leave the choice to the policy: \
                 choose another name, --as {app}/NAME"
            )));
        }
        match is_plain(&app) && is_plain(&variant) {
            true => Ok((app, variant)),
            false => Err(Failure::input(format!(
                "--as {app}/{variant}: names have letters, digits, `-`, `_` and `.`, and begin \
                 with a letter, a digit, `-` or `_`"
            ))),
        }
    }

    fn statement(&self, app: &str, variant: &str, found: &Found) -> Result<Statement, Failure> {
        let folder = self.data.as_deref().filter(|data| data.is_dir());
        let folder = folder.filter(|_| self.task.is_none_or(|task| task.is_classify()));
        let classes = match &self.classes {
            Some(file) => {
                let text = fs::read_to_string(file)
                    .map_err(|error| Failure::input(format!("{}: {error}", file.display())))?;
                text.lines().map(|line| line.trim().to_owned()).collect()
            }
            None => match folder {
                Some(folder) => measuring::class_names(folder).map_err(Failure::input)?,
                None if self.task.is_none_or(|task| task.is_classify()) => found.classes.clone(),
                None => Vec::new(),
            },
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
            command: format!("switchyard add {}", found.origin),
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

    /// Measures the quality on the labelled rows, and puts it on the cards.
    fn measure(
        &self,
        loaded: &LoadedModel,
        described: &mut Description,
        draft: &Path,
        is_new: bool,
    ) -> Result<Option<Measured>, Failure> {
        let Some(data) = &self.data else {
            return Ok(None);
        };
        let folder = draft.join(&described.app.name);
        // With its classes, which may be in a file.
        let app = AppCard::read(&folder.join(APP_CARD)).map_err(Failure::input)?;
        let table = measuring::open(data, &self.label, &app).map_err(Failure::input)?;
        if let Some(note) = table.note() {
            print::note(note);
        }
        let max_batch = described.variant.max_batch;
        let measured = measuring::measure(loaded, &app, max_batch, &table);
        let measured = measured.map_err(Failure::input)?;
        let shown = data.display().to_string();
        measuring::on_card(&mut described.variant, &measured, &shown);
        let variant = folder.join(&described.variant.name);
        write_card(&variant.join(VARIANT_CARD), &described.variant)?;
        if is_new {
            measuring::on_app_card(&mut described.app, &measured);
            write_card(&folder.join(APP_CARD), &described.app)?;
        }
        Ok(Some(measured))
    }

    fn report(&self, app: &str, card: &VariantCard, measured: Option<&Measured>) -> String {
        let quality = match (self.quality, measured, &self.data) {
            (Some(quality), ..) => format!("quality {quality}, as stated"),
            (None, Some(measured), Some(data)) => measured.shown(&data.display().to_string()),
            _ => "quality unknown: --quality states it, --data measures it".to_owned(),
        };
        let memory = card.memory.as_ref().map_or(String::new(), |memory| {
            format!(" in {:.1} MiB", memory.bytes as f64 / f64::from(1 << 20))
        });
        format!(
            "added {app}/{}: {} parameters on {}{memory}, batches of 1 to {}, {quality}",
            card.name,
            card.parameters,
            card.architecture.engine(),
            card.max_batch,
        )
    }
}
