//! What a figure's program came to.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::figure::{Bench, Figure, Simulate, Source};
use crate::workspace::Workspace;
use crate::{cargo, plugins, shell};

/// Means by point, policy and metric; the part of `simulate --json` that claims are about.
#[derive(Debug, Deserialize)]
pub(crate) struct Results {
    runs: Vec<Run>,
    /// What windows took on this machine.
    #[serde(default)]
    scheduling: Vec<Scheduling>,
}

#[derive(Debug, Deserialize)]
struct Scheduling {
    point: String,
    policy: String,
    mean_us: f64,
    p50_us: f64,
    p99_us: f64,
}

#[derive(Debug, Deserialize)]
struct Run {
    point: String,
    policy: String,
    estimates: BTreeMap<String, Estimate>,
}

/// A mean, and half the width of its 95 % confidence interval.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct Estimate {
    pub(crate) mean: f64,
    pub(crate) half_width: Option<f64>,
}

/// Host time of a policy's windows in microseconds: of this machine, and so only in figures that
/// are [timed](super::figure::Simulate::timed).
pub(crate) const WINDOW_METRICS: [&str; 3] = ["window_mean_us", "window_p50_us", "window_p99_us"];

/// `switchyard`, built.
pub(crate) struct Program<'a> {
    workspace: &'a Workspace,
    file: OsString,
    profile: &'a str,
}

// === impl Results ===

impl Results {
    /// Reads what `--json` writes.
    pub(crate) fn parse(json: &str) -> Result<Self> {
        let mut results: Self = serde_json::from_str(json).context("unexpected JSON")?;
        if results.runs.is_empty() {
            bail!("no runs");
        }
        for run in &mut results.runs {
            let is_of = |of: &&Scheduling| of.point == run.point && of.policy == run.policy;
            let Some(times) = results.scheduling.iter().find(is_of) else {
                continue;
            };
            let [mean, p50, p99] = WINDOW_METRICS;
            for (metric, us) in [
                (mean, times.mean_us),
                (p50, times.p50_us),
                (p99, times.p99_us),
            ] {
                run.estimates.insert(metric.to_owned(), Estimate::of(us));
            }
        }
        Ok(results)
    }

    /// In the order of the sweep.
    pub(crate) fn points(&self) -> impl Iterator<Item = &str> {
        let mut last = None;
        let points = self.runs.iter().map(|run| run.point.as_str());
        points.filter(move |&point| last.replace(point) != Some(point))
    }

    /// Point, policy and estimates of each run.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (&str, &str, &BTreeMap<String, Estimate>)> {
        self.runs
            .iter()
            .map(|run| (run.point.as_str(), run.policy.as_str(), &run.estimates))
    }

    /// One mean, or what it lacks.
    pub(crate) fn mean(&self, point: &str, policy: &str, metric: &str) -> Result<f64, String> {
        let at: Vec<&Run> = self.runs.iter().filter(|run| run.point == point).collect();
        if at.is_empty() {
            let known: Vec<&str> = self.points().collect();
            return Err(format!("no point `{point}`, only {}", known.join(", ")));
        }
        let run = at.iter().find(|run| run.policy == policy).ok_or_else(|| {
            let known: Vec<&str> = at.iter().map(|run| run.policy.as_str()).collect();
            format!("no policy `{policy}`, only {}", known.join(", "))
        })?;
        let estimate = run.estimates.get(metric).ok_or_else(|| {
            let known: Vec<&str> = run.estimates.keys().map(String::as_str).collect();
            format!("no metric `{metric}`, only {}", known.join(", "))
        })?;
        Ok(estimate.mean)
    }
}

// === impl Estimate ===

impl Estimate {
    /// Of one measurement.
    fn of(mean: f64) -> Self {
        let half_width = None;
        Self { mean, half_width }
    }
}

// === impl Program ===

impl<'a> Program<'a> {
    /// Builds the host.
    pub(crate) fn build(workspace: &'a Workspace, profile: &'a str) -> Result<Self> {
        let mut build = cargo::host(&workspace.root);
        build.args(["build", "--profile", profile, "--workspace"]);
        build.args(["--bin", "switchyard"]);
        let artifacts = cargo::build(&mut build)?;
        let file = cargo::program(
            &artifacts,
            &workspace.root.join("host/server"),
            "switchyard",
        )?;
        Ok(Self {
            workspace,
            file,
            profile,
        })
    }

    /// One that is built already, with the tests.
    pub(crate) fn built(workspace: &'a Workspace, file: OsString) -> Self {
        Self {
            workspace,
            file,
            profile: "dev",
        }
    }

    /// Runs a figure.
    pub(crate) fn run(&self, figure: &Figure) -> Result<Results> {
        let mut command = match &figure.source {
            Source::Simulate(simulate) => self.simulate(simulate, &figure.file),
            Source::Bench(bench) => self.bench(bench),
        };
        command
            .current_dir(&self.workspace.root)
            .stdin(Stdio::null())
            .stderr(Stdio::inherit());
        eprintln!("{}: {}", figure.name, shell::line(&command));
        let output = command
            .output()
            .with_context(|| format!("cannot start `{}`", shell::line(&command)))?;
        if !output.status.success() {
            bail!("{}: `{}`", output.status, shell::line(&command));
        }
        Results::parse(&String::from_utf8_lossy(&output.stdout))
            .with_context(|| format!("`{}`", shell::line(&command)))
    }

    fn simulate(&self, simulate: &Simulate, file: &Path) -> Command {
        let root = &self.workspace.root;
        let folder = file.parent().unwrap_or(root);
        // As a person at the root would type it.
        let beside = |path: &Path| {
            let path = folder.join(path);
            match path.strip_prefix(root) {
                Ok(relative) => relative.to_owned(),
                Err(_) => path,
            }
        };
        let mut command = Command::new(&self.file);
        command.arg("simulate");
        command
            .arg("--policies")
            .arg(plugins::policies(self.workspace));
        command.arg("--config").arg(beside(&simulate.config));
        command.arg("--profile").arg(beside(&simulate.profile));
        command.args(["--workload", &simulate.workload]);
        command.args(["--seconds", &simulate.seconds.to_string()]);
        command.args(["--seeds", &simulate.seeds.to_string()]);
        for policy in &simulate.policies {
            command.args(["--policy", policy]);
        }
        for (option, value) in [
            ("--sweep", simulate.sweep.clone()),
            ("--service", simulate.service.clone()),
            ("--workers", simulate.workers.map(|count| count.to_string())),
        ] {
            if let Some(value) = value {
                command.args([option, &value]);
            }
        }
        command.args(["--json", "-"]);
        command
    }

    fn bench(&self, bench: &Bench) -> Command {
        let mut command = cargo::host(&self.workspace.root);
        // `release` is what `bench` is without being told.
        let profile = match self.profile {
            "release" => "bench",
            other => other,
        };
        command.args(["bench", "--quiet", "--workspace", "--profile", profile]);
        command.args(["--bench", &bench.name, "--", "--json"]);
        command
    }
}
