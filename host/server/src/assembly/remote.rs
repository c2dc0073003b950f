//! The workers on other machines: the names of their models, and their executors.

use std::sync::Arc;

use switchyard_core::catalog::{Capabilities, Variant};
use switchyard_core::ids::{KindId, VariantId};
use switchyard_core::profile::Profile;
use switchyard_executor::manifest::Manifest;
use switchyard_executor::{BuildBenched, Executor, KindToMeasure};
use switchyard_remote::{
    ConnectError, Etcd, Fleet, FleetOptions, FleetSlot, MemberSource, NameResolver, RemoteAddress,
    RemoteExecutor, RemoteModel, RemoteOptions, RemoteOutputs, RemoteTensor, StageRanges,
};

use super::error::AssemblyError;
use super::served::AppTensors;
use crate::config::{RemoteConfig, RemoteModelConfig, WorkerConfig};
use crate::driver::{BuildExecutor, WorkerAddress};

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
        address: match &remote.etcd {
            Some(prefix) => RemoteAddress::named(prefix),
            None => remote
                .url
                .parse()
                .map_err(|error| refused(format!("url: {error}")))?,
        },
        tls,
        timeout: remote.timeout(),
        models: models.into(),
        stages: match remote.models.is_empty() {
            true => StageRanges::IfOffered,
            false => StageRanges::Never,
        },
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

/// The kinds of batches that a worker runs. Ranges of stages were measured if its server offers them.
pub(super) fn capabilities(
    worker: &WorkerConfig,
    kind: KindId,
    variants: &[Variant],
    profile: &Profile,
) -> Capabilities {
    let Some(RemoteConfig { models, .. }) = &worker.remote else {
        return Capabilities::ALL;
    };
    let is_switchyard = models.is_empty();
    let runs_stages = is_switchyard && has_stages(kind, variants, profile);
    Capabilities {
        stage_ranges: runs_stages,
        exits: is_switchyard,
        parking: runs_stages,
    }
}

/// Whether a kind was measured stage by stage, and a variant has several.
fn has_stages(kind: KindId, variants: &[Variant], profile: &Profile) -> bool {
    let mut cuttable = (0..)
        .map(VariantId)
        .zip(variants)
        .filter(|(_, v)| v.stages > 1);
    let is_measured = |(id, variant): (VariantId, &Variant)| {
        let (stages, exit) = (variant.stages, Some(variant.last_exit()));
        let first = profile.latency(kind, id, 0, 1, None, 1);
        let last = profile.latency(kind, id, stages - 1, stages, exit, 1);
        first.and(last).is_some()
    };
    let first = cuttable.next();
    first.is_some_and(is_measured) && cuttable.all(is_measured)
}

/// The server of a worker on another machine.
#[derive(Clone)]
pub(super) enum RemoteServer {
    /// One server.
    Fixed(RemoteOptions),
    /// A slot of a name.
    Slot(FleetSlot),
}

/// Finds the servers of fleets.
#[derive(Clone)]
pub(super) struct Finder {
    pub(super) resolver: NameResolver,
    /// None: the configuration has no etcd.
    pub(super) etcd: Option<Arc<Etcd>>,
}

/// The servers of a pool's workers, in their order; `None` for workers of this process. The servers of
/// fleets are followed from now on.
///
/// # Errors
/// The system refuses the thread of the connections.
pub(super) fn servers(
    workers: &[WorkerConfig],
    remotes: Vec<Option<RemoteOptions>>,
    finder: &Finder,
) -> Result<Vec<Option<RemoteServer>>, AssemblyError> {
    let mut fleet: Option<Arc<Fleet>> = None;
    let server = |(worker, options): (&WorkerConfig, Option<RemoteOptions>)| {
        let (Some(remote), Some(options)) = (&worker.remote, options) else {
            return Ok(None);
        };
        let (Some(at), Some(of_name)) = (remote.slot, finder.fleet_options(remote, &options))
        else {
            return Ok(Some(RemoteServer::Fixed(options)));
        };
        // The slots of a name follow each other.
        let known = fleet.take().filter(|_| at > 0);
        let started = known.map_or_else(|| Fleet::start(of_name), Ok);
        let started = started.map_err(|error| AssemblyError::Remote {
            worker: worker.name.clone(),
            reason: error.to_string(),
        })?;
        let slot = started.slot(at);
        fleet = Some(started);
        Ok(Some(RemoteServer::Slot(slot)))
    };
    workers.iter().zip(remotes).map(server).collect()
}

// === impl Finder ===

impl Finder {
    fn fleet_options(&self, remote: &RemoteConfig, server: &RemoteOptions) -> Option<FleetOptions> {
        Some(FleetOptions {
            server: server.clone(),
            at_most: remote.at_most?,
            source: match &remote.etcd {
                Some(prefix) => MemberSource::Etcd {
                    etcd: Arc::clone(self.etcd.as_ref()?),
                    prefix: prefix.clone(),
                },
                None => MemberSource::Name {
                    resolve_every: remote.resolve_every(),
                    resolver: self.resolver.clone(),
                },
            },
        })
    }
}

// === impl RemoteServer ===

impl RemoteServer {
    fn connect(&self) -> Result<RemoteExecutor, ConnectError> {
        match self {
            Self::Fixed(options) => RemoteExecutor::connect(options.clone()),
            Self::Slot(slot) => slot.connect(),
        }
    }

    fn options(&self) -> &RemoteOptions {
        match self {
            Self::Fixed(options) => options,
            Self::Slot(slot) => slot.options(),
        }
    }

    /// The address that it has now.
    pub(super) fn address(&self) -> WorkerAddress {
        match self.clone() {
            Self::Fixed(options) => Box::new(move || Some(options.address.to_string())),
            Self::Slot(slot) => Box::new(move || Some(slot.address()?.to_string())),
        }
    }
}

/// Builds the executor of a worker. A server that is away at the start may come later; one whose models
/// differ is refused.
pub(super) fn build(server: RemoteServer, worker: &str) -> BuildExecutor {
    let mut is_first = true;
    let worker = worker.to_owned();
    Box::new(move || {
        let is_start = std::mem::replace(&mut is_first, false);
        if let (RemoteServer::Slot(slot), true) = (&server, is_start) {
            slot.settle();
        }
        match server.connect() {
            Ok(executor) => Ok(Box::new(executor) as Box<dyn Executor>),
            Err(ConnectError::Away(reason)) if is_start => {
                match &server {
                    RemoteServer::Slot(slot) if slot.address().is_none() => {}
                    _ => tracing::warn!(worker, reason, "the worker's server is away"),
                }
                let away = RemoteExecutor::away(server.options().clone(), reason);
                Ok(Box::new(away) as Box<dyn Executor>)
            }
            Err(error) => Err(error.to_string()),
        }
    })
}

/// A kind as it is measured: through the wire, with the transfer. Of a name the first server that is
/// ready: workers of a kind are alike.
pub(super) fn benched(
    kind: &KindToMeasure,
    remote: Option<(&RemoteConfig, RemoteOptions)>,
    finder: &Finder,
) -> KindToMeasure {
    let build = remote.map(|(remote, options)| {
        let of_name = finder.fleet_options(remote, &options);
        BuildBenched(Arc::new(move || {
            let executor = match &of_name {
                Some(of_name) => Fleet::first_ready(of_name),
                None => RemoteExecutor::connect(options.clone()),
            };
            let executor = executor.map_err(|error| error.to_string())?;
            Ok(Box::new(executor) as Box<dyn Executor>)
        }))
    });
    KindToMeasure {
        build,
        ..kind.clone()
    }
}
