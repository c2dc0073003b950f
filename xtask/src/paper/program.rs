//! The programs that figures run.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use switchyard_kit::{cargo, shell};

use super::figure::{Bench, FOLDER, Figure, Options, Prepare, Simulate, Source};
use super::kept::{self, Kept};
use super::results::Results;
use crate::plugins;
use crate::workspace::Workspace;

/// `switchyard`, built.
pub(crate) struct Program<'a> {
    workspace: &'a Workspace,
    file: OsString,
    profile: &'a str,
    kept: Kept,
}

// === impl Program ===

impl<'a> Program<'a> {
    /// Builds the host.
    pub(crate) fn build(workspace: &'a Workspace, profile: &'a str) -> Result<Self> {
        let mut build = cargo::host(&workspace.root);
        build.args(["build", "--profile", profile, "--workspace"]);
        build.args(["--bin", "switchyard"]);
        let artifacts = cargo::build(&mut build)?;
        let file = cargo::program(&artifacts, &workspace.root.join("host/cli"), "switchyard")?;
        Self::of_profile(workspace, file, profile)
    }

    /// An existing program.
    pub(crate) fn built(workspace: &'a Workspace, file: OsString) -> Result<Self> {
        Self::of_profile(workspace, file, "dev")
    }

    fn of_profile(workspace: &'a Workspace, file: OsString, profile: &'a str) -> Result<Self> {
        let kept = Kept::open(
            workspace.target("paper").join("runs"),
            file.as_ref(),
            &plugins::policies(workspace),
            &workspace.root.join(FOLDER),
        )?;
        Ok(Self {
            workspace,
            file,
            profile,
            kept,
        })
    }

    /// Runs a figure after its preparations.
    pub(crate) fn run(&self, figure: &Figure) -> Result<Results> {
        let mut promised = Vec::new();
        for prepare in &figure.prepare {
            for (args, out) in prepare.runs() {
                let output = self.output(figure, self.prepare(prepare, &args, &out))?;
                if let Some(name) = &prepare.results {
                    let tables = Results::of_tables(&output, name);
                    promised.push(tables.with_context(|| format!("`{}`", prepare.command))?);
                }
            }
        }
        let mut results = match &figure.source {
            Source::Bench(bench) => self.results(figure, self.bench(bench))?,
            Source::Simulate(simulate) => self.points(figure, simulate)?,
            Source::Curves(curves) => {
                let folder = figure.file.parent().unwrap_or(&self.workspace.root);
                curves.results(folder)?
            }
        };
        for tables in promised {
            results.join(tables);
        }
        Ok(results)
    }

    fn points(&self, figure: &Figure, simulate: &Simulate) -> Result<Results> {
        let mut all: Option<Results> = None;
        for (at, (point, options)) in simulate.points().into_iter().enumerate() {
            let command = self.simulate(simulate, &options, &figure.file);
            let results = self.simulated(figure, at, command)?;
            let results = match point.as_str() {
                "" => results,
                point => results.at(point),
            };
            match &mut all {
                None => all = Some(results),
                Some(all) => all.append(results),
            }
        }
        all.context("no runs")
    }

    /// Times of this machine are measured each time.
    fn simulated(&self, figure: &Figure, at: usize, command: Command) -> Result<Results> {
        if figure.is_live() || figure.is_timed() {
            return self.results(figure, command);
        }
        let typed = shell::line(&command);
        let needs = figure.needs.iter();
        let needs = needs.map(|file| kept::contents(&self.workspace.root.join(file)));
        let rest = format!(
            "{:?} {:?}",
            figure.prepare,
            needs.collect::<Result<Vec<_>>>()?
        );
        let make = || self.results(figure, command);
        self.kept.result((&figure.name, at), &typed, &rest, make)
    }

    fn results(&self, figure: &Figure, command: Command) -> Result<Results> {
        let typed = shell::line(&command);
        Results::parse(&self.output(figure, command)?).with_context(|| format!("`{typed}`"))
    }

    /// The stdout of a figure's command.
    fn output(&self, figure: &Figure, mut command: Command) -> Result<String> {
        command
            .current_dir(&self.workspace.root)
            .stdin(Stdio::null())
            .stderr(Stdio::inherit());
        let typed = shell::line(&command);
        eprintln!("{}: {typed}", figure.name);
        let output = command
            .output()
            .with_context(|| format!("cannot start `{typed}`"))?;
        if !output.status.success() {
            bail!("{}: `{typed}`", output.status);
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn prepare(&self, prepare: &Prepare, args: &[String], out: &Path) -> Command {
        let mut command = Command::new(&self.file);
        command.args(prepare.command.split_whitespace());
        command.args(args);
        let out = self.workspace.target("").join(out);
        command.arg("--out").arg(self.typed(&out));
        if prepare.results.is_some() {
            command.arg("--json");
        }
        command
    }

    /// A path relative to the root, if it is below it.
    fn typed(&self, path: &Path) -> PathBuf {
        match path.strip_prefix(&self.workspace.root) {
            Ok(relative) => relative.to_owned(),
            Err(_) => path.to_owned(),
        }
    }

    fn simulate(&self, simulate: &Simulate, options: &Options, file: &Path) -> Command {
        let folder = file.parent().unwrap_or(&self.workspace.root);
        let near = |path: &Path| self.typed(&folder.join(path));
        let mut command = Command::new(&self.file);
        command.arg("simulate");
        command
            .arg("--policies")
            .arg(plugins::policies(self.workspace));
        command.arg("--config").arg(near(&simulate.config));
        command.arg("--profile").arg(near(&options.profile));
        // The papers' servers answer every request, and plan with the profile.
        command.args(["--late", "serve", "--latencies", "profiled"]);
        command.args(["--workload", &options.workload]);
        command.args(["--seconds", &simulate.seconds.to_string()]);
        command.args(["--seeds", &simulate.seeds.to_string()]);
        for policy in &options.policies {
            command.args(["--policy", policy]);
        }
        for (option, value) in [
            ("--sweep", simulate.sweep.clone()),
            ("--service", simulate.service.clone()),
            ("--link-us", simulate.link_us.map(|us| us.to_string())),
            ("--wire-us", simulate.wire_us.map(|us| us.to_string())),
            ("--live", simulate.live.map(|it| it.name().to_owned())),
            ("--workers", simulate.workers.map(|count| count.to_string())),
            (
                "--skip-first",
                simulate.skip_first.map(|count| count.to_string()),
            ),
        ] {
            if let Some(value) = value {
                command.args([option, &value]);
            }
        }
        if let Some(votes) = &simulate.votes {
            command.arg("--votes").arg(near(votes));
        }
        command.args(["--json", "-"]);
        if simulate.timed {
            // Runs at the same time would take each other's time.
            command.env("RAYON_NUM_THREADS", "1");
        }
        command
    }

    fn bench(&self, bench: &Bench) -> Command {
        let mut command = cargo::host(&self.workspace.root);
        // `bench` builds with the release profile's settings.
        let profile = match self.profile {
            "release" => "bench",
            other => other,
        };
        command.args(["bench", "--quiet", "--workspace", "--profile", profile]);
        command.args(["--bench", &bench.name, "--", "--json"]);
        command
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn prepared_files_lie_below_target() {
        let workspace = Workspace::load().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let (runs, any) = (folder.path().join("runs"), folder.path());
        let program = Program {
            workspace: &workspace,
            file: "switchyard".into(),
            profile: "dev",
            kept: Kept::open(runs, &std::env::current_exe().unwrap(), any, any).unwrap(),
        };
        let prepare = Prepare {
            command: "prepare ramsis".to_owned(),
            args: vec!["--workers".to_owned(), "60".to_owned()],
            out: PathBuf::from("policies/ramsis/image-60"),
            results: Some("expected".to_owned()),
            each: BTreeMap::new(),
        };
        let (args, out) = &prepare.runs()[0];
        let line = shell::line(&program.prepare(&prepare, args, out));
        let expected =
            "switchyard prepare ramsis --workers 60 --out target/policies/ramsis/image-60 --json";
        assert_eq!(line, expected);
    }
}
