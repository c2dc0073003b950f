//! `switchyard simulate`: run policies on a workload in virtual time.
//!
//! In data order:
//! - [`arguments`]: the options; [`named`]: policies, [`axis`]: sweeps and [`service`]: laws of
//!   service times, as typed
//! - [`test_bed`]: the pool that is simulated; [`workers`], [`apps`]: more or fewer of them
//! - [`contenders`]: the policies, loaded
//! - [`meta`]: the inputs, for results; [`output`]: tables and JSON; [`plot`]: the figure;
//!   [`record`]: windows for `replay`

mod apps;
mod arguments;
mod axis;
mod contenders;
mod meta;
pub(super) mod named;
mod output;
mod plot;
mod record;
mod service;
mod test_bed;
mod workers;

use indicatif::{ProgressBar, ProgressStyle};
use switchyard_core::time::{Micros, Time};
use switchyard_sim::report::ReportData;
use switchyard_sim::timeline::Timeline;
use switchyard_sim::{Contender, Scenario, SweepPoint, run_observed, sweep};

pub(super) use self::arguments::SimulateArgs;
use self::contenders::Contenders;
use self::test_bed::TestBed;
use super::failure::Failure;
use super::print;

/// Length of the timelines in a report, in multiples of the longest SLO.
const TIMELINE_SLOS: u64 = 3;

/// Simulates and prints.
pub(super) fn run(args: &SimulateArgs) -> Result<(), Failure> {
    args.check()?;
    let test_bed = TestBed::read(args)?;
    let contenders = Contenders::load(&args.policies, &test_bed)?;
    let points = points(args, &test_bed)?;
    let seeds: Vec<u64> = (0..args.seeds).map(|i| args.seed.wrapping_add(i)).collect();
    let left_out = left_out(args, &points)?;
    for cut in &left_out {
        print::note(format_args!(
            "warning: --seconds: {cut}; without --seconds the whole trace is simulated"
        ));
    }
    let runs = points.len() * contenders.list.len() * seeds.len();
    let bar = ProgressBar::new(runs as u64).with_style(style());
    let (mut outcomes, mut overheads) = (Vec::new(), Vec::new());
    for point in &points {
        // Timed per point: the time of a window depends on the load.
        let timed = contenders.list.iter().map(contenders::timed);
        let (timed, of_point): (Vec<_>, Vec<_>) = timed.unzip();
        let at = std::slice::from_ref(point);
        outcomes.extend(sweep(at, &timed, &seeds, &|| bar.inc(1)).map_err(Failure::input)?);
        overheads.push(of_point);
    }
    bar.finish_and_clear();
    let meta = meta::meta(args, &test_bed, &contenders, &points, &seeds, left_out);
    // The points of a sweep of apps or workers share their first ones.
    let catalogs = points.iter().map(|point| &point.scenario.catalog);
    let catalog = catalogs.max_by_key(|catalog| (catalog.apps.len(), catalog.workers.len()));
    let catalog = catalog.unwrap_or(&test_bed.catalog);
    let mut data = ReportData::new(meta, catalog, outcomes);
    for (point, overheads) in points.iter().zip(&overheads) {
        for (contender, overhead) in contenders.list.iter().zip(overheads) {
            data = data.with_scheduling(&point.name, &contender.name, overhead.times());
        }
    }
    if let Some(baseline) = &args.against {
        data = data.compared_with(baseline);
    }
    if args.report.is_some() {
        data = with_timelines(data, &points, &contenders.list, args.seed)?;
    }
    if let (Some(file), [point]) = (&args.record, points.as_slice()) {
        record::record(file, &point.scenario, &contenders, &test_bed, args.seed)?;
    }
    output::write(&data, args)
}

/// Adds the timeline of each policy, in the middle of the middle point.
fn with_timelines(
    mut data: ReportData,
    points: &[SweepPoint],
    contenders: &[Contender],
    seed: u64,
) -> Result<ReportData, Failure> {
    let point = &points[points.len() / 2];
    let slo = point.scenario.catalog.apps.iter().map(|app| app.slo).max();
    let length = slo.unwrap_or_default().0 * TIMELINE_SLOS;
    let from = Time(point.scenario.duration.0 / 2);
    for contender in contenders {
        let mut seen = Timeline::new(from, from + Micros(length));
        run_observed(&point.scenario, contender, seed, &mut seen).map_err(Failure::input)?;
        data = data.with_timeline(&contender.name, &point.name, seed, seen);
    }
    Ok(data)
}

/// One scenario per value of the sweep, or one.
fn points(args: &SimulateArgs, test_bed: &TestBed) -> Result<Vec<SweepPoint>, Failure> {
    let base = Scenario {
        class_mixes: test_bed.class_mixes.clone(),
        service: test_bed.service(&args.service)?,
        preload: !args.cold,
        scheduler: test_bed.scheduler.clone(),
        ..Scenario::new(test_bed.catalog.clone(), args.arrivals()?)
    };
    let mut points = match &args.sweep {
        None => {
            base.validate().map_err(Failure::input)?;
            vec![SweepPoint {
                name: String::new(),
                scenario: base,
            }]
        }
        Some(axis) => axis.points(&base)?,
    };
    for point in &mut points {
        match args.seconds {
            Some(seconds) => point.scenario.duration = Micros((seconds * 1e6) as u64),
            // Per point: recorded arrivals are stretched at a lower load.
            None => point.scenario.until_trace_ends().map_err(Failure::input)?,
        }
    }
    Ok(points)
}

/// The arrivals of traces that --seconds cuts off, a sentence per point.
fn left_out(args: &SimulateArgs, points: &[SweepPoint]) -> Result<Vec<String>, Failure> {
    let mut cuts = Vec::new();
    if args.seconds.is_none() {
        return Ok(cuts);
    }
    for SweepPoint { name, scenario } in points {
        let apps = scenario.catalog.apps.len();
        let cut = scenario.workload.cut_at(scenario.duration, apps);
        if let Some(cut) = cut.map_err(Failure::input)? {
            cuts.push(match name.as_str() {
                "" => cut.to_string(),
                name => format!("{name}: {cut}"),
            });
        }
    }
    Ok(cuts)
}

fn style() -> ProgressStyle {
    ProgressStyle::with_template("simulating {wide_bar} {pos}/{len} runs {eta}")
        .unwrap_or_else(|_| ProgressStyle::default_bar())
}
