//! Instructions of the calls that every request or window needs, counted by callgrind and compared
//! with `tests/instructions.toml`.
//!
//! Counts belong to one compiler and to the dev profile, which the suite builds.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use crate::plugins::{self, Guests};
use crate::workspace::Workspace;
use switchyard_kit::{cargo, shell};

/// Counted calls of each case. The bench makes uncounted calls first.
const CALLS: u64 = 32;

/// The counts to hold.
#[derive(Debug, Serialize, Deserialize, PartialEq, Eq)]
struct Kept {
    /// The compiler, as `rustc --version` prints it.
    rustc: String,
    /// How far above its count a case may come, in percent.
    tolerance_percent: u64,
    /// Instructions per call, by case.
    counts: BTreeMap<String, u64>,
}

/// How the guard ended when it did not fail.
pub(crate) enum Verdict {
    /// Every count was held.
    Held,
    /// It was not run, for this reason.
    Skipped(String),
}

/// As the suite runs it.
///
/// # Errors
/// A case takes more instructions than it may, or cannot be counted.
pub(crate) fn check(workspace: &Workspace) -> Result<Verdict> {
    let kept = read(workspace)?;
    let rustc = rustc()?;
    if rustc != kept.rustc {
        let reason = format!("counts are of {}, this is {rustc}", kept.rustc);
        return Ok(Verdict::Skipped(reason));
    }
    if shell::answer(Command::new("valgrind").arg("--version")).is_none() {
        return Ok(Verdict::Skipped("valgrind is not installed".to_owned()));
    }
    let program = build(workspace)?;
    let found = match count_all(workspace, &program) {
        Ok(found) => found,
        // An error of callgrind is no regression: it may not know a new processor.
        Err(error) => {
            let reason = format!("callgrind does not run it here: {error:#}");
            return Ok(Verdict::Skipped(reason));
        }
    };
    print!("{}", table(&kept, &found));
    let broken = beyond(&kept, &found);
    if broken.is_empty() {
        return Ok(Verdict::Held);
    }
    bail!(
        "{}; if that is intended: cargo xtask bench --guard --update",
        broken.join("; ")
    )
}

/// As `bench --guard` runs it.
///
/// # Errors
/// As [`check`].
pub(crate) fn run(workspace: &Workspace, update: bool) -> Result<()> {
    plugins::build(workspace, Guests::Leave)?;
    if !update {
        if let Verdict::Skipped(reason) = check(workspace)? {
            bail!("{reason}");
        }
        return Ok(());
    }
    let kept = Kept {
        rustc: rustc()?,
        tolerance_percent: 15,
        counts: count_all(workspace, &build(workspace)?)?,
    };
    let head = "# Instructions per call, dev profile: `cargo xtask bench --guard`.\n";
    let text = toml::to_string(&kept).context("cannot write the counts")?;
    let file = file(workspace);
    fs::write(&file, format!("{head}{text}"))
        .with_context(|| format!("cannot write {}", file.display()))?;
    print!("{text}");
    Ok(())
}

fn file(workspace: &Workspace) -> PathBuf {
    workspace.root.join("tests/instructions.toml")
}

fn read(workspace: &Workspace) -> Result<Kept> {
    let file = file(workspace);
    let text =
        fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
    toml::from_str(&text).with_context(|| format!("{}", file.display()))
}

fn rustc() -> Result<String> {
    shell::answer(Command::new("rustc").arg("--version")).context("cannot run `rustc --version`")
}

fn count_all(workspace: &Workspace, program: &OsString) -> Result<BTreeMap<String, u64>> {
    let names = shell::answer(&mut Command::new(program)).context("the bench names no cases")?;
    names
        .lines()
        .map(|case| Ok((case.to_owned(), count(workspace, program, case)?)))
        .collect()
}

/// `--tests` selects the features of the tests, so that no dependency is built again.
fn build(workspace: &Workspace) -> Result<OsString> {
    let mut command = cargo::host(&workspace.root);
    command.args([
        "build",
        "--workspace",
        "--tests",
        "--bin",
        "switchyard",
        "--bench",
        "instructions",
    ]);
    let artifacts = cargo::build(&mut command)?;
    cargo::bench(&artifacts, &workspace.root.join("host/cli"), "instructions")
}

fn count(workspace: &Workspace, program: &OsString, case: &str) -> Result<u64> {
    let mut command = Command::new("valgrind");
    command
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg("--toggle-collect=*instructions*counted*")
        .arg(program)
        .args([case, &CALLS.to_string()])
        .env("SWITCHYARD_POLICIES", plugins::policies(workspace))
        .stdin(Stdio::null());
    let output = command
        .output()
        .with_context(|| format!("cannot start `{}`", shell::line(&command)))?;
    let said = String::from_utf8_lossy(&output.stderr);
    collected(&said)
        .filter(|_| output.status.success())
        .map(|count| count / CALLS)
        .with_context(|| format!("`{}`: {said}", shell::line(&command)))
}

/// The last `Collected : N` of callgrind's report.
fn collected(report: &str) -> Option<u64> {
    let line = report
        .lines()
        .rev()
        .find(|line| line.contains("Collected :"))?;
    let count = line.rsplit(':').next()?.trim().parse().ok()?;
    // 0: callgrind did not find the function.
    (count > 0).then_some(count)
}

/// Cases above their limit, and cases without a counterpart.
fn beyond(kept: &Kept, found: &BTreeMap<String, u64>) -> Vec<String> {
    let mut broken = Vec::new();
    for (case, &count) in found {
        match kept.counts.get(case) {
            Some(&was) if count * 100 > was * (100 + kept.tolerance_percent) => {
                broken.push(format!(
                    "{case} takes {count} instructions, {was} are kept and {} % more allowed",
                    kept.tolerance_percent
                ));
            }
            Some(_) => {}
            None => broken.push(format!("no count is kept for {case}")),
        }
    }
    let gone = kept.counts.keys().filter(|case| !found.contains_key(*case));
    broken.extend(gone.map(|case| format!("a count is kept for {case}, which is no case")));
    broken
}

fn table(kept: &Kept, found: &BTreeMap<String, u64>) -> String {
    let mut text =
        String::from("| case | kept | counted | ratio |\n| --- | ---: | ---: | ---: |\n");
    for (case, &count) in found {
        let was = kept.counts.get(case).copied().unwrap_or_default();
        let ratio = count as f64 / was.max(1) as f64;
        text.push_str(&format!("| {case} | {was} | {count} | {ratio:.3} |\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(of: &[(&str, u64)]) -> BTreeMap<String, u64> {
        of.iter()
            .map(|(name, n)| ((*name).to_owned(), *n))
            .collect()
    }

    #[test]
    fn fifteen_percent_is_the_end_of_it() {
        let kept = Kept {
            rustc: "rustc".to_owned(),
            tolerance_percent: 15,
            counts: counts(&[("a", 100), ("b", 100), ("c", 100), ("gone", 1)]),
        };
        let found = counts(&[("a", 115), ("b", 116), ("c", 20), ("new", 1)]);
        assert_eq!(
            beyond(&kept, &found),
            [
                "b takes 116 instructions, 100 are kept and 15 % more allowed",
                "no count is kept for new",
                "a count is kept for gone, which is no case",
            ]
        );
    }

    #[test]
    fn callgrinds_report_is_read() {
        let report = "==1== Events    : Ir\n==1== Collected : 4711\n==1== \n";
        assert_eq!(collected(report), Some(4_711));
        assert_eq!(collected("==1== Collected : 0\n"), None);
        assert_eq!(collected("no such tool"), None);
    }
}
