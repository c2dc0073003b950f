//! `switchyard policy cost`: size, times and memory of components in one table.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use comfy_table::Table;
use comfy_table::presets::NOTHING;
use serde::Serialize;
use switchyard_conformance::{Examination, WindowCost, examine};
use switchyard_policy::loader::PolicyTrial;
use switchyard_policy::trial;
use switchyard_policy::{EngineOptions, Limits, Loader, LoaderOptions, PolicyEngine};
use switchyard_profile::Machine;

use crate::commands::failure::Failure;
use crate::commands::output::{Folders, check_file};
use crate::commands::page;
use crate::commands::print;

/// The command that writes the part between the marks of a page.
const COMMAND: &str = "switchyard policy cost --markdown";

/// Head of a new page.
const TITLE: &str = "# Languages\n\n\
    Size, start time, window times and memory of one policy in each language of\n\
    `switchyard policy new`.\n";

/// Budgets that no policy exceeds while it is measured.
const BUDGET: Duration = Duration::from_secs(10);
const MEMORY_BYTES: usize = 256 << 20;

/// Measure components: size, compile time, window calls, memory
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  switchyard policy cost target/policies/fcfs.wasm target/policies/mael.wasm
  switchyard policy cost Rust=r/build/p.wasm C=c/build/p.wasm --markdown docs/languages.md

Every component must pass `policy check`; its windows are measured. Times belong to this machine
and this run: compare the rows of one run. In an existing page, only the part between its two
marks is replaced.

Exit codes: 0 measured, 1 a component fails the check, 2 a file cannot be read.")]
pub(super) struct CostArgs {
    /// Components, each with an optional name for the table: [NAME=]FILE.wasm
    #[arg(value_name = "P", required = true)]
    policies: Vec<Subject>,
    /// Write the table into this page
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A component and its name.
#[derive(Clone, Debug)]
struct Subject {
    name: String,
    file: PathBuf,
}

/// One row of the table.
#[derive(Debug, Serialize)]
struct Cost {
    name: String,
    bytes: usize,
    /// With the optimising compiler, on all cores.
    compile_us: u64,
    /// From compiled code to a configured policy.
    start_us: u64,
    windows: Vec<WindowCost>,
    memory_peak_bytes: usize,
    imports: Vec<String>,
}

/// Measures one component after the other, prints, writes.
pub(super) fn run(args: &CostArgs) -> Result<(), Failure> {
    if let Some(file) = &args.markdown {
        check_file("--markdown", file, Folders::Made)?;
    }
    let costs: Result<Vec<Cost>, Failure> = args.policies.iter().map(measure).collect();
    let costs = costs?;
    match args.json {
        true => print::json(&costs)?,
        false => print::line(table(&costs).trim_fmt())?,
    }
    if let Some(file) = &args.markdown {
        let begin = page::begin(COMMAND);
        page::write(file, TITLE, &begin, &section(&costs)).map_err(Failure::input)?;
        print::note(format_args!("written to {}", file.display()));
    }
    Ok(())
}

fn measure(subject: &Subject) -> Result<Cost, Failure> {
    // A new cache, so that the first load compiles.
    let cache = tempfile::tempdir().map_err(Failure::input)?;
    let limits = Limits {
        window_budget: BUDGET,
        restart_budget: BUDGET,
        configure_budget: BUDGET,
        memory_bytes: MEMORY_BYTES,
        ..Limits::default()
    };
    let options = LoaderOptions {
        cache_dir: Some(cache.path().to_owned()),
        limits,
        seed: 0,
    };
    let engine = PolicyEngine::live(&EngineOptions::default()).map_err(Failure::check)?;
    let loader = Loader::new(engine, options);
    let catalog = trial::catalog();
    let trial = PolicyTrial {
        catalog: &catalog,
        windows: &[],
    };
    let loaded = loader.load(&subject.file, trial).map_err(Failure::input)?;
    let examination = examine(&loader, &loaded.version).map_err(Failure::check)?;
    passes(&subject.file, &examination)?;
    let report = &loaded.report;
    Ok(Cost {
        name: subject.name.clone(),
        bytes: loaded.version.bytes.len(),
        compile_us: report.compile_us,
        start_us: report.describe_us + report.configure_us,
        windows: examination.costs,
        memory_peak_bytes: examination.memory_peak_bytes,
        imports: loaded.interface.imports.clone(),
    })
}

/// Refuses a component that fails the check: it may not have run its windows to the end.
fn passes(file: &Path, examination: &Examination) -> Result<(), Failure> {
    if examination.passed() {
        return Ok(());
    }
    let file = file.display();
    Err(Failure::check(format!(
        "{file} fails the check; `switchyard policy check {file}` prints the reasons"
    )))
}

fn header(costs: &[Cost]) -> Vec<String> {
    let mut header = ["policy", "KiB", "compile ms", "start ms"]
        .map(str::to_owned)
        .to_vec();
    for cost in costs.first().map_or(&[][..], |cost| &cost.windows) {
        header.push(format!("{} pending, p50 us", cost.pending));
        header.push("p99 us".to_owned());
    }
    header.extend(["memory MiB", "imports"].map(str::to_owned));
    header
}

fn table(costs: &[Cost]) -> Table {
    let mut table = Table::new();
    table.load_preset(NOTHING).set_header(header(costs));
    table.add_rows(costs.iter().map(Cost::cells));
    table
}

fn section(costs: &[Cost]) -> String {
    let machine = Machine::detect();
    let header = header(costs);
    let mut rule = vec!["---:"; header.len()];
    rule[0] = "---";
    if let Some(last) = rule.last_mut() {
        *last = "---";
    }
    let mut text = format!(
        "Measured on {} ({} cores, {}, {}), one run.\n\n",
        machine.cpu, machine.cores, machine.arch, machine.os
    );
    text += &format!("| {} |\n| {} |\n", header.join(" | "), rule.join(" | "));
    for cost in costs {
        text += &format!("| {} |\n", cost.cells().join(" | "));
    }
    text
}

// === impl Cost ===

impl Cost {
    fn cells(&self) -> Vec<String> {
        let ms = |us: u64| format!("{:.1}", us as f64 / 1e3);
        let mut cells = vec![
            self.name.clone(),
            format!("{:.0}", self.bytes as f64 / 1_024.0),
            ms(self.compile_us),
            ms(self.start_us),
        ];
        for window in &self.windows {
            cells.push(format!("{:.1}", window.p50_us));
            cells.push(format!("{:.1}", window.p99_us));
        }
        cells.push(format!(
            "{:.1}",
            self.memory_peak_bytes as f64 / f64::from(1 << 20)
        ));
        cells.push(self.asks());
        cells
    }

    fn asks(&self) -> String {
        let has = |prefix: &str| self.imports.iter().any(|name| name.starts_with(prefix));
        match (has("switchyard:"), has("wasi:")) {
            (false, false) => "nothing".to_owned(),
            (true, false) => "host calls".to_owned(),
            (false, true) => "WASI".to_owned(),
            (true, true) => "host calls, WASI".to_owned(),
        }
    }
}

// === impl Subject ===

impl FromStr for Subject {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, file) = match text.split_once('=') {
            Some((name, file)) => (name.to_owned(), PathBuf::from(file)),
            None => {
                let file = PathBuf::from(text);
                let stem = file.file_stem().unwrap_or_default();
                (stem.to_string_lossy().into_owned(), file)
            }
        };
        if name.is_empty() {
            return Err(format!("`{text}`: must be [NAME=]FILE.wasm"));
        }
        Ok(Self { name, file })
    }
}
