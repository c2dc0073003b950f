//! The papers' figures: published and measured values.
//!
//! - [`figure`]: the files below `tests/paper`, one per figure
//! - [`formula`]: the value that a claim measures; [`saved`]: the workers that a policy saves
//! - [`curves`]: recorded learning curves
//! - [`program`]: the programs that figures run; [`kept`]: results of earlier runs
//! - [`results`]: the results of a simulation or another program of this repository
//! - [`sample`]: values by seed, and intervals of formulas over them
//! - [`verdict`]: whether a claim holds
//! - [`show`]: a figure as text; [`page`]: all claims on one page; [`policies`]: policies over several figures

mod claim;
mod curves;
mod figure;
mod formula;
mod kept;
mod page;
mod policies;
mod program;
mod results;
mod sample;
mod saved;
mod show;
mod verdict;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;

use self::figure::{FOLDER, Figure, Source};
use self::page::ClaimPage;
use self::policies::PolicyTable;
use self::program::Program;
use self::verdict::Verdict;
use crate::plugins::{self, Guests};
use crate::workspace::Workspace;

/// Options of `paper`.
#[derive(Args)]
pub(crate) struct PaperArgs {
    /// Figures, such as `sneakpeek/fig05`, or `sneakpeek` for all of a paper [default: all]
    names: Vec<String>,
    /// Cargo profile of the host; `dev` compiles sooner and simulates slower
    #[arg(long, default_value = "release")]
    profile: String,
    /// The figures that a server is measured for too; without names only these. They want two cores that
    /// nothing else uses
    #[arg(long)]
    live: bool,
    /// Only claims, no tables
    #[arg(long)]
    claims: bool,
    /// An existing `switchyard` to use instead of building it; figures that are benchmarks are
    /// skipped
    #[arg(long, value_name = "FILE", conflicts_with = "profile")]
    binary: Option<PathBuf>,
}

/// Runs figures and prints published and measured values.
///
/// # Errors
/// A figure cannot be read or run, or a claim differs from its file: it fails without a reason in the
/// file, or holds although the file has a reason.
pub(crate) fn run(workspace: &Workspace, args: &PaperArgs) -> Result<()> {
    let mut figures = select(&workspace.root.join(FOLDER), &args.names)?;
    choose_live(&mut figures, &args.names, args.live);
    let binary = args.binary.as_deref().map(fs::canonicalize).transpose();
    let binary = binary.context("--binary")?;
    let built = plugins::build(workspace, Guests::Leave)?;
    eprint!("{}", plugins::table(&built));
    let program = match binary {
        Some(file) => {
            leave_out(&mut figures, "is a benchmark", is_bench);
            Program::built(workspace, file.into_os_string())?
        }
        None => Program::build(workspace, &args.profile)?,
    };
    judge(workspace, &program, figures, !args.claims)
}

/// Runs every figure that is deterministic and not slow, with an existing program and existing
/// policies.
///
/// # Errors
/// As [`run`].
pub(crate) fn check(workspace: &Workspace, file: OsString) -> Result<()> {
    let mut figures = select(&workspace.root.join(FOLDER), &[])?;
    figures.retain(|figure| {
        !is_bench(figure) && !figure.is_timed() && !figure.is_live() && !figure.slow
    });
    judge(workspace, &Program::built(workspace, file)?, figures, false)
}

/// Live figures are run if they are asked for: by `--live`, or by their whole name.
fn choose_live(figures: &mut Vec<Figure>, names: &[String], live: bool) {
    figures.retain(|figure| match live {
        true => figure.is_live(),
        false => !figure.is_live() || names.contains(&figure.name),
    });
}

fn is_bench(figure: &Figure) -> bool {
    matches!(figure.source, Source::Bench(_))
}

/// Takes figures out, with a note for each.
fn leave_out(figures: &mut Vec<Figure>, why: &str, is_out: impl Fn(&Figure) -> bool) {
    figures.retain(|figure| {
        let is_out = is_out(figure);
        if is_out {
            println!("# {}: skipped, {why}\n", figure.name);
        }
        !is_out
    });
}

/// Runs figures and prints them. Those that lack a file are skipped.
fn judge(
    workspace: &Workspace,
    program: &Program<'_>,
    mut figures: Vec<Figure>,
    with_tables: bool,
) -> Result<()> {
    let all = figures.len();
    let lacking: BTreeSet<PathBuf> = figures
        .iter()
        .filter_map(|figure| figure.lacks(&workspace.root))
        .map(Path::to_owned)
        .collect();
    for file in lacking {
        let why = format!("there is no {}", file.display());
        leave_out(&mut figures, &why, |figure| {
            figure.lacks(&workspace.root) == Some(&file)
        });
    }
    let (mut surprises, mut page) = (Vec::new(), ClaimPage::default());
    let mut policies = PolicyTable::default();
    for figure in &figures {
        let results = program
            .run(figure)
            .with_context(|| format!("figure {}", figure.name))?;
        results
            .check_in_charge()
            .with_context(|| format!("figure {}", figure.name))?;
        let verdicts = figure
            .claims
            .iter()
            .map(|claim| Verdict::of(claim, &results));
        let verdicts = verdicts
            .collect::<Result<Vec<_>>>()
            .with_context(|| figure.file.display().to_string())?;
        print!("{}", show::figure(figure, &results, &verdicts, with_tables));
        page.add(&figure.name, &verdicts);
        policies
            .add(figure, &results)
            .with_context(|| figure.file.display().to_string())?;
        let surprising = verdicts.iter().filter(|verdict| verdict.is_surprise());
        surprises.extend(surprising.map(|v| format!("{}: {}", figure.name, v.claim.says)));
    }
    let skipped = match all - figures.len() {
        0 => String::new(),
        skipped => format!(", {skipped} skipped"),
    };
    println!("{} figures{skipped}; {}", figures.len(), page.summary());
    page.write(&workspace.target("paper"))?;
    policies.write(&workspace.target("paper"))?;
    if !surprises.is_empty() {
        bail!(
            "{} claims came out other than their files say:\n{}",
            surprises.len(),
            surprises.join("\n")
        );
    }
    Ok(())
}

/// The figures that names ask for, in order of their files.
fn select(folder: &Path, names: &[String]) -> Result<Vec<Figure>> {
    let mut files = Vec::new();
    collect(folder, &mut files)?;
    files.sort();
    let all: Vec<(String, PathBuf)> = files
        .into_iter()
        .map(|file| (name(folder, &file), file))
        .collect();
    let is_asked = |name: &str, wanted: &String| {
        name == wanted
            || name
                .strip_prefix(wanted.as_str())
                .is_some_and(|rest| rest.starts_with('/'))
    };
    for wanted in names {
        if !all.iter().any(|(name, _)| is_asked(name, wanted)) {
            let known: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
            bail!("no figure `{wanted}`; there are {}", known.join(", "));
        }
    }
    all.iter()
        .filter(|(name, _)| names.is_empty() || names.iter().any(|wanted| is_asked(name, wanted)))
        .map(|(name, file)| Figure::read(name, file))
        .collect()
}

/// `PAPER/figNN` of `FOLDER/PAPER/figNN.toml`.
fn name(folder: &Path, file: &Path) -> String {
    let relative = file.strip_prefix(folder).unwrap_or(file);
    let name = relative.with_extension("");
    name.to_string_lossy().replace('\\', "/")
}

/// Every `fig*.toml` and `live*.toml` below a folder.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let entries =
        fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        let file_name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() {
            collect(&path, files)?;
        } else if ["fig", "live"].iter().any(|it| file_name.starts_with(it))
            && file_name.ends_with(".toml")
        {
            files.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("..")
            .join(FOLDER)
    }

    #[test]
    fn every_figure_can_be_read() {
        let figures = select(&folder(), &[]).unwrap();
        assert!(
            figures
                .iter()
                .any(|figure| figure.name == "sneakpeek/fig05")
        );
        assert!(figures.iter().all(|figure| !figure.claims.is_empty()));
    }

    #[test]
    fn live_figures_are_run_only_if_asked_for() {
        let names = |wanted: &[&str], live| {
            let wanted: Vec<String> = wanted.iter().map(|&name| name.to_owned()).collect();
            let mut figures = select(&folder(), &wanted).unwrap();
            choose_live(&mut figures, &wanted, live);
            let names = figures.into_iter().map(|figure| figure.name);
            names.collect::<Vec<String>>()
        };
        let live = "sneakpeek/live05";
        assert!(!names(&[], false).iter().any(|name| name == live));
        assert_eq!(names(&[live], false), [live]);
        assert_eq!(names(&["sneakpeek"], true), [live]);
        assert!(names(&[], true).iter().all(|name| name.contains("/live")));
    }

    #[test]
    fn figures_that_cannot_be_run_are_left_out() {
        let mut figures = select(&folder(), &["sneakpeek".to_owned()]).unwrap();
        let all = figures.len();
        leave_out(&mut figures, "not today", |figure| {
            figure.name == "sneakpeek/fig05"
        });
        assert_eq!(figures.len(), all - 1);
        assert!(
            figures
                .iter()
                .all(|figure| figure.name != "sneakpeek/fig05")
        );
    }

    #[test]
    fn figures_are_chosen_by_name_or_paper() {
        let of = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
            select(&folder(), &names)
        };
        assert_eq!(of(&["sneakpeek/fig05"]).unwrap().len(), 1);
        assert!(!of(&["sneakpeek"]).unwrap().is_empty());
        let error = of(&["sneakpeek/fig0"]).unwrap_err().to_string();
        assert!(error.contains("sneakpeek/fig05"), "{error}");
    }
}
