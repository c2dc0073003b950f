//! `switchyard models`: the variants of a profile, as a table and as a page.

mod page;
mod sheet;

use std::path::PathBuf;

use clap::Args;
use switchyard_profile::ProfileFile;

use self::sheet::{NOISE_NOTE, Sheet};
use super::failure::Failure;
use super::output::{Folders, check_file};
use super::print;

/// Show accuracy, latency and memory of every variant in a profile
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  switchyard models --profile profiles/here.json
  switchyard models --profile profiles/here.json --markdown docs/models.md
  switchyard models --profile profiles/here.json --json

The table has parameters, accuracy and recall of each exit, latency by batch, load time, memory,
and the cost of running a variant stage by stage, marked `~` if it is within the noise.

In an existing page, only the part between its two marks is replaced.")]
pub(super) struct ModelsArgs {
    /// A profile of `switchyard profile`
    #[arg(long, value_name = "FILE")]
    profile: PathBuf,
    /// Write the tables into this page
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Reads, prints and writes.
pub(super) fn run(args: &ModelsArgs) -> Result<(), Failure> {
    let file = ProfileFile::load(&args.profile).map_err(Failure::input)?;
    if let Some(page) = &args.markdown {
        check_file("--markdown", page, Folders::Made)?;
    }
    let sheet = Sheet::new(&file);
    match args.json {
        true => print::json(&sheet)?,
        false => print::line(format_args!("{}\n\n{NOISE_NOTE}", sheet.table().trim_fmt()))?,
    }
    if let Some(page) = &args.markdown {
        page::write(page, &sheet).map_err(Failure::input)?;
        if !args.json {
            print::line(format_args!("\nwritten to {}", page.display()))?;
        }
    }
    Ok(())
}
