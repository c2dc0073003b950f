//! Policies, cells and their runs.

use rayon::prelude::*;
use switchyard_core::event::Notice;
use switchyard_policy::recording::PolicyRecord;
use switchyard_sim::metrics::Report;
use switchyard_sim::overhead::Overhead;
use switchyard_sim::{Contender, Observer, Scenario, Workload, run_observed};
use switchyard_simulate::bundle::Bundle;
use switchyard_simulate::contenders::{LoadRefusal, PolicyLoader, timed};
use switchyard_simulate::named::{FALLBACK, Named, components};
use switchyard_simulate::words;

use super::arguments::ArenaArgs;
use super::bed::{Bed, BedInputs, shipped_names};
use super::data::WindowCostData;
use super::rate::mean_per_s;
use super::shapes::{SHAPES, Shape, ShapeInputs};
use crate::commands::failure::Failure;

/// Everything that runs, checked.
pub(super) struct Contest {
    pub(super) beds: Vec<Bed>,
    pub(super) policies: Vec<Entry>,
    pub(super) workloads: Vec<ArenaWorkload>,
    /// By test bed, then by workload.
    pub(super) cells: Vec<ArenaCell>,
    pub(super) seeds: Vec<u64>,
}

/// A policy and its instances.
pub(super) struct Entry {
    pub(super) named: Named,
    /// Whether it competes with the shipped ones.
    pub(super) is_entrant: bool,
    /// The identity of its component, from the first test bed that it accepts.
    pub(super) record: Option<PolicyRecord>,
    /// By test bed: the policy, or why it refuses the test bed.
    by_bed: Vec<Result<Contestant, String>>,
}

struct Contestant {
    contender: Contender,
    overhead: Overhead,
}

/// A workload before its rate is scaled.
pub(super) enum ArenaWorkload {
    Shape(&'static Shape),
    /// As typed, and parsed with inline traces.
    Own(String, Workload),
}

/// A workload on a test bed.
pub(super) struct ArenaCell {
    /// Positions.
    pub(super) bed: usize,
    pub(super) workload: usize,
    /// Mean arrivals per second.
    pub(super) rate_per_s: f64,
    /// The scenario, or why the workload does not fit the test bed.
    pub(super) scenario: Result<Scenario, String>,
}

/// The runs of one policy in one cell.
pub(super) struct Played {
    /// By seed, or why there are none.
    pub(super) reports: Result<Vec<Report>, String>,
    /// The reason of the first fault.
    pub(super) fault: Option<String>,
}

/// Keeps the reason of the first fault.
#[derive(Default)]
struct FirstFault(Option<String>);

// === impl FirstFault ===

impl Observer for FirstFault {
    fn noticed(&mut self, notice: &Notice) {
        if let Notice::PolicyFaulted(faulted) = notice {
            self.0.get_or_insert_with(|| faulted.fault.to_string());
        }
    }
}

// === impl ArenaWorkload ===

impl ArenaWorkload {
    fn named(text: &str) -> Result<Self, Failure> {
        if let Some(shape) = Shape::named(text) {
            return Ok(Self::Shape(shape));
        }
        let parsed = words::workload(text).map_err(|error| error.to_string());
        // Reads the files of traces.
        let inline = parsed.and_then(|workload| {
            let scaled = workload.scaled(1.0);
            scaled.map_err(|error| error.to_string())
        });
        let workload = inline.map_err(|error| {
            let known = SHAPES.each_ref().map(|shape| shape.name).join(", ");
            Failure::input(format!(
                "--workload: `{text}`: {error}; shipped workloads: {known}"
            ))
        })?;
        Ok(Self::Own(text.to_owned(), workload))
    }

    pub(super) fn name(&self) -> &str {
        match self {
            Self::Shape(shape) => shape.name,
            Self::Own(text, _) => text,
        }
    }

    pub(super) fn title(&self) -> &str {
        match self {
            Self::Shape(shape) => shape.title,
            Self::Own(..) => "given",
        }
    }

    /// With the arrivals and their time, at the rate of a test bed.
    fn on(&self, bed: &Bed, rate_per_s: f64) -> Result<Scenario, String> {
        let mut scenario = bed.base.clone();
        let apps = &scenario.catalog.apps;
        match self {
            Self::Shape(shape) => {
                let inputs = ShapeInputs {
                    rate: rate_per_s,
                    seconds: bed.seconds,
                    first_app: apps.first().map_or("", |app| app.name.as_str()),
                };
                scenario.workload = shape.workload(&inputs)?;
            }
            Self::Own(_, workload) => {
                let mean = mean_per_s(workload, apps.len())?;
                let scaled = workload.scaled(rate_per_s / mean);
                scenario.workload = scaled.map_err(|error| error.to_string())?;
                // A trace runs to its end.
                scenario
                    .until_trace_ends()
                    .map_err(|error| error.to_string())?;
            }
        }
        scenario.validate().map_err(|error| error.to_string())?;
        Ok(scenario)
    }
}

// === impl Contest ===

impl Contest {
    /// Reads and checks everything, so that a mistake is named before the first run.
    ///
    /// # Errors
    /// A policy, workload or test bed cannot be used at all.
    pub(super) fn try_new(args: &ArenaArgs) -> Result<Self, Failure> {
        let bundle = Bundle::find();
        let inputs = BedInputs {
            share: args.share(),
            folder: args.folder.as_deref(),
            bundle: bundle.as_ref(),
        };
        let beds = match args.test_beds.as_slice() {
            [] => shipped_names().map(str::to_owned).to_vec(),
            given => given.to_vec(),
        };
        let beds = beds.iter().map(|name| Bed::named(name, &inputs));
        let beds: Vec<Bed> = beds.collect::<Result<_, _>>()?;
        distinct("--test-bed", beds.iter().map(|bed| bed.name.as_str()))?;
        let workloads = match args.workloads.as_slice() {
            [] => SHAPES.each_ref().map(ArenaWorkload::Shape).into(),
            given => given
                .iter()
                .map(|text| ArenaWorkload::named(text))
                .collect::<Result<Vec<_>, _>>()?,
        };
        distinct("--workload", workloads.iter().map(ArenaWorkload::name))?;
        let loader = PolicyLoader::try_new()?;
        let policies = entries(args, &beds, &loader)?;
        let cells = (0..beds.len()).flat_map(|bed| (0..workloads.len()).map(move |at| (bed, at)));
        let cells = cells.map(|(bed, workload)| {
            let rate_per_s = beds[bed].load * beds[bed].capacity_per_s;
            ArenaCell {
                bed,
                workload,
                rate_per_s,
                scenario: workloads[workload].on(&beds[bed], rate_per_s),
            }
        });
        Ok(Self {
            cells: cells.collect(),
            beds,
            policies,
            workloads,
            seeds: args.seed_list(),
        })
    }

    /// Number of runs.
    pub(super) fn runs(&self) -> usize {
        self.jobs().len()
    }

    /// Runs everything, in parallel over the cores: by cell, then by policy. `progress` is called after
    /// each run, from any thread.
    pub(super) fn play(&self, progress: &(dyn Fn() + Sync)) -> Vec<Vec<Played>> {
        let jobs = self.jobs();
        let played: Vec<(Result<Report, String>, Option<String>)> = jobs
            .par_iter()
            .map(|job| {
                let mut first = FirstFault::default();
                let report = run_observed(job.scenario, job.contender, job.seed, &mut first);
                progress();
                (report.map_err(|error| error.to_string()), first.0)
            })
            .collect();
        let mut played = played.into_iter();
        let cells = self.cells.iter().map(|cell| {
            let policies =
                self.policies
                    .iter()
                    .map(|entry| match (&cell.scenario, &entry.by_bed[cell.bed]) {
                        (Err(reason), _) | (_, Err(reason)) => Played::refused(reason),
                        (Ok(_), Ok(_)) => Played::of(played.by_ref().take(self.seeds.len())),
                    });
            policies.collect()
        });
        cells.collect()
    }

    fn jobs(&self) -> Vec<Job<'_>> {
        let mut jobs = Vec::new();
        for cell in &self.cells {
            for entry in &self.policies {
                if let (Ok(scenario), Ok(own)) = (&cell.scenario, &entry.by_bed[cell.bed]) {
                    jobs.extend(self.seeds.iter().map(|&seed| Job {
                        scenario,
                        contender: &own.contender,
                        seed,
                    }));
                }
            }
        }
        jobs
    }

    /// Host time of each policy's windows on each test bed, once all runs are done.
    pub(super) fn window_costs(&self) -> Vec<WindowCostData> {
        let of_entry = |entry: &Entry| {
            let own = self.beds.iter().zip(&entry.by_bed);
            let own = own.filter_map(|(bed, own)| {
                Some(WindowCostData {
                    policy: entry.named.name.clone(),
                    test_bed: bed.name.clone(),
                    times: own.as_ref().ok()?.overhead.times(),
                })
            });
            own.collect::<Vec<_>>()
        };
        self.policies.iter().flat_map(of_entry).collect()
    }
}

/// One run.
struct Job<'a> {
    scenario: &'a Scenario,
    contender: &'a Contender,
    seed: u64,
}

// === impl Played ===

impl Played {
    fn refused(reason: &str) -> Self {
        Self {
            reports: Err(reason.to_owned()),
            fault: None,
        }
    }

    fn of(runs: impl Iterator<Item = (Result<Report, String>, Option<String>)>) -> Self {
        let (reports, faults): (Vec<_>, Vec<_>) = runs.unzip();
        Self {
            reports: reports.into_iter().collect(),
            fault: faults.into_iter().flatten().next(),
        }
    }
}

/// The shipped policies or those of `--policy`, then the entrants, loaded for each test bed.
fn entries(args: &ArenaArgs, beds: &[Bed], loader: &PolicyLoader) -> Result<Vec<Entry>, Failure> {
    let shipped = match args.policies.is_empty() {
        true => shipped(beds)?,
        false => args.policies.clone(),
    };
    let shipped = shipped.into_iter().map(|named| (named, false));
    let entrants = args.entrants.iter().map(|named| (named.clone(), true));
    let entries = shipped.chain(entrants).map(|(named, is_entrant)| {
        let named = ArenaArgs::entrant(&named);
        let (mut by_bed, mut record) = (Vec::new(), None);
        for bed in beds {
            by_bed.push(match loader.load(&named, &bed.test_bed) {
                Ok((contender, loaded)) => {
                    record.get_or_insert(loaded);
                    let (contender, overhead) = timed(&contender);
                    Ok(Contestant {
                        contender,
                        overhead,
                    })
                }
                // Without the path, which differs between machines.
                Err(LoadRefusal::TestBed(error)) => {
                    Err(format!("{}: {}", error.phase, error.cause))
                }
                Err(LoadRefusal::File(error)) => return Err(Failure::from(error)),
            });
        }
        Ok(Entry {
            named,
            is_entrant,
            record,
            by_bed,
        })
    });
    let entries: Vec<Entry> = entries.collect::<Result<_, _>>()?;
    distinct(
        "policy",
        entries.iter().map(|entry| entry.named.name.as_str()),
    )?;
    Ok(entries)
}

/// The fallback and the components of `--policies`, by default of the bundle.
fn shipped(beds: &[Bed]) -> Result<Vec<Named>, Failure> {
    let folders = beds.first().map(|bed| &bed.test_bed);
    let folders = folders.map(|bed| [Some(&bed.policies), bed.bundled.as_ref()]);
    let mut names = vec![FALLBACK.to_owned()];
    let found = folders.into_iter().flatten().flatten();
    let mut found = found.map(|folder| components(folder));
    names.extend(found.find(|found| !found.is_empty()).unwrap_or_default());
    let named = names
        .iter()
        .map(|name| name.parse().map_err(Failure::input));
    named.collect()
}

/// Results are found by name.
fn distinct<'a>(kind: &str, names: impl Iterator<Item = &'a str>) -> Result<(), Failure> {
    let mut seen: Vec<&str> = Vec::new();
    for name in names {
        if seen.contains(&name) {
            return Err(Failure::input(format!(
                "{kind}: `{name}` is given twice; give one of them another name"
            )));
        }
        seen.push(name);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    /// The policies that compete on a test bed whose configuration has a folder with the policy `mine`;
    /// the bundle has `bundled`.
    fn names(folder: Option<&str>) -> Vec<String> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let paper = root.join("tests/paper/edgeserving");
        let temporary = tempfile::tempdir().expect("a folder");
        let here = temporary.path();
        for name in ["own/mine", "share/bundled"] {
            let file = here.join(name).with_extension("wasm");
            fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
            fs::write(file, "").expect("a file");
        }
        let config = fs::read_to_string(paper.join("test-bed.toml")).expect("a configuration");
        let config = format!("{config}\n[policies]\ndir = \"own\"\n");
        fs::write(here.join("pool.toml"), config).expect("a file");
        let profile = paper.join("profile.json");
        let bed = format!(
            "config = \"pool.toml\"\nprofile = \"{}\"\nload = 0.8\nseconds = 0.1\n",
            profile.display()
        );
        fs::write(here.join("tiny.toml"), bed).expect("a file");
        let bundle = Bundle {
            zoo: root.join("models/zoo"),
            policies: here.join("share"),
            repository: None,
        };
        let folder = folder.map(|folder| here.join(folder));
        let inputs = BedInputs {
            share: 1.0,
            folder: folder.as_deref(),
            bundle: Some(&bundle),
        };
        let bed = Bed::named(&here.join("tiny.toml").to_string_lossy(), &inputs);
        let shipped = shipped(&[bed.expect("a test bed")]).expect("policies");
        shipped.into_iter().map(|named| named.name).collect()
    }

    #[test]
    fn the_bundled_policies_compete_unless_a_folder_is_given() {
        assert_eq!(names(None), ["edf", "bundled"]);
        assert_eq!(names(Some("own")), ["edf", "mine"]);
    }
}
