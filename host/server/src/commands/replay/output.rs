//! A replay for people and for programs.

use std::path::Path;

use serde_json::{Value, json};
use switchyard_core::catalog::Catalog;
use switchyard_core::plan::Dispatch;
use switchyard_core::time::Time;

use super::compare::{Difference, RequestDifference};
use super::engine::Outcome;
use super::outlook::{Fate, Outlook, Worth};
use crate::commands::Failure;

/// To stdout.
pub(super) fn print(trace: &Path, outcome: &Outcome, json: bool) -> Result<(), Failure> {
    if json {
        let text = serde_json::to_string_pretty(&as_json(trace, outcome));
        println!("{}", text.map_err(Failure::check)?);
        return Ok(());
    }
    println!("{}", summary(trace, outcome));
    for difference in &outcome.differences {
        println!("\n{}", paragraph(&outcome.catalog, difference));
    }
    let shown = outcome.differences.len() as u64 + outcome.tally.wake_only;
    if shown < outcome.tally.different {
        let left = outcome.tally.different - shown;
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
    row("windows", tally.windows, "");
    row("identical", tally.identical, "");
    row("different", tally.different, "");
    if tally.wake_only > 0 {
        row(
            "wake only",
            tally.wake_only,
            "of these: the same but for when to be asked again; not shown",
        );
    }
    if tally.failed > 0 {
        row(
            "failed",
            tally.failed,
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
    if tally.different > 0 {
        let line = worths(tally.recorded, tally.replayed);
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

fn paragraph(catalog: &Catalog, difference: &Difference) -> String {
    let Difference {
        run,
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
    let line = worths(difference.recorded, difference.replayed);
    lines.push(format!("  utility: {line}"));
    lines.join("\n")
}

fn request_lines(catalog: &Catalog, request: &RequestDifference, now: Time) -> [String; 3] {
    let app = catalog.app(request.app).map_or("?", |app| &app.name);
    let line = |which: &str, outlook: &Outlook| {
        let mut line = format!("    {which} {}", fate(catalog, outlook.fate));
        if let (Fate::Runs(_), Some(end)) = (outlook.fate, outlook.end) {
            line += &format!(", done in {}", end.since(now));
        }
        if let Some(utility) = outlook.utility {
            line += &format!(", utility {utility:.3}");
        }
        line
    };
    [
        format!("  request {} of {app}", request.id.0),
        line("recorded:", &request.recorded),
        line("replayed:", &request.replayed),
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
            } = names(catalog, &dispatch);
            let until = match exit {
                Some(exit) => format!("{variant}/{exit}"),
                None => format!("{variant} to stage {}", dispatch.to_stage),
            };
            format!("{until} on {worker}, batch of {}", dispatch.size)
        }
    }
}

struct Names<'a> {
    variant: &'a str,
    exit: Option<&'a str>,
    worker: &'a str,
}

fn names<'a>(catalog: &'a Catalog, dispatch: &Dispatch) -> Names<'a> {
    let variant = catalog.variant(dispatch.variant);
    let exit = dispatch.exit.and_then(|exit| variant?.exit(exit));
    Names {
        variant: variant.map_or("?", |variant| &variant.name),
        exit: exit.map(|exit| exit.name.as_str()),
        worker: catalog
            .worker(dispatch.worker)
            .map_or("?", |worker| &worker.name),
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
        "windows": tally.windows,
        "identical": tally.identical,
        "different": tally.different,
        "wake_only": tally.wake_only,
        "failed": tally.failed,
        "by_others": tally.by_others,
        "not_asked": tally.not_asked,
        "missing": tally.missing,
        "cut_off": outcome.cut_off.map(|cut_off| json!({
            "offset": cut_off.offset,
            "bytes": cut_off.bytes,
        })),
        "unseen": outcome.unseen,
        "utility": worths_json(tally.recorded, tally.replayed),
        "differences": differences
            .map(|difference| difference_json(&outcome.catalog, difference))
            .collect::<Vec<_>>(),
    })
}

fn worths_json(recorded: Worth, replayed: Worth) -> Value {
    let worth = |worth: Worth| json!({"sum": worth.utility, "requests": worth.requests});
    json!({"recorded": worth(recorded), "replayed": worth(replayed)})
}

fn difference_json(catalog: &Catalog, difference: &Difference) -> Value {
    let requests = difference.requests.iter().map(|request| {
        json!({
            "id": request.id.0,
            "app": catalog.app(request.app).map(|app| &app.name),
            "recorded": outlook_json(catalog, &request.recorded),
            "replayed": outlook_json(catalog, &request.replayed),
        })
    });
    json!({
        "run": difference.run,
        "window": difference.window,
        "now_us": difference.now.0,
        "pending": difference.pending,
        "by": difference.by,
        "failure": difference.failure,
        "requests": requests.collect::<Vec<_>>(),
        "besides": difference.besides,
        "utility": worths_json(difference.recorded, difference.replayed),
    })
}

fn outlook_json(catalog: &Catalog, outlook: &Outlook) -> Value {
    let mut value = json!({
        "fate": match outlook.fate {
            Fate::Waits => "waits",
            Fate::Runs(_) => "runs",
            Fate::Rejected => "rejected",
            Fate::Answered => "answered",
        },
        "end_us": outlook.end.map(|end| end.0),
        "utility": outlook.utility,
    });
    if let (Fate::Runs(dispatch), Value::Object(fields)) = (outlook.fate, &mut value) {
        let Names {
            variant,
            exit,
            worker,
        } = names(catalog, &dispatch);
        for (name, field) in [
            ("variant", json!(variant)),
            ("exit", json!(exit)),
            ("worker", json!(worker)),
            ("from_stage", json!(dispatch.from_stage)),
            ("to_stage", json!(dispatch.to_stage)),
            ("batch", json!(dispatch.size)),
        ] {
            fields.insert(name.to_owned(), field);
        }
    }
    value
}
