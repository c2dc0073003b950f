//! Zoo, hardware, profile and policies of each pool.

use std::path::PathBuf;
use std::time::Duration;

use switchyard_core::catalog::Catalog;
use switchyard_core::policy::FALLBACK_NAME;
use switchyard_policy::loader::{LoadPhase, Loader, LoaderOptions, PolicyTrial};
use switchyard_policy::{EngineOptions, PolicyEngine};

use super::findings::Findings;
use crate::assembly::{Measured, PoolPlan};
use crate::policies::{hint, source};

/// A pool as it would start.
pub(super) struct Inspected {
    /// Its apps, variants and kinds of workers.
    pub(super) catalog: Catalog,
    /// `name@version` of its policy.
    pub(super) policy: String,
    /// The profile of this machine, if there is one.
    pub(super) profile: Option<PathBuf>,
}

/// A policy that a pool names.
struct Named<'a> {
    /// The field, such as `pool[0].policy`.
    field: String,
    /// Its value.
    name: &'a str,
    file: PathBuf,
    settings_field: String,
    settings: Option<toml::Table>,
}

pub(super) fn inspect(findings: &mut Findings<'_>) -> Vec<Inspected> {
    let config = findings.config;
    for misfit in PoolPlan::misfits(config) {
        findings.note(misfit.to_string());
    }
    let mut plans = Vec::new();
    for pool in &config.pools {
        match PoolPlan::read(config, pool) {
            Ok(plan) => plans.push(Some(plan)),
            Err(errors) => {
                for error in errors.each() {
                    let app = error.app_without_folder();
                    let app = app.map(|app| config.app_field(app));
                    // The name or the folder has its mistake already.
                    let follows = app.is_some_and(|at| {
                        let fields = ["name", "zoo"].map(|field| format!("{at}.{field}"));
                        fields.iter().any(|field| findings.draft.is_replaced(field))
                    });
                    if !follows {
                        findings.note(error.to_string());
                    }
                }
                plans.push(None);
            }
        }
    }
    let whole: Vec<PoolPlan> = plans.iter().flatten().cloned().collect();
    let measured = Measured::found(config, &whole);
    let measured = measured.unwrap_or_else(|error| {
        findings.refuse("profile.file", &error.to_string());
        None
    });
    let engine = PolicyEngine::live(&EngineOptions {
        compile_time_max: Duration::from_secs(config.policies.compile_timeout_s),
        ..EngineOptions::default()
    });
    let engine = match engine {
        Ok(engine) => engine,
        Err(error) => {
            findings.note(error.to_string());
            return Vec::new();
        }
    };
    let mut inspected = Vec::new();
    for (i, (pool, plan)) in config.pools.iter().zip(&plans).enumerate() {
        let catalog = plan.as_ref().and_then(|plan| {
            let (catalog, errors) = plan.examined(config, measured.as_ref());
            errors
                .iter()
                .for_each(|error| findings.note(error.to_string()));
            catalog
        });
        let loader = Loader::new(
            engine.clone(),
            LoaderOptions {
                cache_dir: None,
                limits: pool.limits(),
                seed: pool.seed,
            },
        )
        .with_allow_list(config.policies.allow.clone());
        let at = |field: &str| format!("pool[{i}].{field}");
        let named = Named {
            field: at("policy"),
            name: &pool.policy,
            file: pool.policy_file(&config.policies.dir),
            settings_field: at("settings"),
            settings: pool.settings.clone(),
        };
        let policy = load(findings, &loader, &named, catalog.as_ref());
        if let Some(shadow) = &pool.shadow {
            let named = Named {
                field: at("shadow.policy"),
                name: &shadow.policy,
                file: shadow.policy_file(&config.policies.dir),
                settings_field: at("shadow.settings"),
                settings: Some(shadow.settings.clone()),
            };
            load(findings, &loader, &named, catalog.as_ref());
        }
        if let (Some(catalog), Some(policy)) = (catalog, policy) {
            inspected.push(Inspected {
                catalog,
                policy,
                profile: measured.as_ref().map(|measured| measured.path.clone()),
            });
        }
    }
    inspected
}

/// Loads a policy as a start does; its `name@version`. Without a catalog only its file is looked for.
fn load(
    findings: &mut Findings<'_>,
    loader: &Loader,
    named: &Named<'_>,
    catalog: Option<&Catalog>,
) -> Option<String> {
    let Named {
        field,
        name,
        file,
        settings_field,
        settings,
    } = named;
    if findings.draft.is_replaced(field) {
        return None;
    }
    if !file.exists() {
        if *name == FALLBACK_NAME {
            return Some(FALLBACK_NAME.to_owned());
        }
        let hint = hint(file, findings.config.bundled_policies.as_deref());
        let reason = format!("`{name}`: {} does not exist{hint}", file.display());
        findings.refuse(field, &reason);
        return None;
    }
    let catalog = catalog?;
    let trial = PolicyTrial {
        catalog,
        windows: &[],
    };
    let loaded = source::version(file, settings.clone().unwrap_or_default())
        .and_then(|version| loader.load_version(&version, trial));
    match loaded {
        Ok(loaded) => Some(loaded.version.label),
        Err(error) => {
            let has_settings = settings.as_ref().is_some_and(|table| !table.is_empty());
            let is_configured = error.phase == LoadPhase::Configure && has_settings;
            let field = if is_configured { settings_field } else { field };
            findings.refuse(field, &error.to_string());
            None
        }
    }
}
