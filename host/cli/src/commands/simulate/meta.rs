//! The command, the inputs and the policies of a simulation, for its results.

use switchyard_policy::history::ContentHash;
use switchyard_policy::recording::PolicyRecord;
use switchyard_sim::report::{Meta, PolicyMeta, SweepAxis};
use switchyard_sim::{Contender, SweepPoint};

use super::arguments::SimulateArgs;
use super::axis::Parameter;
use super::contenders::Contenders;
use super::test_bed::TestBed;

/// Describes a simulation.
pub(super) fn meta(
    args: &SimulateArgs,
    test_bed: &TestBed,
    contenders: &Contenders,
    points: &[SweepPoint],
    seeds: &[u64],
    left_out: Vec<String>,
) -> Meta {
    let names: Vec<&str> = args.policies.iter().map(|p| p.name.as_str()).collect();
    let words = std::env::args().skip(1).map(|word| quoted(&word));
    let now = humantime::format_rfc3339_seconds(std::time::SystemTime::now()).to_string();
    let slos = test_bed
        .catalog
        .apps
        .iter()
        .map(|app| app.slo.as_secs_f64() * 1e3);
    let slos: Vec<f64> = slos.collect();
    let is_fixed = !args.workload.contains("deadline") && !args.workload.ends_with(".json");
    Meta {
        title: format!("{} on {}", names.join(", "), args.workload),
        command: format!("switchyard {}", words.collect::<Vec<_>>().join(" ")),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        date: now.chars().take_while(|c| *c != 'T').collect(),
        workload: args.workload.clone(),
        profile: args.profile.display().to_string(),
        profile_hash: std::fs::read(&args.profile)
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
        left_out,
        seeds: seeds.to_vec(),
        axis: args.sweep.as_ref().map(|axis| SweepAxis {
            name: axis.name.label().to_owned(),
            label: axis.name.description().to_owned(),
        }),
        deadline_ms: match (slos.as_slice(), &args.sweep) {
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

/// A word as a shell reads it back.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+%@".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}
