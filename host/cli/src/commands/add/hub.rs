//! Models of the Hugging Face hub, downloaded into its cache.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use hf_hub::api::sync::{ApiBuilder, ApiError, ApiRepo};
use hf_hub::{Cache, CacheRepo, Repo, RepoType};
use serde::Deserialize;
use switchyard_models::onnx::value_files;
use switchyard_models::zoo::reads_model_type;
use thiserror::Error;

use crate::commands::print;

/// The hub without `HF_ENDPOINT`.
const ENDPOINT: &str = "https://huggingface.co";

const REVISION: &str = "main";
const CONFIG: &str = "config.json";
const WEIGHTS: &str = "model.safetensors";

/// The list of weights that are cut into several files.
const SHARDS: &str = "model.safetensors.index.json";

/// Files next to the weights, those that a repository has.
const SMALL: [&str; 8] = [
    CONFIG,
    "config_sentence_transformers.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "modules.json",
    "1_Pooling/config.json",
    "sentence_bert_config.json",
    "preprocessor_config.json",
];

/// Places of a graph.
const GRAPHS: [&str; 2] = ["onnx/model.onnx", "model.onnx"];

/// The id of a model: `ORG/NAME[@REVISION]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HubModel {
    id: String,
    revision: Option<String>,
}

/// A model in the cache.
#[derive(Debug)]
pub(super) struct Downloaded {
    /// A graph, or the folder.
    pub(super) files: PathBuf,
    /// The revision's hash.
    pub(super) commit: String,
    /// Names of a graph's classes; of a folder none, which has them itself.
    pub(super) classes: Vec<String>,
}

/// Why a model cannot be downloaded.
#[derive(Debug, Error)]
pub(super) enum HubError {
    /// The hub cannot be reached, and the cache has not all files.
    #[error(
        "hf:{model}: cannot be downloaded from {endpoint}: {reason}. HF_ENDPOINT names another hub; \
         or download the model's folder on a machine that reaches it, and add the folder: \
         switchyard add FOLDER"
    )]
    Unreachable {
        model: HubModel,
        endpoint: String,
        reason: String,
    },
    /// The hub refuses.
    #[error("hf:{model}: {endpoint} answers {status} to {part}: {advice}")]
    Refused {
        model: HubModel,
        endpoint: String,
        status: u16,
        part: String,
        advice: &'static str,
    },
    /// The repository has no model that can be served.
    #[error("hf:{model}: {reason}")]
    Unfit { model: HubModel, reason: String },
}

/// The fields of `config.json` that decide which files are read.
#[derive(Debug, Default, Deserialize)]
struct Config {
    #[serde(default)]
    model_type: String,
    #[serde(default)]
    architectures: Vec<String>,
    #[serde(default)]
    id2label: BTreeMap<String, String>,
}

/// A revision of a repository whose files are known.
struct Repository<'a> {
    model: &'a HubModel,
    endpoint: String,
    commit: String,
    files: Vec<String>,
    /// None without network.
    remote: Option<ApiRepo>,
    cached: CacheRepo,
}

/// Downloads the files of a model that its cards are made from, unless the cache has them.
pub(super) fn download(model: &HubModel) -> Result<Downloaded, HubError> {
    let repository = Repository::open(model)?;
    for file in SMALL {
        if repository.has(file) {
            repository.get(file)?;
        }
    }
    let config = match repository.has(CONFIG) {
        true => repository.config()?,
        false => Config::default(),
    };
    let graph = GRAPHS.into_iter().find(|file| repository.has(file));
    let is_encoder = reads_model_type(&config.model_type);
    let weights = match (repository.has(WEIGHTS), graph) {
        (true, None) => WEIGHTS,
        (true, Some(_)) if is_encoder => WEIGHTS,
        (_, Some(graph)) => graph,
        (false, None) => return Err(repository.unfit()),
    };
    let file = repository.get(weights)?;
    if weights == WEIGHTS {
        return Ok(Downloaded {
            files: file.parent().map_or_else(PathBuf::new, Path::to_path_buf),
            commit: repository.commit,
            classes: Vec::new(),
        });
    }
    repository.get_values(weights, &file)?;
    Ok(Downloaded {
        files: file,
        commit: repository.commit,
        classes: config.classes(),
    })
}

impl FromStr for HubModel {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (id, revision) = match text.split_once('@') {
            Some((id, revision)) => (id, Some(revision.to_owned())),
            None => (text, None),
        };
        let is_name = |part: &str| {
            let known = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            !part.is_empty() && !part.starts_with('.') && part.chars().all(known)
        };
        let parts: Vec<&str> = id.split('/').collect();
        let is_revision = |revision: &String| !revision.is_empty() && !revision.contains("..");
        let fits = parts.len() <= 2
            && parts.iter().all(|part| is_name(part))
            && revision.as_ref().is_none_or(is_revision);
        match fits {
            true => Ok(Self {
                id: id.to_owned(),
                revision,
            }),
            false => Err("expected hf:ORG/NAME or hf:ORG/NAME@REVISION".to_owned()),
        }
    }
}

impl fmt::Display for HubModel {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.id)
    }
}

// === impl HubModel ===

impl HubModel {
    /// The name without its organisation.
    pub(super) fn name(&self) -> &str {
        self.id.rsplit('/').next().unwrap_or(&self.id)
    }

    fn revision(&self) -> &str {
        self.revision.as_deref().unwrap_or(REVISION)
    }

    fn repo(&self, revision: &str) -> Repo {
        Repo::with_revision(self.id.clone(), RepoType::Model, revision.to_owned())
    }
}

// === impl Config ===

impl Config {
    /// The names of the classes that a graph answers with.
    fn classes(self) -> Vec<String> {
        let endings = ["ForSequenceClassification", "ForImageClassification"];
        let is_classifier = |name: &String| endings.iter().any(|ending| name.ends_with(ending));
        if !self.architectures.iter().any(is_classifier) {
            return Vec::new();
        }
        let numbered = self.id2label.into_iter();
        let numbered = numbered.map(|(number, name)| Some((number.parse::<usize>().ok()?, name)));
        let mut classes: Vec<(usize, String)> = numbered.collect::<Option<_>>().unwrap_or_default();
        classes.sort();
        classes.into_iter().map(|(_, name)| name).collect()
    }
}

// === impl Repository ===

impl<'a> Repository<'a> {
    /// Asks the hub for the revision and its files; the cache, if the hub cannot be reached.
    fn open(model: &'a HubModel) -> Result<Self, HubError> {
        let endpoint = std::env::var("HF_ENDPOINT").ok();
        let endpoint = endpoint.filter(|endpoint| !endpoint.is_empty());
        let endpoint = endpoint.unwrap_or_else(|| ENDPOINT.to_owned());
        let endpoint = endpoint.trim_end_matches('/').to_owned();
        let cache = Cache::from_env();
        let mut builder = ApiBuilder::from_cache(cache.clone()).with_endpoint(endpoint.clone());
        if let Ok(token) = std::env::var("HF_TOKEN") {
            builder = builder.with_token(Some(token));
        }
        let failed = |error: ApiError| refused(model, &endpoint, "the list of files", error);
        let api = builder.build().map_err(failed)?;
        match api.repo(model.repo(model.revision())).info() {
            Ok(info) => {
                // It becomes the name of a folder.
                if !info.sha.chars().all(|c| c.is_ascii_alphanumeric()) {
                    let reason = format!("{endpoint} answers with the revision {:?}", info.sha);
                    return Err(HubError::Unfit {
                        model: model.clone(),
                        reason,
                    });
                }
                let remote = api.repo(model.repo(&info.sha));
                // Then the cache finds files of this commit by the branch, also without network.
                let known = cache.repo(model.repo(model.revision()));
                if let Err(error) = known.create_ref(&info.sha) {
                    let cache = cache.path().display();
                    let reason = format!("{cache}: {error}; HF_HOME names another folder");
                    return Err(HubError::Unfit {
                        model: model.clone(),
                        reason,
                    });
                }
                let files = info.siblings.into_iter().map(|file| file.rfilename);
                Ok(Self {
                    model,
                    endpoint,
                    cached: known,
                    commit: info.sha,
                    files: files.collect(),
                    remote: Some(remote),
                })
            }
            Err(error) => {
                let error = failed(error);
                let cached = cache.repo(model.repo(model.revision()));
                match (&error, commit_of(&cached)) {
                    (HubError::Unreachable { .. }, Some(commit)) => {
                        print::note(format!("{error}\nthe cache has hf:{model}@{commit}"));
                        let known = SMALL.into_iter().chain([WEIGHTS]).chain(GRAPHS);
                        let known = known.filter(|file| cached.get(file).is_some());
                        Ok(Self {
                            model,
                            endpoint,
                            commit,
                            files: known.map(str::to_owned).collect(),
                            remote: None,
                            cached,
                        })
                    }
                    _ => Err(error),
                }
            }
        }
    }

    fn has(&self, file: &str) -> bool {
        self.files.iter().any(|known| known == file)
    }

    /// The file in the cache, downloaded unless it is there.
    fn get(&self, file: &str) -> Result<PathBuf, HubError> {
        if let Some(path) = self.cached.get(file) {
            return Ok(path);
        }
        let Some(remote) = &self.remote else {
            let reason = format!("the cache has no `{file}`");
            return Err(self.unfit_because(reason));
        };
        let failed = |error| refused(self.model, &self.endpoint, file, error);
        let path = remote.download(file).map_err(failed)?;
        Ok(path)
    }

    /// Downloads the files next to a graph that have its values.
    fn get_values(&self, graph: &str, path: &Path) -> Result<(), HubError> {
        let names = value_files(path).map_err(|error| self.unfit_because(error.to_string()))?;
        let folder = graph.rsplit_once('/').map(|(folder, _)| folder);
        for name in names {
            let name = match folder {
                Some(folder) => format!("{folder}/{name}"),
                None => name,
            };
            self.get(&name)?;
        }
        Ok(())
    }

    fn config(&self) -> Result<Config, HubError> {
        let file = self.get(CONFIG)?;
        let text = std::fs::read_to_string(&file).map_err(|error| error.to_string());
        let config =
            text.and_then(|text| serde_json::from_str(&text).map_err(|error| error.to_string()));
        config.map_err(|error| self.unfit_because(format!("{}: {error}", file.display())))
    }

    /// The refusal of a repository without weights that are read.
    fn unfit(&self) -> HubError {
        let graphs = GRAPHS.join(" nor ");
        let reason = match self.has(SHARDS) {
            true => format!("its weights are cut into several files ({SHARDS})"),
            false => format!("has neither {WEIGHTS} nor {graphs}"),
        };
        let reason = format!("{reason}: export it to one ONNX file, and add that file");
        self.unfit_because(reason)
    }

    fn unfit_because(&self, reason: String) -> HubError {
        HubError::Unfit {
            model: self.model.clone(),
            reason,
        }
    }
}

/// The revision that the cache has, by a file that it has.
fn commit_of(cached: &CacheRepo) -> Option<String> {
    let known = SMALL.into_iter().chain(GRAPHS);
    let file = known.map(|file| (file, cached.get(file)));
    let (file, path) = file
        .into_iter()
        .find_map(|(file, path)| Some((file, path?)))?;
    // SNAPSHOTS/COMMIT/FILE.
    let folder = path.ancestors().nth(Path::new(file).components().count())?;
    Some(folder.file_name()?.to_string_lossy().into_owned())
}

/// The refusal of a request for `part`.
fn refused(model: &HubModel, endpoint: &str, part: &str, error: ApiError) -> HubError {
    let (model, endpoint) = (model.clone(), endpoint.to_owned());
    let status = match &error {
        ApiError::RequestError(request) => match **request {
            ureq::Error::StatusCode(status) => Some(status),
            _ => None,
        },
        _ => None,
    };
    match status {
        Some(status) => HubError::Refused {
            model,
            endpoint,
            status,
            part: part.to_owned(),
            advice: match status {
                401 | 403 => {
                    "the model is private, gated or unknown: check its name; HF_TOKEN is the token \
                     of an account that may read it"
                }
                404 => "check the name and the revision: hf:ORG/NAME@REVISION",
                _ => "try again later, or download the folder elsewhere and add the folder",
            },
        },
        None => HubError::Unreachable {
            model,
            endpoint,
            reason: error.to_string(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_an_organisation_a_name_and_a_revision() {
        let model: HubModel = "BAAI/bge-small@refs/pr/4".parse().unwrap();
        assert_eq!((model.name(), model.revision()), ("bge-small", "refs/pr/4"));
        let model: HubModel = "gpt2".parse().unwrap();
        assert_eq!((model.name(), model.revision()), ("gpt2", "main"));
        for wrong in ["", "a/b/c", "../b", "a/..", "a/b@", "a/b@../../x", "a b"] {
            assert!(wrong.parse::<HubModel>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_classes_of_a_classifier_are_in_the_order_of_their_numbers() {
        let config = |architecture: &str| -> Config {
            let labels: serde_json::Map<_, _> = (0..11)
                .map(|i| (i.to_string(), format!("c{i}").into()))
                .collect();
            let json = serde_json::json!({"architectures": [architecture], "id2label": labels});
            serde_json::from_value(json).unwrap()
        };
        let classes = config("ResNetForImageClassification").classes();
        assert_eq!(
            (classes.len(), &*classes[2], &*classes[10]),
            (11, "c2", "c10")
        );
        assert!(config("BertForTokenClassification").classes().is_empty());
    }
}
