//! `switchyard arena`: policies on every workload of every test bed, as a scoreboard.
//!
//! In data order:
//! - [`arguments`]: the options
//! - [`bed`]: test beds with their load; [`capacity`]: the load that counts as 1
//! - [`shapes`]: the shipped workloads; [`rate`]: the mean rate of any workload
//! - [`contest`]: policies, cells and their runs; [`score`]: from utilities to ranks
//! - [`data`]: the results; [`results`]: from runs to them
//! - [`cells`]: numbers as text; [`markdown`], [`page`]: the scoreboard

mod arguments;
mod bed;
mod capacity;
mod cells;
mod contest;
mod data;
mod markdown;
mod page;
mod rate;
mod results;
mod score;
mod shapes;

use std::fs;
use std::path::Path;
use std::time::Instant;

use indicatif::{ProgressBar, ProgressStyle};
use switchyard_profile::Machine;

pub(super) use self::arguments::ArenaArgs;
use self::contest::Contest;
use self::data::{ArenaData, Measured};
use super::draft::write_file;
use super::failure::Failure;
use super::output::check_folder;
use super::print;

/// Runs, writes the three files, and prints the ranking.
pub(super) fn run(args: &ArenaArgs) -> Result<(), Failure> {
    check_folder("--out", &args.out)?;
    let began = Instant::now();
    let contest = Contest::try_new(args)?;
    let bar = ProgressBar::new(contest.runs() as u64).with_style(style());
    let played = contest.play(&|| bar.inc(1));
    bar.finish_and_clear();
    let measured = Measured {
        command: args.command(),
        machine: Machine::detect(),
        seconds: began.elapsed().as_secs_f64(),
        windows: contest.window_costs(),
    };
    let data = results::of(&contest, played, measured);
    write(&data, &args.out)?;
    match args.json {
        true => print::json(&data),
        false => print::line(markdown::ranking(&data)),
    }
}

/// `index.html`, `scoreboard.md` and `results.json`.
fn write(data: &ArenaData, folder: &Path) -> Result<(), Failure> {
    let unwritten = |path: &Path, error: std::io::Error| {
        Failure::input(format!("--out: {}: {error}", path.display()))
    };
    fs::create_dir_all(folder).map_err(|error| unwritten(folder, error))?;
    let json = serde_json::to_string_pretty(data).map_err(Failure::check)?;
    let files = [
        ("index.html", page::html(data)),
        ("scoreboard.md", markdown::page(data)),
        ("results.json", json + "\n"),
    ];
    for (name, text) in files {
        let file = folder.join(name);
        write_file(&file, text).map_err(|error| unwritten(&file, error))?;
        print::note(format_args!("written: {}", file.display()));
    }
    Ok(())
}

fn style() -> ProgressStyle {
    ProgressStyle::with_template("arena {wide_bar} {pos}/{len} runs {eta}")
        .unwrap_or_else(|_| ProgressStyle::default_bar())
}
