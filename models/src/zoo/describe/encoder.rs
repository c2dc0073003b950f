//! The cards of a text encoder as Hugging Face publishes it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use candle_core::{DType, Device};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::super::card::{Datatype, EMBEDDING, Task, TensorCard};
use super::export;
use super::labels::labels;
use super::statement::{Description, Statement, classified};
use crate::error::ModelError;
use crate::networks::architecture::Architecture;
use crate::networks::bert::{BertHead, BertSpec, CROSS_ENCODER, StatedOutputs};
use crate::regular_file;
use crate::weights::mode::ComputeMode;
use crate::weights::params::Params;
use crate::weights::precision::Precision;

/// Values of `model_type` in `config.json`.
pub(super) const MODEL_TYPES: [&str; 5] =
    ["bert", "roberta", "xlm-roberta", "camembert", "distilbert"];

/// The weights, in the folder and next to the card.
const WEIGHTS: &str = "model.safetensors";

/// Short stages: others run between the stages of a long text.
const LAYERS_PER_STAGE: usize = 1;
const STAGES_PER_LAYER: usize = 2;

/// Files that an encoder reads, and those that sentence-transformers adds for each task.
const FILES: [&str; 3] = [WEIGHTS, "config.json", "tokenizer.json"];
const SENTENCE_FILES: [&str; 2] = ["modules.json", "1_Pooling/config.json"];

/// Endings of the names of networks whose heads are unknown here.
const OTHER_HEADS: [&str; 4] = [
    "ForTokenClassification",
    "ForQuestionAnswering",
    "ForMultipleChoice",
    "ForNextSentencePrediction",
];

/// Names of classes that compare two texts.
const PAIR_CLASSES: [&str; 3] = ["entailment", "contradiction", "not_entailment"];

/// The fields of `config.json` that cards have.
#[derive(Deserialize)]
struct Config {
    #[serde(default)]
    architectures: Vec<String>,
    #[serde(alias = "dim")]
    hidden_size: usize,
    #[serde(alias = "n_layers")]
    num_hidden_layers: usize,
    max_position_embeddings: usize,
    #[serde(default)]
    id2label: BTreeMap<String, String>,
    /// RoBERTa's positions begin after it.
    #[serde(default)]
    pad_token_id: Option<usize>,
    model_type: String,
}

/// The field of `sentence_bert_config.json` that cards have.
#[derive(Deserialize)]
struct SentenceConfig {
    max_seq_length: usize,
}

/// The fields of `tokenizer_config.json` that cards have.
#[derive(Deserialize)]
struct TokenizerConfig {
    /// A huge number for no limit.
    model_max_length: Option<f64>,
    model_input_names: Option<Vec<String>>,
}

/// The head of an encoder, and the texts that it reads.
struct EncoderTask {
    task: Task,
    outputs: usize,
    texts: usize,
}

pub(super) fn describe(source: &Path, statement: &Statement) -> Result<Description, ModelError> {
    let file = source.join("config.json");
    let config: Config = read(&file)?;
    let EncoderTask {
        task,
        outputs,
        texts,
    } = encoder_task(source, &config, statement)?;
    let head = match task {
        Task::Embed => BertHead::SentenceEmbedding,
        _ => BertHead::SequenceClassification,
    };
    let classes = match task {
        Task::Classify if statement.classes.is_empty() => labels(&file, &config.id2label)?,
        Task::Classify => statement.names(source, outputs)?,
        _ => Vec::new(),
    };
    let is_score = matches!(task, Task::Score | Task::Regress);
    let architecture = Architecture::Bert(BertSpec {
        head,
        outputs,
        texts,
        layers: config.num_hidden_layers,
        layers_per_stage: LAYERS_PER_STAGE,
        stages_per_layer: STAGES_PER_LAYER,
        max_tokens: max_tokens(source, &config)?,
        typical_tokens: TYPICAL_TOKENS,
        pooling: statement.pooling.filter(|_| task == Task::Embed),
        normalise: statement.normalise.filter(|_| task == Task::Embed),
        activation: statement.activation.filter(|_| is_score),
    });
    architecture
        .check()
        .map_err(|bad| ModelError::field(&file, bad.field, bad.reason))?;
    let parameters = parameters(source, &architecture)?;
    let answers = match task {
        Task::Classify => classified(outputs),
        Task::Embed => vec![TensorCard::fixed(EMBEDDING, Datatype::Fp32, &[outputs])],
        _ => vec![TensorCard::fixed("score", Datatype::Fp32, &[1])],
    };
    let inputs = ["text", "text_pair"].into_iter().take(texts);
    let inputs = inputs.map(|name| TensorCard::fixed(name, Datatype::Bytes, &[1]));
    let of_task: &[&str] = match task {
        Task::Embed => &SENTENCE_FILES,
        _ => &[CROSS_ENCODER],
    };
    let present = of_task.iter().filter(|file| source.join(file).is_file());
    let files = FILES.iter().chain(present);
    Ok(Description {
        app: statement.app_card(task, inputs.collect(), answers, classes),
        variant: statement.variant_card(source, WEIGHTS, parameters, architecture),
        files: files
            .map(|file| (source.join(file), PathBuf::from(file)))
            .collect(),
        notes: Vec::new(),
    })
}

/// The task that the files and the statement agree on.
fn encoder_task(
    source: &Path,
    config: &Config,
    statement: &Statement,
) -> Result<EncoderTask, ModelError> {
    let refuse = |reason: String| Err(ModelError::weights(source, reason));
    let ends_with = |name: &String, end: &str| name.ends_with(end);
    let other = |name: &&String| OTHER_HEADS.iter().any(|end| ends_with(name, end));
    if let (None, Some(name)) = (statement.task, config.architectures.iter().find(other)) {
        return refuse(format!(
            "`{name}` has a head that is unknown here. {}",
            export::FOLDER
        ));
    }
    let mut names = config.architectures.iter();
    let is_classifier = names.any(|name| ends_with(name, "ForSequenceClassification"));
    let labels = match config.id2label.len() {
        // Files leave the names out if they are numbers.
        0 => statement.classes.len(),
        labels => labels,
    };
    let is_stated = |task: Task| statement.task == Some(task);
    let number = is_stated(Task::Score) || is_stated(Task::Regress);
    if is_stated(Task::Embed) || statement.task.is_none() && !is_classifier {
        return Ok(EncoderTask {
            task: Task::Embed,
            outputs: config.hidden_size,
            texts: 1,
        });
    }
    if is_stated(Task::Tensors) {
        return refuse(format!(
            "task \"tensors\": an encoder answers \"classify\", \"embed\", \"score\" or \
             \"regress\". {}",
            export::FOLDER
        ));
    }
    if labels == 0 && !number {
        return refuse("its config.json names no classes: --classes FILE names them".to_owned());
    }
    let outputs = if number { 1 } else { labels };
    let texts = texts(source, config, statement, outputs)?;
    let task = match (outputs, texts) {
        (1, 1) => Task::Regress,
        (1, _) => Task::Score,
        _ => Task::Classify,
    };
    match statement.task {
        Some(stated) if stated != task => refuse(format!(
            "--task {}: {outputs} outputs of {texts} texts are task \"{}\"; --texts states the \
             texts",
            stated.name(),
            task.name()
        )),
        _ => Ok(EncoderTask {
            task,
            outputs,
            texts,
        }),
    }
}

/// Texts that a classifier reads together.
fn texts(
    source: &Path,
    config: &Config,
    statement: &Statement,
    outputs: usize,
) -> Result<usize, ModelError> {
    let cross_encodes = StatedOutputs::read(&source.join("config.json"))?.is_cross_encoder;
    let compares = config.id2label.values().any(|name| {
        let name = name.to_lowercase();
        PAIR_CLASSES.contains(&name.as_str())
    });
    let texts = match statement.texts {
        Some(texts) => texts,
        None if cross_encodes => 2,
        None if outputs == 1 || compares => {
            let reason = "its files do not say whether it reads one text or a pair: --texts 1 or \
                          --texts 2";
            return Err(ModelError::weights(source, reason));
        }
        None => 1,
    };
    let names = tokenizer_config(source)?.and_then(|config| config.model_input_names);
    let lacks = |names: Vec<String>| !names.iter().any(|name| name == "token_type_ids");
    if texts == 2 && config.model_type == "bert" && names.is_some_and(lacks) {
        let reason = format!(
            "its tokenizer_config.json leaves token_type_ids out, which a pair of a BERT has here. {}",
            export::FOLDER
        );
        return Err(ModelError::weights(source, reason));
    }
    Ok(texts)
}

fn read<T: DeserializeOwned>(file: &Path) -> Result<T, ModelError> {
    let text = regular_file::read_to_string(file).map_err(|source| ModelError::io(file, source))?;
    serde_json::from_str(&text).map_err(|error| ModelError::weights(file, error.to_string()))
}

fn tokenizer_config(source: &Path) -> Result<Option<TokenizerConfig>, ModelError> {
    let file = source.join("tokenizer_config.json");
    file.is_file().then(|| read(&file)).transpose()
}

/// Tokens of a common text: a sentence or two.
const TYPICAL_TOKENS: usize = 64;

/// Tokens that a text is cut to: those of sentence-transformers, otherwise those of the tokenizer,
/// and at most all positions.
fn max_tokens(source: &Path, config: &Config) -> Result<usize, ModelError> {
    let file = source.join("sentence_bert_config.json");
    let offset = match config.model_type.as_str() {
        "roberta" | "xlm-roberta" | "camembert" => config.pad_token_id.unwrap_or(1) + 1,
        _ => 0,
    };
    let positions = config.max_position_embeddings.saturating_sub(offset);
    if file.is_file() {
        return Ok(read::<SentenceConfig>(&file)?.max_seq_length.min(positions));
    }
    let stated = tokenizer_config(source)?.and_then(|config| config.model_max_length);
    // A conversion from f64 saturates.
    Ok(stated.map_or(positions, |length| positions.min(length as usize)))
}

/// The refusal of a card's field, with the option that sets the field.
fn with_option(error: ModelError, source: &Path) -> ModelError {
    let ModelError::CardField { field, reason, .. } = &error else {
        return error;
    };
    let option = match field.as_str() {
        "architecture.pooling" => "--pooling",
        "architecture.normalise" => "--normalise",
        "architecture.activation" => "--activation",
        _ => return error,
    };
    ModelError::weights(source, format!("{option}: {reason}"))
}

/// Values in the weights that the network reads.
fn parameters(source: &Path, architecture: &Architecture) -> Result<u64, ModelError> {
    // The fields that the model's own files state are read with the card.
    let mut architecture = architecture.clone();
    if let Architecture::Bert(spec) = &mut architecture {
        let completed = spec.complete(&source.join("model.toml"));
        completed.map_err(|error| with_option(error, source))?;
    }
    count(&source.join(WEIGHTS), &architecture)
}

/// Values in a file of weights that a network reads.
pub(super) fn count(weights: &Path, architecture: &Architecture) -> Result<u64, ModelError> {
    let mut params = Params::open(
        weights,
        &Device::Cpu,
        Precision::F32,
        DType::F32,
        ComputeMode::Graph,
    )?;
    architecture.build(&mut params)?;
    let count = params.count();
    params.finish()?;
    Ok(count)
}
