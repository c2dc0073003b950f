//! All checks, cheapest first.
//!
//! The host is built in the `dev` profile throughout, with the whole workspace's features, so
//! that every dependency is compiled once.

use std::ffi::OsString;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use switchyard_kit::{cargo, shell};

use crate::bench::Verdict;
use crate::launch::demo_arguments;
use crate::plugins::{self, Guests};
use crate::workspace::Workspace;
use crate::{bench, paper, python, tidy};

/// The outcome of a step that did not fail.
enum Outcome {
    Passed,
    /// Not run, for the reason given.
    Skipped(String),
}

/// Runs steps one after the other and keeps their sum.
struct Runner {
    started: Instant,
    passed: usize,
    skipped: Vec<String>,
}

/// Runs all steps; a line that sums them up goes to stdout.
///
/// # Errors
/// The first failure, with its step and command line.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let mut runner = Runner::new();
    runner.command(
        "format",
        cargo(workspace, &["fmt", "--all", "--", "--check"]),
    )?;
    runner.step("tidy", || tidy::check(workspace).map(|()| Outcome::Passed))?;
    runner.step("plugins", || build_components(workspace))?;
    runner.command("clippy", clippy(workspace))?;
    runner.command("test", test(workspace))?;
    runner.step("python", || python_module(workspace))?;
    runner.command("doc", doc(workspace))?;
    runner.step("deny", || deny(workspace))?;
    runner.step("instructions", || instructions(workspace))?;
    runner.step("paper", || claims(workspace))?;
    runner.step("demo", || demo(workspace))?;
    println!("{}", runner.summary());
    Ok(())
}

/// The step of the Python module only.
///
/// # Errors
/// As of [`run`].
pub(crate) fn python(workspace: &Workspace) -> Result<()> {
    let mut runner = Runner::new();
    runner.step("python", || python_module(workspace))
}

fn cargo(workspace: &Workspace, arguments: &[&str]) -> Command {
    let mut command = cargo::host(&workspace.root);
    command.args(arguments);
    command
}

fn clippy(workspace: &Workspace) -> Command {
    cargo(
        workspace,
        &[
            "clippy",
            "--workspace",
            "--all-targets",
            "--",
            "-D",
            "warnings",
        ],
    )
}

fn test(workspace: &Workspace) -> Command {
    let mut command = cargo(workspace, &["test", "--workspace"]);
    command
        .env("SWITCHYARD_POLICIES", plugins::policies(workspace))
        .env("SWITCHYARD_GUESTS", plugins::guests(workspace));
    command
}

/// Libraries and programs.
fn doc(workspace: &Workspace) -> Command {
    let mut command = cargo(workspace, &["doc", "--workspace", "--no-deps"]);
    // `--examples` selects the tests' features too, so that clippy's checks are used again.
    command
        .args(["--lib", "--examples", "--bins"])
        .env("RUSTDOCFLAGS", "-D warnings");
    command
}

fn build_components(workspace: &Workspace) -> Result<Outcome> {
    let built = plugins::build(workspace, Guests::Include)?;
    eprint!("{}", plugins::table(&built));
    Ok(Outcome::Passed)
}

/// Without the advisory database, which CI cannot reach.
fn deny(workspace: &Workspace) -> Result<Outcome> {
    if shell::answer(&mut cargo(workspace, &["deny", "--version"])).is_none() {
        return Ok(Outcome::Skipped("cargo-deny is not installed".to_owned()));
    }
    announced(&mut cargo(
        workspace,
        &["deny", "check", "licenses", "bans", "sources"],
    ))
}

/// The program that the tests were built with.
fn host(workspace: &Workspace) -> Result<OsString> {
    // `--tests` selects the tests' features too; without it the dependencies are built again.
    let mut build = cargo(
        workspace,
        &["build", "--workspace", "--tests", "--bin", "switchyard"],
    );
    let artifacts = cargo::build(&mut build)?;
    cargo::program(&artifacts, &workspace.root.join("host/cli"), "switchyard")
}

/// The Python module against the program.
fn python_module(workspace: &Workspace) -> Result<Outcome> {
    let skipped = python::test(workspace)?;
    Ok(skipped.map_or(Outcome::Passed, Outcome::Skipped))
}

/// Counts the instructions of a request and a window.
fn instructions(workspace: &Workspace) -> Result<Outcome> {
    Ok(match bench::check(workspace)? {
        Verdict::Held => Outcome::Passed,
        Verdict::Skipped(reason) => Outcome::Skipped(reason),
    })
}

/// The papers' claims that simulation checks: the same on every machine.
fn claims(workspace: &Workspace) -> Result<Outcome> {
    paper::check(workspace, host(workspace)?).map(|()| Outcome::Passed)
}

/// The demo, shortened.
fn demo(workspace: &Workspace) -> Result<Outcome> {
    let mut command = Command::new(host(workspace)?);
    cargo::forget_outer_cargo(&mut command);
    announced(
        command
            .current_dir(&workspace.root)
            .args(demo_arguments())
            .arg("--quick"),
    )
}

fn announced(command: &mut Command) -> Result<Outcome> {
    eprintln!("   {}", shell::line(command));
    shell::run(command).map(|()| Outcome::Passed)
}

// === impl Runner ===

impl Runner {
    fn new() -> Self {
        Self {
            started: Instant::now(),
            passed: 0,
            skipped: Vec::new(),
        }
    }

    fn command(&mut self, name: &str, mut command: Command) -> Result<()> {
        self.step(name, || announced(&mut command))
    }

    fn step(&mut self, name: &str, work: impl FnOnce() -> Result<Outcome>) -> Result<()> {
        let started = Instant::now();
        eprintln!("== {name}");
        let outcome = work().with_context(|| {
            format!("step `{name}` failed after {}", seconds(started.elapsed()))
        })?;
        match outcome {
            Outcome::Passed => {
                self.passed += 1;
                eprintln!("== {name}: passed in {}", seconds(started.elapsed()));
            }
            Outcome::Skipped(why) => {
                self.skipped.push(format!("{name} ({why})"));
                eprintln!("== {name}: skipped, {why}");
            }
        }
        Ok(())
    }

    fn summary(&self) -> String {
        let skipped = if self.skipped.is_empty() {
            "none skipped".to_owned()
        } else {
            format!("skipped: {}", self.skipped.join(", "))
        };
        format!(
            "{} steps passed in {}; {skipped}",
            self.passed,
            seconds(self.started.elapsed())
        )
    }
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use anyhow::bail;

    use super::*;

    #[test]
    fn the_summary_counts_steps_and_names_skipped_ones() {
        let mut runner = Runner::new();
        runner.step("one", || Ok(Outcome::Passed)).unwrap();
        runner
            .step("two", || Ok(Outcome::Skipped("no tool".to_owned())))
            .unwrap();
        let summary = runner.summary();
        assert!(summary.starts_with("1 steps passed in "), "{summary}");
        assert!(summary.ends_with("skipped: two (no tool)"), "{summary}");
    }

    #[test]
    fn a_failure_names_its_step_and_command() {
        let mut runner = Runner::new();
        let error = runner.command("broken", Command::new("false")).unwrap_err();
        let text = format!("{error:#}");
        assert!(
            text.contains("step `broken` failed") && text.contains("`false`"),
            "{text}"
        );
        assert!(runner.step("also broken", || bail!("no")).is_err());
        assert_eq!(runner.passed, 0);
    }

    #[test]
    fn tests_are_told_where_the_components_are() {
        let workspace = Workspace::load().unwrap();
        let line = shell::line(&test(&workspace));
        assert!(
            line.contains("target/policies ") && line.contains("target/policies-test "),
            "{line}"
        );
    }
}
