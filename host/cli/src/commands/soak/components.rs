//! Components as policies of a soak run, on fuel, so that a seed gives the same run on any machine.

use std::path::Path;
use std::sync::Arc;

use switchyard_core::policy::{FaultKind, PolicyFault};
use switchyard_policy::loader::{Loader, LoaderOptions, PolicyTrial};
use switchyard_policy::{EngineOptions, PolicyEngine};
use switchyard_server::policies::source;
use switchyard_sim::soak::SoakPolicy;
use switchyard_simulate::named::{Named, components};
use tempfile::TempDir;

use super::super::failure::Failure;

/// Name of all components of the folder.
const ALL: &str = "all";

/// The policies, and their compiled code.
pub(super) struct Components {
    pub(super) list: Vec<SoakPolicy>,
    _cache: TempDir,
}

/// Reads the named components.
///
/// # Errors
/// A component cannot be found or read.
pub(super) fn load(folder: &Path, names: &[String]) -> Result<Components, Failure> {
    let cache = tempfile::tempdir().map_err(Failure::check)?;
    let engine = PolicyEngine::deterministic(&EngineOptions::default()).map_err(Failure::check)?;
    let loader = Arc::new(Loader::new(
        engine,
        LoaderOptions {
            cache_dir: Some(cache.path().to_owned()),
            ..LoaderOptions::default()
        },
    ));
    let mut list = Vec::new();
    for name in names {
        let named = match name.as_str() {
            ALL => components(folder),
            name => vec![name.to_owned()],
        };
        if named.is_empty() {
            return Err(Failure::input(format!(
                "--policy {ALL}: {}: holds no components; `cargo xtask plugins` builds them",
                folder.display()
            )));
        }
        for name in named {
            list.push(component(&name, folder, &loader)?);
        }
    }
    Ok(Components {
        list,
        _cache: cache,
    })
}

/// One that refuses a catalog is not installed with it.
fn component(name: &str, folder: &Path, loader: &Arc<Loader>) -> Result<SoakPolicy, Failure> {
    let named: Named = name.parse().map_err(Failure::input)?;
    let file = named.found_in(folder)?;
    let version = source::version(&file, named.settings).map_err(Failure::input)?;
    let loader = Arc::clone(loader);
    Ok(SoakPolicy {
        name: name.to_owned(),
        make: Arc::new(move |catalog| {
            let trial = PolicyTrial {
                catalog,
                windows: &[],
            };
            let loaded = loader.load_version(&version, trial);
            loaded
                .map(|loaded| loaded.policy)
                .map_err(|error| PolicyFault::new(FaultKind::Failed, error.to_string()))
        }),
    })
}
