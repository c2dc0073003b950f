//! The cards of a text encoder as Hugging Face publishes it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use candle_core::{DType, Device};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::super::card::{Datatype, EMBEDDING, Task, TensorCard};
use super::statement::{Description, Statement, classified};
use crate::error::ModelError;
use crate::networks::architecture::Architecture;
use crate::networks::bert::{BertHead, BertSpec};
use crate::regular_file;
use crate::weights::mode::ComputeMode;
use crate::weights::params::Params;
use crate::weights::precision::Precision;

/// The weights, in the folder and next to the card.
const WEIGHTS: &str = "model.safetensors";

/// Encoder layers per stage.
const LAYERS_PER_STAGE: usize = 1;

/// Files that an encoder reads, and those that sentence-transformers adds.
const FILES: [&str; 3] = [WEIGHTS, "config.json", "tokenizer.json"];
const SENTENCE_FILES: [&str; 2] = ["modules.json", "1_Pooling/config.json"];

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

pub(super) fn describe(source: &Path, statement: &Statement) -> Result<Description, ModelError> {
    let config: Config = read(&source.join("config.json"))?;
    let is_classifier = |name: &String| name.ends_with("ForSequenceClassification");
    let derived = match config.architectures.iter().any(is_classifier) {
        true => Task::Classify,
        false => Task::Embed,
    };
    let task = statement.task.unwrap_or(derived);
    let (head, outputs) = match task {
        // Files leave the names out if they are numbers.
        Task::Classify if config.id2label.is_empty() => {
            (BertHead::SequenceClassification, statement.classes.len())
        }
        Task::Classify => (BertHead::SequenceClassification, config.id2label.len()),
        Task::Embed => (BertHead::SentenceEmbedding, config.hidden_size),
        other => {
            let reason = format!(
                "task \"{}\": an encoder answers \"classify\" or \"embed\"; export it to ONNX for \
                 others",
                other.name()
            );
            return Err(ModelError::weights(source, reason));
        }
    };
    if outputs == 0 {
        let reason = "its config.json names no classes: --classes FILE names them";
        return Err(ModelError::weights(source, reason));
    }
    let classes = match task {
        Task::Classify if statement.classes.is_empty() => labels(&config),
        Task::Classify => statement.names(source, outputs)?,
        _ => Vec::new(),
    };
    let architecture = Architecture::Bert(BertSpec {
        head,
        outputs,
        layers: config.num_hidden_layers,
        layers_per_stage: LAYERS_PER_STAGE,
        max_tokens: max_tokens(source, &config)?,
        typical_tokens: TYPICAL_TOKENS,
        pooling: statement.pooling.filter(|_| task == Task::Embed),
        normalise: statement.normalise.filter(|_| task == Task::Embed),
    });
    architecture
        .check()
        .map_err(|bad| ModelError::field(&source.join("config.json"), bad.field, bad.reason))?;
    let parameters = parameters(source, &architecture)?;
    let answers = match task {
        Task::Classify => classified(outputs),
        _ => vec![TensorCard::fixed(EMBEDDING, Datatype::Fp32, &[outputs])],
    };
    let text = TensorCard::fixed("text", Datatype::Bytes, &[1]);
    let sentence = SENTENCE_FILES
        .into_iter()
        .filter(|file| source.join(file).is_file());
    let files = FILES.into_iter().chain(sentence);
    Ok(Description {
        app: statement.app_card(task, vec![text], answers, classes),
        variant: statement.variant_card(source, WEIGHTS, parameters, architecture),
        files: files
            .map(|file| (source.join(file), PathBuf::from(file)))
            .collect(),
    })
}

fn read<T: DeserializeOwned>(file: &Path) -> Result<T, ModelError> {
    let text = regular_file::read_to_string(file).map_err(|source| ModelError::io(file, source))?;
    serde_json::from_str(&text).map_err(|error| ModelError::weights(file, error.to_string()))
}

/// The names of the classes, by number.
fn labels(config: &Config) -> Vec<String> {
    let mut labels: Vec<(usize, String)> = config
        .id2label
        .iter()
        .map(|(number, name)| (number.parse().unwrap_or(usize::MAX), name.clone()))
        .collect();
    labels.sort();
    labels.into_iter().map(|(_, name)| name).collect()
}

/// Tokens of a common text: a sentence or two.
const TYPICAL_TOKENS: usize = 64;

/// Tokens that a text is cut to: those of sentence-transformers, otherwise all positions.
fn max_tokens(source: &Path, config: &Config) -> Result<usize, ModelError> {
    let file = source.join("sentence_bert_config.json");
    let offset = match config.model_type.as_str() {
        "roberta" | "xlm-roberta" | "camembert" => config.pad_token_id.unwrap_or_default() + 1,
        _ => 0,
    };
    let positions = config.max_position_embeddings.saturating_sub(offset);
    match file.is_file() {
        true => Ok(read::<SentenceConfig>(&file)?.max_seq_length.min(positions)),
        false => Ok(positions),
    }
}

/// The refusal of a card's field, with the option that sets the field.
fn with_option(error: ModelError, source: &Path) -> ModelError {
    let ModelError::CardField { field, reason, .. } = &error else {
        return error;
    };
    let option = match field.as_str() {
        "architecture.pooling" => "--pooling",
        "architecture.normalise" => "--normalise",
        _ => return error,
    };
    ModelError::weights(source, format!("{option}: {reason}"))
}

/// Values in the weights that the network reads.
fn parameters(source: &Path, architecture: &Architecture) -> Result<u64, ModelError> {
    let mut params = Params::open(
        &source.join(WEIGHTS),
        &Device::Cpu,
        Precision::F32,
        DType::F32,
        ComputeMode::Graph,
    )?;
    // The pooling is read with the card.
    let mut architecture = architecture.clone();
    if let Architecture::Bert(spec) = &mut architecture {
        let completed = spec.complete(&source.join("model.toml"));
        completed.map_err(|error| with_option(error, source))?;
    }
    architecture.build(&mut params)?;
    let count = params.count();
    params.finish()?;
    Ok(count)
}
