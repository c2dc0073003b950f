//! A replay for people and for programs.

use std::path::Path;

use serde_json::{Value, json};
use switchyard_core::catalog::Catalog;
use switchyard_core::time::Time;

use super::engine::Outcome;
use crate::commands::Failure;
use switchyard_server::judge::{Difference, Fate, Names, Outlook, RequestDifference, Worth};
use switchyard_server::reasons::Why;

/// What was recorded, and what the policy would do.
const SIDES: [&str; 2] = ["recorded", "replayed"];

/// To stdout.
pub(super) fn print(trace: &Path, outcome: &Outcome, json: bool) -> Result<(), Failure> {
    if json {
        let text = serde_json::to_string_pretty(&as_json(trace, outcome));
        println!("{}", text.map_err(Failure::check)?);
        return Ok(());
    }
    println!("{}", summary(trace, outcome));
    for (run, difference) in &outcome.differences {
        println!("\n{}", paragraph(&outcome.catalog, *run, difference));
    }
    let shown = outcome.differences.len() as u64 + outcome.tally.asked.wake_only;
    if shown < outcome.tally.asked.different {
        let left = outcome.tally.asked.different - shown;
        println!("\n{left} more windows differ: --limit shows more");
    }
    Ok(())
}

// === for people ===

fn summary(trace: &Path, outcome: &Outcome) -> String {
    let tally = &outcome.tally;
    let itself = match outcome.is_recorded {
        true => ", the recorded policy itself",
        false => "",
    };
    let mut lines = vec![format!(
        "{} on {}: pool {}, recorded {}{itself}",
        outcome.policy,
        trace.display(),
        joined(&outcome.pools),
        joined(&outcome.recorded),
    )];
    let mut row = |name: &str, count: u64, what: &str| {
        lines.push(
            format!("  {name:<10} {count:>8}  {what}")
                .trim_end()
                .to_owned(),
        );
    };
    row("runs", tally.runs, "");
    row("windows", tally.asked.windows, "");
    row("identical", tally.asked.identical, "");
    row("different", tally.asked.different, "");
    if tally.asked.wake_only > 0 {
        row(
            "wake only",
            tally.asked.wake_only,
            "of these: the same but for when to be asked again; not shown",
        );
    }
    if tally.asked.failed > 0 {
        row(
            "failed",
            tally.asked.failed,
            "of these: no plan that could be applied",
        );
    }
    if tally.by_others > 0 {
        row(
            "by others",
            tally.by_others,
            "of these: no policy was active when they were recorded, or it failed",
        );
    }
    if tally.not_asked > 0 {
        row(
            "not asked",
            tally.not_asked,
            "opened for the fallback alone",
        );
    }
    if tally.missing > 0 {
        row("missing", tally.missing, "not recorded for lack of time");
    }
    if tally.asked.different > 0 {
        let line = worths(tally.asked.done, tally.asked.proposed);
        lines.push(format!("  utility where they differ: {line}"));
    }
    if !outcome.unseen.is_empty() {
        let unseen = outcome.unseen.iter().copied().collect::<Vec<_>>();
        lines.push(format!(
            "  the policy wants to see what was not recorded: {}",
            unseen.join(", ")
        ));
    }
    lines.join("\n")
}

fn joined(names: &std::collections::BTreeSet<String>) -> String {
    match names.is_empty() {
        true => "nobody".to_owned(),
        false => names.iter().cloned().collect::<Vec<_>>().join(", "),
    }
}

fn worths(recorded: Worth, replayed: Worth) -> String {
    let worth = |worth: Worth| format!("{:.3} of {} requests", worth.utility, worth.requests);
    format!("recorded {}, replayed {}", worth(recorded), worth(replayed))
}

fn paragraph(catalog: &Catalog, run: u64, difference: &Difference) -> String {
    let Difference {
        window,
        now,
        pending,
        by,
        ..
    } = difference;
    let mut lines = vec![format!(
        "run {run}, window {window} at {now}, {pending} pending, decided by {by}"
    )];
    if let Some(failure) = &difference.failure {
        lines.push(format!("  the policy failed: {failure}"));
    }
    for request in &difference.requests {
        lines.extend(request_lines(catalog, request, *now));
    }
    if !difference.besides.is_empty() {
        lines.push(format!(
            "  also different: {}",
            difference.besides.join(", ")
        ));
    }
    let line = worths(difference.done, difference.proposed);
    lines.push(format!("  utility: {line}"));
    lines.join("\n")
}

fn request_lines(catalog: &Catalog, request: &RequestDifference, now: Time) -> [String; 3] {
    let app = catalog.app(request.app).map_or("?", |app| &app.name);
    let line = |which: &str, outlook: &Outlook, why: Option<&str>| {
        let mut line = format!("    {which} {}", fate(catalog, outlook.fate));
        if let (Fate::Runs(_), Some(end)) = (outlook.fate, outlook.end) {
            line += &format!(", done in {}", end.since(now));
        }
        if let Some(utility) = outlook.utility {
            line += &format!(", utility {utility:.3}");
        }
        if let Some(why) = why {
            line += &format!("; {}", Why::of(why).words());
        }
        line
    };
    [
        format!("  request {} of {app}", request.id.0),
        line("recorded:", &request.done, request.done_why.as_deref()),
        line(
            "replayed:",
            &request.proposed,
            request.proposed_why.as_deref(),
        ),
    ]
}

fn fate(catalog: &Catalog, fate: Fate) -> String {
    match fate {
        Fate::Waits => "waits".to_owned(),
        Fate::Rejected => "rejected".to_owned(),
        Fate::Answered => "answered from its evidence".to_owned(),
        Fate::Runs(dispatch) => {
            let Names {
                variant,
                exit,
                worker,
            } = Names::of(catalog, &dispatch);
            let until = match exit {
                Some(exit) => format!("{variant}/{exit}"),
                None => format!("{variant} to stage {}", dispatch.to_stage),
            };
            format!("{until} on {worker}, batch of {}", dispatch.size)
        }
    }
}

// === for programs ===

fn as_json(trace: &Path, outcome: &Outcome) -> Value {
    let tally = &outcome.tally;
    let differences = outcome.differences.iter();
    json!({
        "trace": trace.display().to_string(),
        "policy": outcome.policy,
        "recorded": outcome.recorded,
        "pools": outcome.pools,
        "is_recorded": outcome.is_recorded,
        "runs": tally.runs,
        "windows": tally.asked.windows,
        "identical": tally.asked.identical,
        "different": tally.asked.different,
        "wake_only": tally.asked.wake_only,
        "failed": tally.asked.failed,
        "by_others": tally.by_others,
        "not_asked": tally.not_asked,
        "missing": tally.missing,
        "cut_off": outcome.cut_off.map(|cut_off| json!({
            "offset": cut_off.offset,
            "bytes": cut_off.bytes,
        })),
        "unseen": outcome.unseen,
        "utility": tally.asked.worth_json(SIDES),
        "differences": differences
            .map(|(run, difference)| {
                let mut json = difference.to_json(&outcome.catalog, SIDES);
                json["run"] = json!(run);
                json
            })
            .collect::<Vec<_>>(),
    })
}
