//! The curve in virtual time. A first sweep finds the load with the most answers in time; the second
//! multiplies it.

use std::process::Stdio;

use switchyard_sim::report::ReportData;

use super::files::{Files, program};
use super::options::OverloadOptions;
use super::report::{Curve, CurvePoint};
use crate::commands::Failure;

/// The loads among which the peak is searched, in requests per second: each 25 % above the one
/// before.
const SEARCHED: (f64, f64, f64) = (100.0, 60_000.0, 1.25);

/// Simulates one policy.
pub(super) fn curve(
    files: &Files,
    policy: &str,
    options: &OverloadOptions,
) -> Result<Curve, Failure> {
    let (first, last, step) = SEARCHED;
    let loads = std::iter::successors(Some(first), |load| Some(load * step));
    let loads: Vec<f64> = loads.take_while(|load| *load < last).collect();
    let searched = sweep(files, policy, &loads, options)?;
    let most = searched.iter().map(|point| point.goodput_per_s);
    let most = most.fold(0.0, f64::max);
    // The lowest load that comes within noise of it.
    let peak = searched
        .iter()
        .find(|point| point.goodput_per_s >= 0.98 * most);
    let peak = peak.map_or(first, |point| point.at);
    let loads: Vec<f64> = options.loads.iter().map(|load| load * peak).collect();
    let mut points = sweep(files, policy, &loads, options)?;
    for (point, load) in points.iter_mut().zip(&options.loads) {
        point.load = Some(*load);
    }
    Ok(Curve::simulated(policy, points))
}

fn sweep(
    files: &Files,
    policy: &str,
    loads: &[f64],
    options: &OverloadOptions,
) -> Result<Vec<CurvePoint>, Failure> {
    let listed: Vec<String> = loads.iter().map(|load| format!("{load:.2}")).collect();
    let mut simulate = program()?;
    simulate.args(["simulate", "--late", &options.late, "--json", "-"]);
    simulate.args(["--seconds", &options.seconds.to_string()]);
    simulate.args(["--policy", &files.named(policy)]);
    simulate.arg("--config").arg(files.config());
    simulate.arg("--profile").arg(&files.profile);
    simulate.arg("--workload").arg(files.workload());
    simulate
        .arg("--sweep")
        .arg(format!("load={}", listed.join(",")));
    let output = simulate
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .output()
        .map_err(Failure::check)?;
    if !output.status.success() {
        let reason = String::from_utf8_lossy(&output.stderr);
        return Err(Failure::check(format!("{simulate:?}: {reason}")));
    }
    let data: ReportData = serde_json::from_slice(&output.stdout).map_err(Failure::check)?;
    let points = loads.iter().zip(&data.runs).map(|(&at, run)| {
        let in_time: u64 = run.reports.iter().map(|report| report.total.in_time).sum();
        let runs = run.reports.len().max(1) as f64;
        let faults = run.reports.iter().flat_map(|report| report.faults.values());
        CurvePoint {
            at,
            goodput_per_s: in_time as f64 / runs / options.seconds,
            faults: faults.sum(),
            ..CurvePoint::default()
        }
    });
    Ok(points.collect())
}
