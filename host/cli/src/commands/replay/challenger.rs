//! The replayed policy, with a new instance for each recorded run.

use std::path::Path;
use std::sync::Arc;

use switchyard_core::catalog::Catalog;
use switchyard_core::policy::{EarliestDeadlineFirst, Policy};
use switchyard_policy::loader::{Loader, LoaderOptions, PolicyTrial};
use switchyard_policy::recording::{Header, PolicyRecord};
use switchyard_policy::{EngineOptions, Loaded, PolicyEngine, PolicyVersion};
use switchyard_server::policies::source;
use switchyard_simulate::named::{FALLBACK, Named};
use switchyard_simulate::shipped;

use crate::commands::failure::Failure;

/// The replayed policy.
pub(super) struct Challenger {
    /// None: the native fallback.
    component: Option<Component>,
}

struct Component {
    version: PolicyVersion,
    /// The command line has settings: those of the recording are not used.
    own_settings: bool,
    engine: PolicyEngine,
}

/// A configured instance.
pub(super) struct Ready {
    pub(super) policy: Box<dyn Policy>,
    pub(super) record: PolicyRecord,
}

// === impl Challenger ===

impl Challenger {
    /// Finds the named policy and reads it.
    pub(super) fn find(
        named: &Named,
        folder: &Path,
        settings: Option<&str>,
    ) -> Result<Self, Failure> {
        if named.policy == FALLBACK {
            return match settings {
                Some(_) => Err(Failure::input("--settings: `edf` has no settings")),
                None => Ok(Self { component: None }),
            };
        }
        let mut over = named.settings.clone();
        let more: toml::Table = toml::from_str(settings.unwrap_or_default())
            .map_err(|error| Failure::input(format!("--settings: {}", error.message())))?;
        over.extend(more);
        let own_settings = settings.is_some() || !over.is_empty();
        let version = source::version(&named.found_in(folder)?, over).map_err(Failure::input)?;
        let engine =
            PolicyEngine::deterministic(&EngineOptions::default()).map_err(Failure::check)?;
        Ok(Self {
            component: Some(Component {
                version,
                own_settings,
                engine,
            }),
        })
    }

    /// A new instance, configured as the recorded policy was. The recorded policy itself also gets
    /// the recorded settings.
    pub(super) fn fresh(
        &self,
        header: &Header,
        recorded: Option<&PolicyRecord>,
        catalog: &Arc<Catalog>,
    ) -> Result<Ready, Failure> {
        let Some(component) = &self.component else {
            let mut policy: Box<dyn Policy> = Box::<EarliestDeadlineFirst>::default();
            policy.configure(catalog).map_err(Failure::input)?;
            let record = PolicyRecord::native(policy.description());
            return Ok(Ready { policy, record });
        };
        let options = LoaderOptions {
            cache_dir: Some(shipped::compiled_folder()),
            limits: header.limits(),
            seed: header.seed,
        };
        let loader = Loader::new(component.engine.clone(), options);
        let trial = PolicyTrial {
            catalog,
            windows: &[],
        };
        let version = component.version_for(recorded);
        let loaded = loader.load_version(&version, trial);
        let Loaded {
            mut policy,
            version,
            ..
        } = loaded.map_err(Failure::input)?;
        if header.simulated {
            // The simulator configures each instance a second time.
            policy.configure(catalog).map_err(Failure::input)?;
        }
        let record = PolicyRecord::of(&version, policy.description());
        Ok(Ready { policy, record })
    }
}

// === impl Component ===

impl Component {
    fn version_for(&self, recorded: Option<&PolicyRecord>) -> PolicyVersion {
        let same = recorded.filter(|recorded| recorded.code == self.version.code.to_hex());
        match same.filter(|_| !self.own_settings) {
            Some(recorded) => self.version.with_settings(recorded.settings.clone()),
            None => self.version.clone(),
        }
    }
}
