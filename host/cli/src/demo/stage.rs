//! The server's folder: the policy file that is replaced, and a configuration that differs from the
//! shipped one only in addresses, folders and device.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use switchyard_core::catalog::{Catalog, Penalty, Variant};
use switchyard_core::ids::{AppId, WorkerId};
use switchyard_executor::DeviceName;
use switchyard_models::zoo::ZooApp;
use tempfile::TempDir;
use toml::{Table, Value};

use super::error::DemoError;
use super::options::DemoOptions;
use super::simulated::Twin;
use switchyard_server::assembly::{Measured, PoolPlan};
use switchyard_server::config::Config;
use switchyard_simulate::shipped::SHIPPED;

/// Name of the pool's policy, whose file is replaced.
const LIVE: &str = "live";

/// The server's files. They are removed when this is dropped.
pub(super) struct Stage {
    folder: TempDir,
    policies: PathBuf,
    /// The apps that get requests.
    pub(super) apps: Vec<StageApp>,
    /// The same pool for the simulator.
    pub(super) twin: Twin,
}

/// An app that gets requests.
pub(super) struct StageApp {
    /// Its card and weights.
    pub(super) zoo: ZooApp,
    /// Its deadline if a request names none.
    pub(super) slo: Duration,
    /// Its penalty for late answers.
    pub(super) penalty: Penalty,
    /// Requests per second that its most accurate variant sustains on all workers.
    pub(super) capacity_per_s: f64,
}

// === impl Stage ===

impl Stage {
    /// Reads zoo and profile, measures the machine if it has no profile, and writes the server's
    /// configuration.
    pub(super) fn set(options: &DemoOptions) -> Result<Self, DemoError> {
        let folder = tempfile::tempdir().map_err(DemoError::input)?;
        let text = configuration(options, folder.path())?;
        let file = folder.path().join("switchyard.toml");
        fs::write(&file, &text).map_err(DemoError::input)?;
        let config = Config::read(&file).map_err(DemoError::input)?;
        let plans = PoolPlan::all(&config).map_err(DemoError::input)?;
        let measured = Measured::obtain(&config, &plans).map_err(DemoError::input)?;
        let plan = plans
            .first()
            .ok_or_else(|| DemoError::input("the demo configuration has no pool"))?;
        let catalog = plan.catalog(&measured).map_err(DemoError::input)?;
        let apps = (0..).map(AppId).zip(&catalog.apps).zip(plan.apps());
        let apps = apps.map(|((id, app), zoo)| {
            let rate = capacity(&catalog, id).ok_or_else(|| {
                let name = &app.name;
                DemoError::input(format!(
                    "no worker runs the most accurate variant of app {name}"
                ))
            })?;
            Ok(StageApp {
                zoo: zoo.clone(),
                slo: Duration::from_micros(app.slo.0),
                penalty: app.penalty,
                capacity_per_s: rate,
            })
        });
        let apps = apps.collect::<Result<_, DemoError>>()?;
        let live = folder.path().join("policies");
        fs::create_dir(&live).map_err(DemoError::input)?;
        let stage = Self {
            apps,
            twin: Twin::new(plan, &measured)?,
            policies: options.policies.clone(),
            folder,
        };
        for name in &options.names {
            if !stage.source(name, "wasm").is_file() {
                let reason = format!(
                    "{}: no such file; `cargo xtask plugins` builds the policies",
                    stage.source(name, "wasm").display()
                );
                return Err(DemoError::Input(reason));
            }
        }
        Ok(stage)
    }

    /// The configuration's file.
    pub(super) fn config(&self) -> PathBuf {
        self.folder.path().join("switchyard.toml")
    }

    /// Replaces the live policy as an operator does: its settings first, then the component by an
    /// atomic rename.
    pub(super) fn play(&self, name: &str) -> Result<(), DemoError> {
        let settings = self.live("toml");
        match fs::copy(self.source(name, "toml"), &settings) {
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                // The settings of the previous policy do not fit this one.
                let _ = fs::remove_file(&settings);
            }
            Err(error) => return Err(DemoError::input(error)),
        }
        let fresh = self.live("wasm.new");
        fs::copy(self.source(name, "wasm"), &fresh).map_err(DemoError::input)?;
        fs::rename(&fresh, self.live("wasm")).map_err(DemoError::input)
    }

    /// The file of a policy.
    pub(super) fn component(&self, name: &str) -> PathBuf {
        self.source(name, "wasm")
    }

    fn source(&self, name: &str, extension: &str) -> PathBuf {
        self.policies.join(format!("{name}.{extension}"))
    }

    fn live(&self, extension: &str) -> PathBuf {
        self.folder
            .path()
            .join("policies")
            .join(format!("{LIVE}.{extension}"))
    }
}

/// The shipped configuration on free ports, with these folders.
fn configuration(options: &DemoOptions, folder: &Path) -> Result<String, DemoError> {
    let absolute = |path: &Path| {
        let path = std::path::absolute(path).map_err(DemoError::input)?;
        Ok::<_, DemoError>(Value::String(path.to_string_lossy().into_owned()))
    };
    let shipped = match options.device {
        DeviceName::Cpu => SHIPPED.to_owned(),
        // Workers are named after their device.
        DeviceName::Cuda(_) => SHIPPED.replace("\"cpu-", "\"gpu-"),
    };
    let mut config: Table = shipped.parse().map_err(DemoError::input)?;
    let table = |config: &mut Table, name: &str, field: &str, value: Value| {
        let section = config
            .entry(name)
            .or_insert_with(|| Value::Table(Table::new()));
        // `[[name]]`, or `[name]`.
        let tables = match section {
            Value::Array(tables) => tables.iter_mut().collect(),
            table => vec![table],
        };
        for table in tables.into_iter().filter_map(Value::as_table_mut) {
            table.insert(field.to_owned(), value.clone());
        }
    };
    let free = || Value::String("127.0.0.1:0".to_owned());
    table(&mut config, "server", "http", free());
    table(&mut config, "server", "admin", free());
    table(&mut config, "app", "zoo", absolute(&options.zoo)?);
    // Late answers are compared too.
    let late = Value::String("serve".to_owned());
    table(&mut config, "app", "late", late);
    table(
        &mut config,
        "pool",
        "policy",
        Value::String(LIVE.to_owned()),
    );
    table(
        &mut config,
        "policies",
        "cache",
        absolute(&folder.join("compiled"))?,
    );
    table(
        &mut config,
        "policies",
        "dir",
        absolute(&folder.join("policies"))?,
    );
    table(&mut config, "profile", "dir", absolute(&options.profiles)?);
    let device = Value::String(options.device.to_string());
    table(&mut config, "worker", "device", device);
    toml::to_string(&config).map_err(DemoError::input)
}

/// Requests per second that all workers together sustain with an app's most accurate variant at
/// its best batch.
fn capacity(catalog: &Catalog, app: AppId) -> Option<f64> {
    let accuracy = |variant: &Variant| variant.exits.last().map_or(0.0, |exit| exit.accuracy);
    let (id, best) = catalog
        .variants_of(app)
        .max_by(|a, b| accuracy(a.1).total_cmp(&accuracy(b.1)))?;
    let rate = (0..catalog.workers.len() as u32).map(|worker| {
        let rate = |batch| {
            let latency = catalog.latency(WorkerId(worker), id, best.last_exit(), batch)?;
            Some(f64::from(batch) * 1e6 / latency.0.max(1) as f64)
        };
        (1..=best.max_batch)
            .filter_map(rate)
            .max_by(f64::total_cmp)
            .unwrap_or(0.0)
    });
    let rate: f64 = rate.sum();
    (rate > 0.0).then_some(rate)
}
