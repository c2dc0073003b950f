//! `switchyard simulate`: run policies on a workload in virtual time.
//!
//! [`arguments`] has the options, `switchyard_simulate` prepares and runs them, [`output`] writes tables
//! and JSON, [`record`] windows for `replay`.

mod arguments;
mod output;
mod record;

use indicatif::{ProgressBar, ProgressStyle};
use switchyard_core::time::{Micros, Time};
use switchyard_sim::report::ReportData;
use switchyard_sim::run_observed;
use switchyard_sim::timeline::Timeline;
use switchyard_simulate::Prepared;

pub(super) use self::arguments::SimulateArgs;
use super::failure::Failure;
use super::print;
use crate::live;

/// Length of the timelines in a report, in multiples of the longest SLO.
const TIMELINE_SLOS: u64 = 3;

/// Simulates and prints.
pub(super) fn run(args: &SimulateArgs) -> Result<(), Failure> {
    args.check()?;
    let prepared = Prepared::try_new(args.request()?)?;
    for cut in &prepared.left_out {
        print::note(format_args!(
            "warning: --seconds: {cut}; without --seconds the whole trace is simulated"
        ));
    }
    let bar = ProgressBar::new(prepared.runs() as u64).with_style(style());
    let mut data = prepared.run(command(), &|| bar.inc(1))?;
    bar.finish_and_clear();
    if let Some(baseline) = &args.against {
        data = data.compared_with(baseline);
    }
    if args.report.is_some() {
        data = with_timelines(data, &prepared, args.seed)?;
    }
    if let Some(options) = args.live() {
        let runs = prepared.contenders.list.len() * prepared.request.seeds.len();
        let bar = ProgressBar::new(runs as u64).with_style(style());
        let served = live::outcomes(&prepared, &options, &|| bar.inc(1))?;
        bar.finish_and_clear();
        let points = data.runs.iter_mut().map(|run| &mut run.point);
        let times = data.scheduling.iter_mut().map(|times| &mut times.point);
        points
            .chain(times)
            .for_each(|point| live::SIMULATED.clone_into(point));
        data.runs.extend(served);
    }
    if let (Some(file), [point]) = (&args.record, prepared.points.as_slice()) {
        record::record(file, &point.scenario, &prepared)?;
    }
    output::write(&data, args)
}

/// Adds the timeline of each policy, in the middle of the middle point.
fn with_timelines(
    mut data: ReportData,
    prepared: &Prepared,
    seed: u64,
) -> Result<ReportData, Failure> {
    let point = &prepared.points[prepared.points.len() / 2];
    let slo = point.scenario.catalog.apps.iter().map(|app| app.slo).max();
    let length = slo.unwrap_or_default().0 * TIMELINE_SLOS;
    let from = Time(point.scenario.duration.0 / 2);
    for contender in &prepared.contenders.list {
        let mut seen = Timeline::new(from, from + Micros(length));
        run_observed(&point.scenario, contender, seed, &mut seen).map_err(Failure::input)?;
        data = data.with_timeline(&contender.name, &point.name, seed, seen);
    }
    Ok(data)
}

/// The command line.
fn command() -> String {
    let words = std::env::args().skip(1).map(|word| quoted(&word));
    format!("switchyard {}", words.collect::<Vec<_>>().join(" "))
}

/// A word as a shell reads it back.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+%@".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

fn style() -> ProgressStyle {
    ProgressStyle::with_template("simulating {wide_bar} {pos}/{len} runs {eta}")
        .unwrap_or_else(|_| ProgressStyle::default_bar())
}
