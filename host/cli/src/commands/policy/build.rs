//! `switchyard policy build`: a project becomes a component.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use switchyard_kit::project::{self, BuildOptions, BuiltPolicy};

use crate::commands::Failure;

/// Build a policy's project into a component, with its language's own tools
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  switchyard policy build my-policy
  switchyard policy build my-policy --out target/policies/my-policy.wasm

A folder with Cargo.toml is built by cargo, with pyproject.toml by pip and componentize-py, with
package.json by npm and componentize-js, with policy.c by clang. The project's NAME.toml and the
files in its folder weights are put beside the component.

Exit codes: 0 built, 1 the build failed or made no policy, 2 there is no project.")]
pub(super) struct BuildArgs {
    /// The project's folder
    #[arg(value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    /// Where the component goes; else DIR/build/NAME.wasm
    #[arg(long, value_name = "FILE.wasm")]
    out: Option<PathBuf>,
    /// Leave in what Python and JavaScript ask of an operating system: it gets them an empty world,
    /// in which what they print goes to the log
    #[arg(long)]
    wasi: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What was built, for programs.
#[derive(Serialize)]
struct Report<'a> {
    file: &'a PathBuf,
    language: &'static str,
    bytes: usize,
    imports: &'a [String],
}

/// Builds and says what came out.
pub(super) fn run(args: &BuildArgs) -> Result<(), Failure> {
    if !args.dir.is_dir() {
        return Err(Failure::input(format!(
            "{} is no folder",
            args.dir.display()
        )));
    }
    let options = BuildOptions {
        out: args.out.as_deref(),
        wasi: args.wasi,
    };
    let built =
        project::build(&args.dir, options).map_err(|error| Failure::check(format!("{error:#}")))?;
    let BuiltPolicy {
        file,
        language,
        size_bytes,
        imports,
    } = &built;
    if args.json {
        let report = Report {
            file,
            language: language.name(),
            bytes: *size_bytes,
            imports,
        };
        let json = serde_json::to_string_pretty(&report).map_err(Failure::check)?;
        println!("{json}");
        return Ok(());
    }
    let kib = *size_bytes as f64 / 1_024.0;
    println!("{}: {kib:.1} KiB, from {language}", file.display());
    if imports.is_empty() {
        println!("imports nothing");
    }
    for import in imports {
        println!("imports {import}");
    }
    Ok(())
}
