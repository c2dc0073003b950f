//! One figure of a paper: its file and its command.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::claim::{Claim, ClaimFile};
use super::curves::Curves;

/// Where the figures are, below the root.
pub(crate) const FOLDER: &str = "tests/paper";

/// A figure, as its file describes it. `tests/paper/README.md` describes the files.
#[derive(Debug)]
pub(crate) struct Figure {
    /// `PAPER/figNN`.
    pub(crate) name: String,
    pub(crate) file: PathBuf,
    pub(crate) title: String,
    /// The set-up, and its differences from the paper.
    pub(crate) setup: String,
    /// Takes too long for the suite.
    pub(crate) slow: bool,
    /// Files without which it cannot be run, from the repository's root.
    pub(crate) needs: Vec<PathBuf>,
    /// Commands that run before it.
    pub(crate) prepare: Vec<Prepare>,
    pub(crate) source: Source,
    /// Metrics of the table.
    pub(crate) metrics: Vec<String>,
    /// The best possible, for a column of distances from it.
    pub(crate) best: Option<Best>,
    /// Columns of the table of policies over several figures.
    pub(crate) columns: Vec<Column>,
    pub(crate) claims: Vec<Claim>,
}

/// The best possible value of a metric: that of one policy, such as an oracle.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub(crate) struct Best {
    pub(crate) policy: String,
    pub(crate) metric: String,
}

/// A column of the table of policies.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Column {
    /// Its heading, `WORKLOAD: METRIC`.
    pub(crate) says: String,
    pub(crate) metric: String,
    /// The point; empty in a figure that has one only.
    #[serde(default)]
    pub(crate) point: String,
    pub(crate) better: Better,
}

/// Which values of a metric are better.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Better {
    Lower,
    Higher,
}

/// Where a figure's numbers come from.
#[derive(Debug)]
pub(crate) enum Source {
    Simulate(Box<Simulate>),
    Bench(Bench),
    Curves(Curves),
}

/// A command of `switchyard` that makes a file or a folder, and keeps it if it is current.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Prepare {
    /// Such as `prepare ramsis` or `profile import`.
    pub(crate) command: String,
    /// Its arguments; paths are relative to the repository's root.
    pub(crate) args: Vec<String>,
    /// Its `--out`, below `target`.
    pub(crate) out: PathBuf,
    /// Name of the tables' promises in the results, read with `--json`.
    pub(crate) results: Option<String>,
    /// The command runs for each combination of these values, which replace `{name}` in `args` and
    /// `out`.
    #[serde(default)]
    pub(crate) each: BTreeMap<String, Vec<String>>,
}

/// `switchyard simulate`, as its options are called. Paths are relative to the figure's file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Simulate {
    pub(crate) profile: PathBuf,
    pub(crate) config: PathBuf,
    pub(crate) workload: String,
    pub(crate) policies: Vec<String>,
    pub(crate) sweep: Option<String>,
    pub(crate) each: Option<Each>,
    #[serde(default = "seconds")]
    pub(crate) seconds: f64,
    #[serde(default = "seeds")]
    pub(crate) seeds: u64,
    pub(crate) workers: Option<u32>,
    pub(crate) service: Option<String>,
    /// `--link-us` and `--wire-us`, of the simulated runs.
    pub(crate) link_us: Option<u64>,
    pub(crate) wire_us: Option<u64>,
    /// Recorded votes of neighbours.
    pub(crate) votes: Option<PathBuf>,
    /// First requests that metrics leave out.
    pub(crate) skip_first: Option<u64>,
    /// Claims are about window times on this machine, so the suite skips them.
    #[serde(default)]
    pub(crate) timed: bool,
    /// Workers of a server that gets the same arrivals. Its claims are about this machine, so only `--live`
    /// or its name runs it.
    pub(crate) live: Option<LiveWorkers>,
}

/// The workers of a server, as `simulate --live` has them.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum LiveWorkers {
    StandIn,
    Models,
}

/// Runs for values that a sweep cannot vary: each value in turn replaces `{name}` in profile, workload
/// and policies, and the point is `name=value`, or `name=value,SWEEP=VALUE` with a sweep.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Each {
    pub(crate) name: String,
    pub(crate) values: Vec<String>,
}

/// Options that differ between the runs of [`Each`].
#[derive(Debug, PartialEq)]
pub(crate) struct Options {
    pub(crate) profile: PathBuf,
    pub(crate) workload: String,
    pub(crate) policies: Vec<String>,
}

/// A benchmark of this repository whose `--json` is of the form of `simulate`'s.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Bench {
    pub(crate) name: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FigureFile {
    title: String,
    setup: String,
    #[serde(default)]
    slow: bool,
    #[serde(default)]
    needs: Vec<PathBuf>,
    #[serde(default)]
    prepare: Vec<Prepare>,
    simulate: Option<Simulate>,
    bench: Option<Bench>,
    curves: Option<Curves>,
    #[serde(default)]
    metrics: Vec<String>,
    best: Option<Best>,
    #[serde(rename = "column", default)]
    columns: Vec<Column>,
    #[serde(rename = "claim", default)]
    claims: Vec<ClaimFile>,
}

fn seconds() -> f64 {
    60.0
}

fn seeds() -> u64 {
    10
}

// === impl Figure ===

impl Figure {
    /// Reads the file of one figure.
    ///
    /// # Errors
    /// The file cannot be read or is not valid; the error names it.
    pub(crate) fn read(name: &str, file: &Path) -> Result<Self> {
        let text =
            fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        Self::parse(name, file, &text).with_context(|| format!("{}", file.display()))
    }

    /// Reads the text of one.
    pub(super) fn parse(name: &str, file: &Path, text: &str) -> Result<Self> {
        let read: FigureFile = toml::from_str(text)?;
        let source = match (read.simulate, read.bench, read.curves) {
            (Some(simulate), None, None) => {
                simulate.check()?;
                Source::Simulate(Box::new(simulate))
            }
            (None, Some(bench), None) => Source::Bench(bench),
            (None, None, Some(curves)) => {
                curves.check()?;
                Source::Curves(curves)
            }
            _ => bail!("must have one of [simulate], [bench] and [curves]"),
        };
        read.prepare.iter().try_for_each(Prepare::check)?;
        let claims = read.claims.into_iter().map(Claim::try_new);
        Ok(Self {
            name: name.to_owned(),
            file: file.to_owned(),
            title: read.title,
            setup: read.setup.trim().to_owned(),
            slow: read.slow,
            needs: read.needs,
            prepare: read.prepare,
            source,
            metrics: read.metrics,
            best: read.best,
            columns: read.columns,
            claims: claims.collect::<Result<_>>()?,
        })
    }
}

impl Figure {
    /// Whether a server gets its arrivals.
    pub(crate) fn is_live(&self) -> bool {
        matches!(&self.source, Source::Simulate(simulate) if simulate.live.is_some())
    }

    /// Whether its claims are about this machine's window times.
    pub(crate) fn is_timed(&self) -> bool {
        matches!(&self.source, Source::Simulate(simulate) if simulate.timed)
    }

    /// The first needed file that is missing.
    pub(crate) fn lacks(&self, root: &Path) -> Option<&Path> {
        let needs = self.needs.iter().map(PathBuf::as_path);
        needs.into_iter().find(|file| !root.join(file).exists())
    }
}

// === impl LiveWorkers ===

impl LiveWorkers {
    /// As an option's value.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::StandIn => "stand-in",
            Self::Models => "models",
        }
    }
}

// === impl Simulate ===

impl Simulate {
    fn check(&self) -> Result<()> {
        if self.live.is_some() && self.sweep.is_some() {
            bail!("simulate.live: takes `each` instead of `sweep`");
        }
        let Some(each) = &self.each else {
            return Ok(());
        };
        if each.values.is_empty() {
            bail!("simulate.each: must have values");
        }
        let place = format!("{{{}}}", each.name);
        let profile = self.profile.to_string_lossy().into_owned();
        let mut texts = self.policies.iter().chain([&self.workload, &profile]);
        if !texts.any(|text| text.contains(&place)) {
            bail!("simulate.each: none of profile, workload and policies has {place}");
        }
        Ok(())
    }

    /// One set of options per value of `each`, with the name of its point.
    pub(crate) fn points(&self) -> Vec<(String, Options)> {
        let options = |place: &str, value: &str| Options {
            profile: replaced(&self.profile, place, value),
            workload: self.workload.replace(place, value),
            policies: self
                .policies
                .iter()
                .map(|p| p.replace(place, value))
                .collect(),
        };
        match &self.each {
            // The pattern occurs in no text, so nothing is replaced.
            None => vec![(String::new(), options("\0", ""))],
            Some(Each { name, values }) => values
                .iter()
                .map(|value| {
                    (
                        format!("{name}={value}"),
                        options(&format!("{{{name}}}"), value),
                    )
                })
                .collect(),
        }
    }
}

fn replaced(path: &Path, place: &str, value: &str) -> PathBuf {
    PathBuf::from(path.to_string_lossy().replace(place, value))
}

// === impl Prepare ===

impl Prepare {
    fn check(&self) -> Result<()> {
        if self.results.is_some() && !self.each.is_empty() {
            bail!("prepare: must have one of results and each");
        }
        for name in self.each.keys() {
            let place = format!("{{{name}}}");
            if !self.out.to_string_lossy().contains(&place) {
                bail!("prepare.each: `out` must have {place}, so that each run has its own");
            }
        }
        Ok(())
    }

    /// Arguments and `out` of every run of the command.
    pub(crate) fn runs(&self) -> Vec<(Vec<String>, PathBuf)> {
        let first = (self.args.clone(), self.out.clone());
        self.each.iter().fold(vec![first], |runs, (name, values)| {
            let place = format!("{{{name}}}");
            let with = |(args, out): &(Vec<String>, PathBuf), value: &str| {
                let args = args.iter().map(|arg| arg.replace(&place, value));
                (args.collect(), replaced(out, &place, value))
            };
            let runs = runs.iter();
            runs.flat_map(|run| values.iter().map(|value| with(run, value)))
                .collect()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIMULATE: &str = r#"
        title = "t"
        setup = "s"
        [simulate]
        profile = "p.json"
        config = "c.toml"
        workload = "poisson:1"
        policies = ["a"]
    "#;

    fn parse(text: &str) -> Result<Figure> {
        Figure::parse("x/fig1", Path::new("fig1.toml"), text)
    }

    #[test]
    fn a_figure_has_one_source() {
        assert!(parse("title = \"t\"\nsetup = \"s\"").is_err());
        assert_eq!(simulated(SIMULATE).seeds, 10);
    }

    #[test]
    fn a_live_figure_is_known_by_its_workers() {
        let live = format!("{SIMULATE}\nlive = \"stand-in\"");
        assert!(parse(&live).unwrap().is_live() && !parse(SIMULATE).unwrap().is_live());
        let swept = parse(&format!("{live}\nsweep = \"load=1,2\"")).unwrap_err();
        assert!(format!("{swept:#}").contains("`each`"), "{swept:#}");
    }

    #[test]
    fn a_figure_may_name_the_best_possible() {
        let best = "best = { policy = \"oracle-goodput\", metric = \"goodput_ratio\" }";
        let best = parse(&format!("{best}\n{SIMULATE}")).unwrap().best.unwrap();
        assert_eq!(
            (best.policy.as_str(), best.metric.as_str()),
            ("oracle-goodput", "goodput_ratio")
        );
        assert_eq!(parse(SIMULATE).unwrap().best, None);
    }

    fn simulated(text: &str) -> Simulate {
        match parse(text).unwrap().source {
            Source::Simulate(simulate) => *simulate,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn each_value_is_a_run_of_its_own() {
        let policy = "policies = [\"a\"]";
        assert_eq!(simulated(SIMULATE).points()[0].1.workload, "poisson:1");
        let text = SIMULATE.replace("poisson:1", "poisson:{load}");
        let text = text.replace(policy, "policies = ['x=a{load_per_s = {load}}']");
        let each = "each = { name = \"load\", values = [\"5\", \"7.5\"] }";
        let points = simulated(&format!("{text}\n{each}")).points();
        let (name, options) = &points[1];
        assert_eq!((points.len(), name.as_str()), (2, "load=7.5"));
        assert_eq!(options.workload, "poisson:7.5");
        assert_eq!(options.policies, ["x=a{load_per_s = 7.5}"]);
        let refused = |text: String| format!("{:#}", parse(&text).unwrap_err());
        assert!(refused(format!("{SIMULATE}\n{each}")).contains("{load}"));
        let profile = SIMULATE.replace("p.json", "p-{load}.json");
        let points = simulated(&format!("{profile}\n{each}")).points();
        assert_eq!(points[1].1.profile, Path::new("p-7.5.json"));
    }

    #[test]
    fn a_preparation_runs_for_each_combination() {
        let prepare = |text: &str| {
            let head =
                "[[prepare]]\ncommand = \"prepare ramsis\"\nargs = [\"--workers\", \"{workers}\"]";
            parse(&SIMULATE.replace("[simulate]", &format!("{head}\n{text}\n[simulate]")))
        };
        let each = "each = { workers = [\"60\", \"70\"], slo = [\"150\", \"300\"] }";
        let figure = prepare(&format!("out = \"t-{{slo}}-{{workers}}\"\n{each}")).unwrap();
        let runs = figure.prepare[0].runs();
        let outs: Vec<&Path> = runs.iter().map(|(_, out)| out.as_path()).collect();
        let expected = ["t-150-60", "t-150-70", "t-300-60", "t-300-70"].map(Path::new);
        assert_eq!(outs, expected);
        assert_eq!(runs[3].0, ["--workers", "70"]);
        let error = prepare(&format!("out = \"t-{{slo}}\"\n{each}")).unwrap_err();
        assert!(format!("{error:#}").contains("{workers}"), "{error:#}");
    }

    #[test]
    fn needed_files_are_relative_to_the_root() {
        let needs = "needs = [\"Cargo.toml\", \"../shared/none.json\"]";
        let figure = parse(&format!("slow = true\n{needs}\n{SIMULATE}")).unwrap();
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        assert_eq!(figure.lacks(root), Some(Path::new("../shared/none.json")));
        assert!(figure.slow && !parse(SIMULATE).unwrap().slow);
        assert_eq!(parse(SIMULATE).unwrap().lacks(root), None);
    }
}
