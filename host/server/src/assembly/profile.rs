//! The profile of this machine: read if it fits, otherwise measured and saved.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use switchyard_core::catalog::{App, Variant};
use switchyard_core::profile::Profile;
use switchyard_executor::energy::{EnergyMeter, Meters, Nvml, POWERCAP, Rapl};
use switchyard_executor::{CandleBench, ModelSource, versions};
use switchyard_models::Precision;
use switchyard_profile::{
    CatalogNames, Machine, MeasureError, MeasureOptions, MeasureProgress, MeasureSubject,
    MeasureWatch, Measurement, Percentile, ProfileError, ProfileFile, Provenance,
    UnfinishedMeasurement,
};

use super::error::AssemblyError;
use super::plan::PoolPlan;
use crate::config::Config;
use crate::shutdown::Cancel;

/// The profile in use.
pub struct Measured {
    file: ProfileFile,
    percentile: Percentile,
    /// Its file.
    pub path: PathBuf,
}

// === impl Measured ===

impl Measured {
    /// The profile of a configuration. If no profile was made on this machine for these variants, a
    /// quick one is measured and saved. Another machine's latencies are never used.
    ///
    /// # Errors
    /// The configured file cannot be used, or the measurement failed.
    pub fn obtain(config: &Config, pools: &[PoolPlan]) -> Result<Self, AssemblyError> {
        Self::obtain_unless(config, pools, &Cancel::default())
    }

    /// The profile of a configuration, if the start would not measure one. Nothing is written.
    ///
    /// # Errors
    /// The configured file cannot be used.
    pub(crate) fn found(
        config: &Config,
        pools: &[PoolPlan],
    ) -> Result<Option<Self>, AssemblyError> {
        let percentile = config.profile.percentile.into();
        let machine = Machine::detect();
        let (path, file) = match &config.profile.file {
            Some(path) => (path.clone(), Some(chosen(config, path, &machine)?)),
            None => {
                let path = config.profile.dir.join(machine.file_name());
                let file = ProfileFile::load_for(&path, &machine).ok();
                let has_all = |file: &ProfileFile| {
                    pools
                        .iter()
                        .all(|pool| table(file, pool, percentile).is_ok())
                };
                (path, file.filter(has_all))
            }
        };
        Ok(file.map(|file| Self {
            file,
            percentile,
            path,
        }))
    }

    /// As [`obtain`](Self::obtain), unless it is cancelled while it measures.
    ///
    /// # Errors
    /// Also when it was cancelled.
    pub fn obtain_unless(
        config: &Config,
        pools: &[PoolPlan],
        cancel: &Cancel,
    ) -> Result<Self, AssemblyError> {
        let percentile = config.profile.percentile.into();
        let machine = Machine::detect();
        if let Some(path) = &config.profile.file {
            let file = chosen(config, path, &machine)?;
            let path = path.clone();
            return Ok(Self {
                file,
                percentile,
                path,
            });
        }
        let path = config.profile.dir.join(machine.file_name());
        let kept = kept(&path, &machine);
        let lacking: Vec<PoolPlan> = match &kept {
            Some(file) => pools
                .iter()
                .filter_map(|pool| lacking(file, pool, percentile))
                .collect(),
            None => pools.to_vec(),
        };
        if let (Some(file), []) = (&kept, lacking.as_slice()) {
            tracing::info!(file = %path.display(), "profile read");
            return Ok(Self {
                file: file.clone(),
                percentile,
                path,
            });
        }
        let budget = Duration::from_secs(config.profile.measure_s);
        let options = MeasureOptions {
            budget,
            ..MeasureOptions::quick()
        };
        let mut measurement = Measurement::default();
        measure(&lacking, &options, &mut measurement, None, cancel)?;
        let file = measurement.to_file(Provenance::now("switchyard serve", versions()), machine);
        let file = match kept {
            Some(kept) => kept.updated(file),
            None => file,
        };
        if let Err(error) = file.save(&path) {
            // The server serves without the file; the next start measures again.
            tracing::warn!(
                %error,
                "the measured profile is not kept: the next start measures again unless \
                 profile.dir can be written"
            );
        } else {
            tracing::info!(file = %path.display(), "profile measured and kept");
        }
        Ok(Self {
            file,
            percentile,
            path,
        })
    }

    /// Any machine's profile, to simulate with. Nothing is served from it.
    pub fn elsewhere(file: ProfileFile, percentile: Percentile, path: &Path) -> Self {
        Self {
            file,
            percentile,
            path: path.to_path_buf(),
        }
    }

    /// The same measurements at another percentile.
    pub fn at(&self, percentile: Percentile) -> Self {
        Self::elsewhere(self.file.clone(), percentile, &self.path)
    }

    pub(super) fn table(&self, pool: &PoolPlan) -> Result<Profile, AssemblyError> {
        Ok(table(&self.file, pool, self.percentile)?)
    }

    /// The matrices that cards lack.
    pub(super) fn add_confusions(
        &self,
        apps: &[App],
        variants: &mut [Variant],
    ) -> Result<(), AssemblyError> {
        let is_narrowed = |variant: &Variant| variant.name.contains(Precision::MARK);
        Ok(self.file.add_confusions(apps, variants, is_narrowed)?)
    }

    /// The median latencies of batches, which observed latencies are compared with.
    pub(super) fn medians(&self, pool: &PoolPlan) -> Result<Profile, AssemblyError> {
        Ok(table(&self.file, pool, Percentile::P50)?)
    }
}

fn table(
    file: &ProfileFile,
    pool: &PoolPlan,
    percentile: Percentile,
) -> Result<Profile, ProfileError> {
    let kinds: Vec<String> = pool.kinds.iter().map(|kind| kind.name.clone()).collect();
    let names = CatalogNames {
        kinds: &kinds,
        apps: &pool.manifest.apps,
        variants: &pool.manifest.variants,
    };
    let mut declared = Cow::Borrowed(file);
    for (kind, power_w) in pool.declared_power_w() {
        declared.to_mut().declare_power(&kind, power_w);
    }
    declared.to_core(names, percentile)
}

/// The profile that the configuration names.
fn chosen(config: &Config, path: &Path, machine: &Machine) -> Result<ProfileFile, AssemblyError> {
    let file = match config.profile.stand_in {
        true => ProfileFile::load(path).map_err(ProfileError::from),
        false => ProfileFile::load_for(path, machine),
    };
    file.map_err(|error| AssemblyError::ChosenProfile {
        file: path.to_path_buf(),
        error,
    })
}

/// The saved profile, if it is of this machine; otherwise logs the reason.
fn kept(path: &Path, machine: &Machine) -> Option<ProfileFile> {
    if !path.exists() {
        tracing::info!(file = %path.display(), "no profile of this machine yet: measuring one");
        return None;
    }
    match ProfileFile::load_for(path, machine) {
        Ok(file) => Some(file),
        Err(error) => {
            tracing::warn!(%error, "the kept profile does not fit: measuring a new one");
            None
        }
    }
}

/// The variants of a pool that a profile lacks; `None` if it has all.
fn lacking(file: &ProfileFile, pool: &PoolPlan, percentile: Percentile) -> Option<PoolPlan> {
    let reason = table(file, pool, percentile).err()?;
    let variants = 0..pool.manifest.variants.len();
    let alone = |at: usize| table(file, &pool.only(|kept| kept == at), percentile);
    let lacks: Vec<bool> = variants.map(|at| alone(at).is_err()).collect();
    if lacks.iter().all(|lacks| !lacks) {
        return Some(pool.clone());
    }
    let measured = lacks.iter().filter(|lacks| **lacks).count();
    tracing::info!(pool = pool.config.name, %reason, variants = measured, "the kept profile lacks some variants: measuring them");
    Some(pool.only(|at| lacks.get(at).is_some_and(|lacks| *lacks)))
}

/// A progress bar on stderr over all pools, and the file from which a measurement can be resumed.
struct Watcher<'a> {
    bar: ProgressBar,
    /// Position of the pool, and how many there are.
    pool: (usize, usize),
    unfinished: Option<&'a UnfinishedMeasurement>,
    cancel: &'a Cancel,
}

/// Measures all pools into `measurement` within the budget, with a progress bar on stderr. Saves the
/// unfinished measurement now and then, if it has a file.
///
/// # Errors
/// A variant cannot be loaded or run, or it was cancelled.
pub fn measure(
    pools: &[PoolPlan],
    options: &MeasureOptions,
    measurement: &mut Measurement,
    unfinished: Option<&UnfinishedMeasurement>,
    cancel: &Cancel,
) -> Result<(), MeasureError> {
    let options = MeasureOptions {
        budget: options.budget / u32::try_from(pools.len()).unwrap_or(1).max(1),
        ..options.clone()
    };
    let mut watcher = Watcher {
        bar: ProgressBar::new(100).with_style(style()),
        pool: (0, pools.len()),
        unfinished,
        cancel,
    };
    let (rapl, nvml) = (Rapl::open(Path::new(POWERCAP)), Nvml::open());
    let meters = Meters {
        rapl: rapl.as_ref().map(|rapl| rapl as &dyn EnergyMeter),
        nvml: nvml.as_ref().map(|nvml| nvml as &dyn EnergyMeter),
    };
    for (i, pool) in pools.iter().enumerate() {
        watcher.pool.0 = i;
        let source: Arc<dyn ModelSource> = Arc::clone(&pool.manifest.source) as _;
        let kinds = pool.kinds_to_measure();
        let bench = CandleBench {
            source: &source,
            kinds: &kinds,
            meters,
        };
        let subject = MeasureSubject {
            apps: &pool.manifest.apps,
            variants: &pool.manifest.variants,
        };
        switchyard_profile::measure(subject, &bench, &options, measurement, &mut watcher)?;
    }
    watcher.bar.finish_and_clear();
    for model in &mut measurement.models {
        let mut apps = pools.iter().flat_map(PoolPlan::apps);
        let app = apps.find(|app| app.card.name == model.app);
        let variant = app.and_then(|app| app.variant_at(&model.variant));
        model.parameters = variant.map(|(variant, _)| variant.card.parameters);
        let engine = variant.map(|(variant, _)| variant.card.architecture.engine());
        model.engine = engine.map(str::to_owned);
    }
    Ok(())
}

// === impl Watcher ===

impl MeasureWatch for Watcher<'_> {
    fn progress(&mut self, progress: MeasureProgress<'_>) {
        let (pool, pools) = self.pool;
        let share = (pool as f64 + progress.share) / pools as f64;
        self.bar.set_position((share * 100.0) as u64);
        let at = format!("{} on {}", progress.variant, progress.kind);
        self.bar.set_message(at);
    }

    fn keep(&mut self, measurement: &Measurement) {
        if let Some(unfinished) = self.unfinished
            && let Err(error) = unfinished.keep(measurement)
        {
            tracing::warn!(%error, "the unfinished measurement is not saved: an interruption loses it");
        }
    }

    fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }
}

fn style() -> ProgressStyle {
    ProgressStyle::with_template("measuring {wide_bar} {pos} % {msg}")
        .unwrap_or_else(|_| ProgressStyle::default_bar())
}
