//! The profile of this machine: read when it fits, measured and kept when it does not.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use switchyard_core::profile::Profile;
use switchyard_executor::ModelSource;
use switchyard_executor::profile::{
    Machine, MeasureError, Names, Percentile, ProfileError, ProfileFile, QuickOptions,
    measure_quick,
};

use super::{AssemblyError, PoolPlan};
use crate::config::Config;

/// The profile in use.
pub struct Measured {
    file: ProfileFile,
    percentile: Percentile,
    /// Where it lies.
    pub path: PathBuf,
}

// === impl Measured ===

impl Measured {
    /// The profile that a configuration asks for. Without one that was made on this machine
    /// for these variants, a quick one is measured and kept; another machine's latencies are
    /// never used.
    ///
    /// # Errors
    /// A file that was asked for by name cannot be used, or measuring failed.
    pub fn obtain(config: &Config, pools: &[PoolPlan]) -> Result<Self, AssemblyError> {
        let percentile = config.profile.percentile.into();
        let machine = Machine::detect();
        if let Some(path) = &config.profile.file {
            let file = ProfileFile::load_for(path, &machine)?;
            let path = path.clone();
            return Ok(Self {
                file,
                percentile,
                path,
            });
        }
        let path = config.profile.dir.join(machine.file_name());
        if let Some(file) = kept(&path, &machine, pools, percentile) {
            tracing::info!(file = %path.display(), "profile read");
            return Ok(Self {
                file,
                percentile,
                path,
            });
        }
        let budget = Duration::from_secs(config.profile.measure_s);
        let options = QuickOptions {
            budget,
            ..QuickOptions::new("switchyard serve")
        };
        let file = measure(pools, &options)?;
        if let Err(error) = file.save(&path) {
            // Serving matters more than keeping it; the next start measures again.
            tracing::warn!(%error, "the measured profile is not kept");
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

    pub(super) fn table(&self, pool: &PoolPlan) -> Result<Profile, AssemblyError> {
        Ok(table(&self.file, pool, self.percentile)?)
    }
}

fn table(
    file: &ProfileFile,
    pool: &PoolPlan,
    percentile: Percentile,
) -> Result<Profile, ProfileError> {
    let kinds: Vec<String> = pool.kinds.iter().map(|kind| kind.name.clone()).collect();
    let names = Names {
        kinds: &kinds,
        apps: &pool.manifest.apps,
        variants: &pool.manifest.variants,
    };
    file.to_core(names, percentile)
}

/// The profile that was kept, if it fits; says why if it does not.
fn kept(
    path: &Path,
    machine: &Machine,
    pools: &[PoolPlan],
    percentile: Percentile,
) -> Option<ProfileFile> {
    if !path.exists() {
        tracing::info!(file = %path.display(), "no profile of this machine yet: measuring one");
        return None;
    }
    let fits = ProfileFile::load_for(path, machine).and_then(|file| {
        for pool in pools {
            table(&file, pool, percentile)?;
        }
        Ok(file)
    });
    match fits {
        Ok(file) => Some(file),
        Err(error) => {
            tracing::warn!(%error, "the kept profile does not fit: measuring a new one");
            None
        }
    }
}

/// Measures every pool, all within the budget, with a progress bar on stderr.
///
/// # Errors
/// A variant cannot be loaded or run.
pub fn measure(pools: &[PoolPlan], options: &QuickOptions) -> Result<ProfileFile, MeasureError> {
    let bar = ProgressBar::new(100).with_style(style());
    let mut whole: Option<ProfileFile> = None;
    for pool in pools {
        let options = QuickOptions {
            budget: options.budget / u32::try_from(pools.len()).unwrap_or(1).max(1),
            ..options.clone()
        };
        let source: Arc<dyn ModelSource> = Arc::clone(&pool.manifest.source) as _;
        let part = measure_quick(
            &source,
            &pool.manifest.apps,
            &pool.manifest.variants,
            &pool.kinds,
            &options,
            &mut |progress| {
                bar.set_position((progress.share * 100.0) as u64);
                bar.set_message(format!("{} on {}", progress.variant, progress.kind));
            },
        )?;
        match &mut whole {
            None => whole = Some(part),
            Some(whole) => {
                whole.models.extend(part.models);
                whole.latencies.extend(part.latencies);
            }
        }
    }
    bar.finish_and_clear();
    Ok(whole.expect("a checked configuration has a pool"))
}

fn style() -> ProgressStyle {
    ProgressStyle::with_template("measuring {wide_bar} {pos} % {msg}")
        .unwrap_or_else(|_| ProgressStyle::default_bar())
}
