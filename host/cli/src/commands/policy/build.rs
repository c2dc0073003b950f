//! `switchyard policy build`: a project becomes a component.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use switchyard_kit::Language;
use switchyard_kit::project::{self, BuildOptions, BuiltPolicy};

use crate::commands::failure::Failure;
use crate::commands::output::{Folders, check_file};
use crate::commands::print;

/// Build a policy's project into a component, with its language's own tools
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  switchyard policy build my-policy
  switchyard policy build my-policy --out target/policies/my-policy.wasm

A folder with Cargo.toml is built by cargo, with pyproject.toml by pip and componentize-py, with
package.json by npm and componentize-js, with policy.c by clang. The project's NAME.toml and the
files in its folder weights are copied next to the component.

Exit codes: 0 built, 1 the build failed or the component is not a policy, 2 DIR has no
project.")]
pub(super) struct BuildArgs {
    /// The project's folder
    #[arg(value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    /// File of the component [default: DIR/build/NAME.wasm]
    #[arg(long, value_name = "FILE.wasm")]
    out: Option<PathBuf>,
    /// Keep the WASI imports of Python and JavaScript; the host answers them with an empty world and
    /// logs printed text
    #[arg(long)]
    wasi: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The component and its imports, as JSON.
#[derive(Serialize)]
struct Report<'a> {
    file: &'a PathBuf,
    language: &'static str,
    bytes: usize,
    imports: &'a [String],
}

/// Builds and prints the component's size and imports.
pub(super) fn run(args: &BuildArgs) -> Result<(), Failure> {
    if !args.dir.is_dir() {
        return Err(Failure::input(format!(
            "{}: is not a folder",
            args.dir.display()
        )));
    }
    if Language::of(&args.dir).is_none() {
        return Err(Failure::input(project::no_policy(&args.dir)));
    }
    if let Some(out) = &args.out {
        check_file("--out", out, Folders::Made)?;
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
        return print::json(&report);
    }
    let kib = *size_bytes as f64 / 1_024.0;
    print::line(format_args!(
        "{}: {kib:.1} KiB, from {language}",
        file.display()
    ))?;
    if imports.is_empty() {
        return print::line("imports nothing");
    }
    imports
        .iter()
        .try_for_each(|import| print::line(format_args!("imports {import}")))
}
