//! The command, the inputs and the policies of a simulation, for its results.

use switchyard_core::catalog::Catalog;
use switchyard_policy::history::ContentHash;
use switchyard_policy::recording::PolicyRecord;
use switchyard_sim::report::{Meta, PolicyMeta, SweepAxis};
use switchyard_sim::{Contender, SweepPoint};

use crate::axis::Parameter;
use crate::contenders::Contenders;
use crate::request::SimulationRequest;

/// Describes a simulation on `catalog`; `command` makes the same results.
pub(crate) fn meta(
    request: &SimulationRequest,
    catalog: &Catalog,
    contenders: &Contenders,
    points: &[SweepPoint],
    command: String,
) -> Meta {
    let names = contenders.list.iter().map(|policy| policy.name.as_str());
    let names = names.collect::<Vec<_>>().join(", ");
    let now = humantime::format_rfc3339_seconds(std::time::SystemTime::now()).to_string();
    let slos = catalog.apps.iter().map(|app| app.slo.as_secs_f64() * 1e3);
    let slos: Vec<f64> = slos.collect();
    let workload = &request.workload_name;
    let is_fixed = !workload.contains("deadline") && !workload.ends_with(".json");
    Meta {
        title: format!("{names} on {workload}"),
        command,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        date: now.chars().take_while(|c| *c != 'T').collect(),
        workload: workload.clone(),
        profile: request.profile.display().to_string(),
        profile_hash: std::fs::read(&request.profile)
            .map(|bytes| ContentHash::of(&[&bytes]).to_hex())
            .unwrap_or_default(),
        policies: contenders
            .list
            .iter()
            .zip(&contenders.records)
            .map(policy_meta)
            .collect(),
        seconds: points
            .first()
            .map_or(0.0, |point| point.scenario.duration.as_secs_f64()),
        left_out: Vec::new(),
        seeds: request.seeds.clone(),
        axis: request.sweep.as_ref().map(|axis| SweepAxis {
            name: axis.name.label().to_owned(),
            label: axis.name.description().to_owned(),
        }),
        deadline_ms: match (slos.as_slice(), &request.sweep) {
            (_, Some(axis)) if axis.name == Parameter::Deadline => None,
            (&[slo], _) if is_fixed => Some(slo),
            _ => None,
        },
    }
}

/// The component with a policy's name.
fn policy_meta((contender, record): (&Contender, &PolicyRecord)) -> PolicyMeta {
    PolicyMeta {
        policy: contender.name.clone(),
        label: record.label.clone(),
        hash: record.code.clone(),
        settings: record.settings.clone(),
    }
}
