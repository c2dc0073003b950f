//! `switchyard models`: what a profile says of every variant, as a table and as a page.

mod page;
mod sheet;

use std::path::PathBuf;

use clap::Args;
use switchyard_profile::ProfileFile;

use self::sheet::Sheet;
use super::Failure;

/// Show what every variant can do and takes, as a profile has it
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  switchyard models --profile profiles/here.json
  switchyard models --profile profiles/here.json --markdown docs/models.md
  switchyard models --profile profiles/here.json --json

Everything comes from the profile: parameters, accuracy and recall spread per exit, latency by
batch, load time, memory, and what cutting a variant into its stages costs.

In a page that is there already, only what stands between its two marks is written anew.")]
pub(super) struct ModelsArgs {
    /// A profile, as `switchyard profile` writes it
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
    let sheet = Sheet::new(&file);
    if args.json {
        let json = serde_json::to_string_pretty(&sheet).map_err(Failure::check)?;
        println!("{json}");
    } else {
        println!("{}", sheet.table().trim_fmt());
    }
    if let Some(page) = &args.markdown {
        page::write(page, &sheet).map_err(Failure::input)?;
        if !args.json {
            println!("\nwritten to {}", page.display());
        }
    }
    Ok(())
}
