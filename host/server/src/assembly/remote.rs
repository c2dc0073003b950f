//! The workers on other machines: the names of their models, and their executors.

use std::sync::Arc;

use switchyard_core::catalog::{Capabilities, Variant};
use switchyard_executor::manifest::Manifest;
use switchyard_executor::{BuildBenched, Executor, KindToMeasure};
use switchyard_remote::{
    ConnectError, RemoteExecutor, RemoteModel, RemoteOptions, RemoteOutputs, RemoteTensor,
};

use super::error::AssemblyError;
use super::served::AppTensors;
use crate::config::{RemoteConfig, RemoteModelConfig, WorkerConfig};
use crate::driver::BuildExecutor;

/// Between the variant and the exit in the version of a `switchyard worker`; the last exit has the
/// variant's own name.
const EXIT_MARK: char = '/';

/// How a worker's server is used; `None` for a worker of this process.
///
/// # Errors
/// Its models are not those of the pool.
pub(super) fn options(
    worker: &WorkerConfig,
    manifest: &Manifest,
    tensors: &[AppTensors],
) -> Result<Option<RemoteOptions>, AssemblyError> {
    let Some(remote) = &worker.remote else {
        return Ok(None);
    };
    let refused = |reason: String| AssemblyError::Remote {
        worker: worker.name.clone(),
        reason,
    };
    let tls = remote.tls();
    if let Some(tls) = &tls {
        tls.check().map_err(|error| refused(error.to_string()))?;
    }
    let entries = manifest.source.entries();
    let known = |name: &String| entries.iter().any(|entry| entry.name == *name);
    if let Some(unknown) = remote.models.keys().find(|name| !known(name)) {
        let known: Vec<_> = entries.iter().map(|entry| entry.name.as_str()).collect();
        let known = known.join(", ");
        let reason = format!("models: `{unknown}` is not served in its pool, which has: {known}");
        return Err(refused(reason));
    }
    let models = manifest.variants.iter().zip(entries).map(|(variant, entry)| {
        let tensors = &tensors[variant.app.index()];
        if remote.models.is_empty() {
            let app = &manifest.apps[variant.app.index()].name;
            let all: Vec<usize> = (0..tensors.inputs.len()).collect();
            let named = RemoteModelConfig {
                model: app.clone(),
                ..RemoteModelConfig::default()
            };
            let versions = variant.exits.iter().map(|exit| version(variant, &exit.name));
            return Ok::<_, AssemblyError>(model(&entry.name, &named, versions.collect(), tensors, &all));
        }
        let named = remote.models.get(&entry.name).ok_or_else(|| {
            let name = &entry.name;
            refused(format!("models: lacks `{name}`, which its pool serves: add it, or leave it out of app.variants"))
        })?;
        let versions = vec![named.version.clone(); variant.exits.len()];
        Ok(model(&entry.name, named, versions, tensors, &entry.reads))
    });
    let models = models.collect::<Result<Vec<_>, AssemblyError>>()?;
    Ok(Some(RemoteOptions {
        // The configuration is checked.
        address: remote
            .url
            .parse()
            .map_err(|error| refused(format!("url: {error}")))?,
        tls,
        timeout: remote.timeout(),
        models: models.into(),
    }))
}

/// The version of an exit at a `switchyard worker`.
pub(crate) fn version(variant: &Variant, exit: &str) -> String {
    let last = variant.exits.last().map(|exit| exit.name.as_str());
    match last == Some(exit) {
        true => variant.name.clone(),
        false => format!("{}{EXIT_MARK}{exit}", variant.name),
    }
}

fn model(
    name: &str,
    named: &RemoteModelConfig,
    versions: Vec<String>,
    tensors: &AppTensors,
    reads: &[usize],
) -> RemoteModel {
    let inputs = reads.iter().filter_map(|&at| {
        let card = tensors.inputs.get(at)?;
        Some(RemoteTensor::new(at, card, named.inputs.get(&card.name)))
    });
    let outputs = tensors.outputs.iter().enumerate();
    let outputs =
        outputs.map(|(at, card)| RemoteTensor::new(at, card, named.outputs.get(&card.name)));
    RemoteModel {
        name: name.to_owned(),
        model: named.model.clone(),
        versions,
        inputs: inputs.collect(),
        outputs: RemoteOutputs::new(tensors.task, outputs.collect()),
    }
}

/// The kinds of batches that a worker runs.
pub(super) fn capabilities(worker: &WorkerConfig) -> Capabilities {
    match &worker.remote {
        None => Capabilities::ALL,
        Some(RemoteConfig { models, .. }) => Capabilities {
            stage_ranges: false,
            exits: models.is_empty(),
            parking: false,
        },
    }
}

/// Builds the executor of a worker. A server that is away at the start may come later; one whose models
/// differ is refused.
pub(super) fn build(options: RemoteOptions, worker: &str) -> BuildExecutor {
    let mut is_first = true;
    let worker = worker.to_owned();
    Box::new(move || {
        let is_start = std::mem::replace(&mut is_first, false);
        match RemoteExecutor::connect(options.clone()) {
            Ok(executor) => Ok(Box::new(executor) as Box<dyn Executor>),
            Err(ConnectError::Away(reason)) if is_start => {
                tracing::warn!(worker, reason, "the worker's server is away");
                let away = RemoteExecutor::away(options.clone(), reason);
                Ok(Box::new(away) as Box<dyn Executor>)
            }
            Err(error) => Err(error.to_string()),
        }
    })
}

/// A kind as it is measured: through the wire, with the transfer.
pub(super) fn benched(kind: &KindToMeasure, options: Option<RemoteOptions>) -> KindToMeasure {
    let build = options.map(|options| {
        BuildBenched(Arc::new(move || {
            let executor = RemoteExecutor::connect(options.clone());
            let executor = executor.map_err(|error| error.to_string())?;
            Ok(Box::new(executor) as Box<dyn Executor>)
        }))
    });
    KindToMeasure {
        build,
        ..kind.clone()
    }
}
