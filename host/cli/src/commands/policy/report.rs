//! The output of `policy check`, as text and as JSON.

use std::fmt::Display;
use std::path::Path;

use comfy_table::Table;
use comfy_table::presets::NOTHING;
use serde::Serialize;
use switchyard_conformance::{Examination, Finding, advice};
use switchyard_core::policy::{Description, Triggers};
use switchyard_policy::{Limits, Loaded};

use crate::commands::failure::Failure;
use crate::commands::print;

/// The verdict on one component, with its reasons.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    file: String,
    passed: bool,
    /// Each failure with its cases.
    reasons: Vec<String>,
    /// The same, with the change that helps.
    verdicts: Vec<Verdict>,
    /// None if it was not loaded.
    about: Option<About>,
    examination: Option<Examination>,
}

/// One failure.
#[derive(Debug, Serialize)]
struct Verdict {
    /// The cases with this failure, or the step of loading that failed.
    cases: Vec<String>,
    failure: String,
    /// The peculiarity of the windows of these cases.
    special: Vec<&'static str>,
    /// The change that helps.
    advice: Option<&'static str>,
}

/// A component's description, and the facts that its file shows.
#[derive(Debug, Serialize)]
pub(super) struct About {
    name: String,
    version: String,
    summary: String,
    /// When it is called.
    called: Vec<String>,
    /// Window fields that it asks for, in addition to requests and workers.
    sees: Vec<&'static str>,
    settings: serde_json::Value,
    bytes: usize,
    hash: String,
    imports: Vec<String>,
    exports: Vec<String>,
    compile_us: u64,
    describe_us: u64,
    configure_us: u64,
}

/// The limits of the host.
pub(super) struct Allowance {
    window: String,
    memory: String,
}

// === impl Report ===

impl Report {
    pub(super) fn examined(file: &Path, about: About, examination: Examination) -> Self {
        let verdicts = verdicts(&examination.findings);
        Self {
            file: file.display().to_string(),
            passed: examination.passed(),
            reasons: verdicts.iter().map(Verdict::reason).collect(),
            verdicts,
            about: Some(about),
            examination: Some(examination),
        }
    }

    /// A component that was not loaded; `phase` is the step that failed.
    pub(super) fn refused(file: &Path, phase: &str, cause: &dyn Display) -> Self {
        let failure = cause.to_string();
        let verdict = Verdict {
            cases: vec![phase.to_owned()],
            special: Vec::new(),
            // With the phase, which may be the only word that names the failed step.
            advice: advice(&format!("{phase}: {failure}")),
            failure,
        };
        Self {
            file: file.display().to_string(),
            passed: false,
            reasons: vec![verdict.reason()],
            verdicts: vec![verdict],
            about: None,
            examination: None,
        }
    }

    pub(super) fn verdict(&self) -> Result<(), Failure> {
        if self.passed {
            return Ok(());
        }
        let first = self.reasons.first().map_or("", String::as_str);
        let more = match self.reasons.len() {
            0 | 1 => String::new(),
            all => format!("; and {} more reasons", all - 1),
        };
        Err(Failure::check(format!(
            "{} fails: {first}{more}",
            self.file
        )))
    }

    pub(super) fn print(&self, allowance: &Allowance, json: bool) -> Result<(), Failure> {
        if json {
            return print::json(self);
        }
        if let Some(about) = &self.about {
            print::line(format_args!("{about}\n"))?;
        }
        if let Some(examination) = &self.examination {
            let (cases, costs) = (cases(examination), costs(examination, allowance));
            print::line(format_args!("{}\n", cases.trim_fmt()))?;
            print::line(format_args!("{}\n", costs.trim_fmt()))?;
            for note in &examination.notes {
                print::line(format_args!("note: {note}\n"))?;
            }
        }
        if self.passed {
            return print::line("passes");
        }
        print::line("fails:")?;
        self.verdicts.iter().try_for_each(print::line)
    }
}

/// Each failure once, with the cases in which it came up.
fn verdicts(findings: &[Finding]) -> Vec<Verdict> {
    let mut grouped: Vec<Verdict> = Vec::new();
    for finding in findings {
        let Some(failure) = &finding.failure else {
            continue;
        };
        let case = finding.case.to_owned();
        match grouped.iter_mut().find(|known| known.failure == *failure) {
            Some(known) => {
                known.cases.push(case);
                known.special.extend(finding.special);
            }
            None => grouped.push(Verdict {
                cases: vec![case],
                failure: failure.clone(),
                special: finding.special.into_iter().collect(),
                advice: finding.advice,
            }),
        }
    }
    grouped
}

fn cases(examination: &Examination) -> Table {
    let mut table = table(&["case", "outcome"]);
    for Finding { case, failure, .. } in &examination.findings {
        table.add_row([*case, failure.as_ref().map_or("passed", |_| "FAILED")]);
    }
    table
}

fn costs(examination: &Examination, allowance: &Allowance) -> Table {
    let mut table = table(&["window call", "p50", "p99", "limit"]);
    for cost in &examination.costs {
        let pending = format!("{} pending", cost.pending);
        let limit = allowance.window.clone();
        table.add_row([pending, micros(cost.p50_us), micros(cost.p99_us), limit]);
    }
    let peak = mib(examination.memory_peak_bytes);
    table.add_row([
        "memory".to_owned(),
        peak,
        String::new(),
        allowance.memory.clone(),
    ]);
    table
}

fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_preset(NOTHING).set_header(header);
    table
}

fn micros(us: f64) -> String {
    format!("{us:.1} us")
}

fn mib(bytes: usize) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}

// === impl Verdict ===

impl Verdict {
    fn reason(&self) -> String {
        format!("{}: {}", self.cases.join(", "), self.failure)
    }
}

impl Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "  {}", self.reason())?;
        // A peculiarity of one case does not explain a failure in several.
        if let [special] = self.special[..] {
            write!(f, "\n    there: {special}")?;
        }
        match self.advice {
            Some(advice) => write!(f, "\n    change: {advice}"),
            None => Ok(()),
        }
    }
}

// === impl About ===

impl About {
    pub(super) fn of(loaded: &Loaded) -> Self {
        let Description {
            name,
            version,
            summary,
            ..
        } = loaded.policy.description().clone();
        Self {
            called: called(loaded.policy.description()),
            sees: sees(loaded.policy.description()),
            name,
            version,
            summary,
            settings: serde_json::from_str(&loaded.version.settings).unwrap_or_default(),
            bytes: loaded.version.bytes.len(),
            hash: loaded.version.hash.to_string(),
            imports: loaded.interface.imports.clone(),
            exports: loaded.interface.exports.clone(),
            compile_us: loaded.report.compile_us,
            describe_us: loaded.report.describe_us,
            configure_us: loaded.report.configure_us,
        }
    }

    /// The imports; those of WASI by interface, because libraries import dozens of functions.
    fn asks(&self) -> Vec<String> {
        let shown = self.imports.iter().map(|import| {
            let interface = import.split('#').next().unwrap_or(import);
            let is_wasi = import.starts_with("wasi:");
            if is_wasi { interface } else { import }.to_owned()
        });
        let mut shown: Vec<String> = shown.collect();
        shown.dedup();
        shown
    }

    /// The abilities that the imports give.
    fn may(&self) -> String {
        let words = self
            .imports
            .iter()
            .map(|import| match import.rsplit_once('#') {
                Some((_, "log")) => "write log lines".to_owned(),
                Some((_, "read-artifact")) => {
                    "read files of its own folder while it is configured".to_owned()
                }
                Some((_, "random-u64")) => "draw numbers from the host's seeded stream".to_owned(),
                _ if import.starts_with("wasi:") => {
                    "see an empty WASI world: the window's time, seeded random numbers, and a log \
                     for printed text"
                        .to_owned()
                }
                _ => format!("call {import}"),
            });
        let mut words: Vec<String> = words.collect();
        words.dedup();
        if words.is_empty() {
            "answer windows only".to_owned()
        } else {
            words.join(", ")
        }
    }
}

impl Display for About {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{} {}: {}", self.name, self.version, self.summary)?;
        let none = || "nothing".to_owned();
        let listed = |list: &[String]| {
            if list.is_empty() {
                none()
            } else {
                list.join(", ")
            }
        };
        let sees = if self.sees.is_empty() {
            none()
        } else {
            self.sees.join(", ")
        };
        let ms = |us: u64| format!("{:.1} ms", us as f64 / 1e3);
        let loading = format!(
            "compiled in {}, described in {}, configured in {}",
            ms(self.compile_us),
            ms(self.describe_us),
            ms(self.configure_us)
        );
        let rows = [
            ("component", format!("{} bytes, {}", self.bytes, self.hash)),
            ("exports", listed(&self.exports)),
            ("imports", listed(&self.asks())),
            ("may", self.may()),
            (
                "may not",
                "see a clock, files, the environment or a network".to_owned(),
            ),
            ("is called", listed(&self.called)),
            ("also sees", sees),
            ("settings", self.settings.to_string()),
            ("loading", loading),
        ];
        let lines: Vec<String> = rows
            .iter()
            .map(|(name, value)| format!("  {name:<10} {value}"))
            .collect();
        write!(f, "{}", lines.join("\n"))
    }
}

fn called(description: &Description) -> Vec<String> {
    let Triggers {
        arrival,
        worker_idle,
        completion,
        evidence,
    } = description.on;
    let named = [
        (arrival, "on arrival"),
        (worker_idle, "when a worker is idle"),
        (completion, "on completion"),
        (evidence, "when evidence is ready"),
    ];
    let mut called: Vec<String> = named
        .into_iter()
        .filter(|(wanted, _)| *wanted)
        .map(|(_, name)| name.to_owned())
        .collect();
    if let Some(every) = description.every {
        called.push(format!("every {every}"));
    }
    called
}

fn sees(description: &Description) -> Vec<&'static str> {
    let wants = description.wants;
    let named = [
        (wants.evidence, "evidence"),
        (wants.completions, "completions"),
        (wants.placed, "placed requests"),
        (wants.residents, "resident models"),
        (description.changed_workers, "changed workers only"),
    ];
    named
        .into_iter()
        .filter(|(wanted, _)| *wanted)
        .map(|(_, name)| name)
        .collect()
}

// === impl Allowance ===

impl Allowance {
    pub(super) fn of(limits: &Limits) -> Self {
        Self {
            window: format!("{:.1} us", limits.window_budget.as_secs_f64() * 1e6),
            memory: mib(limits.memory_bytes),
        }
    }
}
