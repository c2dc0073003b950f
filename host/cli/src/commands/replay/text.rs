//! A replay as text: the counts, then the windows in which the plans differ.

use std::collections::BTreeSet;
use std::path::Path;

use switchyard_core::catalog::Catalog;
use switchyard_core::time::Time;
use switchyard_server::judge::{Difference, Fate, Names, Outlook, RequestDifference, Worth};
use switchyard_server::reasons::Why;

use super::engine::Outcome;

/// Most ids of one batch that are listed.
const IDS_MAX: usize = 8;

/// The counts of a replay.
pub(super) fn summary(trace: &Path, outcome: &Outcome) -> String {
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
    let mut row = |name: &str, count: u64, note: &str| {
        let line = format!("  {name:<14} {count:>8}  {note}");
        lines.push(line.trim_end().to_owned());
    };
    row("runs", tally.runs, "");
    row("windows", tally.asked.windows, "");
    row("identical", tally.asked.identical, "");
    row("different", tally.asked.different, "");
    let notes = [
        (
            "wake only",
            tally.asked.wake_only,
            "of these: only the time of the next window differs; not shown",
        ),
        (
            "failed",
            tally.asked.failed,
            "of these: the policy gave no valid plan",
        ),
        (
            "by others",
            tally.by_others,
            "of these: recorded without an active policy, or after its failure",
        ),
        (
            "not asked",
            tally.not_asked,
            "windows of the fallback alone",
        ),
        ("missing", tally.missing, "not recorded for lack of time"),
    ];
    for (name, count, note) in notes {
        if count > 0 {
            row(name, count, note);
        }
    }
    let requests = &outcome.requests;
    if requests.different() > 0 {
        row("requests", requests.all, "each counted once");
        row(
            "different",
            requests.different(),
            "by the first window in which the plans differ:",
        );
        let utility = requests.utility().map(|[recorded, replayed]| {
            format!("mean utility recorded {recorded:.3}, replayed {replayed:.3}")
        });
        let both = utility.unwrap_or_default();
        row("  both decide", requests.both_decide, &both);
        let first = "the recorded plan leaves them waiting";
        row("  replay first", requests.replayed_first, first);
        let waits = "the replayed policy leaves them waiting";
        row("  replay waits", requests.replayed_waits, waits);
    }
    if !outcome.unseen.is_empty() {
        let unseen = outcome.unseen.iter().copied().collect::<Vec<_>>();
        lines.push(format!(
            "  the policy asks for window fields that were not recorded: {}",
            unseen.join(", ")
        ));
    }
    lines.join("\n")
}

fn joined(names: &BTreeSet<String>) -> String {
    match names.is_empty() {
        true => "without a policy".to_owned(),
        false => names.iter().cloned().collect::<Vec<_>>().join(", "),
    }
}

/// One window with its requests, those of a batch in one entry.
pub(super) fn paragraph(catalog: &Catalog, run: u64, difference: &Difference) -> String {
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
    for group in groups(&difference.requests) {
        lines.extend(group_lines(catalog, &group, *now));
    }
    if !difference.besides.is_empty() {
        lines.push(format!(
            "  also different: {}",
            difference.besides.join(", ")
        ));
    }
    let (recorded, replayed) = (decided(difference.done), decided(difference.proposed));
    lines.push(format!(
        "  decided: recorded {recorded}; replayed {replayed}"
    ));
    lines.join("\n")
}

/// Requests with an expected utility, and its mean.
fn decided(worth: Worth) -> String {
    match worth.requests {
        0 => "0 requests".to_owned(),
        1 => format!("1 request, utility {:.3}", worth.utility),
        n => format!("{n} requests, mean utility {:.3}", worth.utility / n as f64),
    }
}

/// Requests of one app that share both fates and both reasons, in order of their first.
fn groups(requests: &[RequestDifference]) -> Vec<Vec<&RequestDifference>> {
    let mut groups: Vec<Vec<&RequestDifference>> = Vec::new();
    for request in requests {
        let alike = groups.iter_mut().find(|group| is_alike(group[0], request));
        match alike {
            Some(group) => group.push(request),
            None => groups.push(vec![request]),
        }
    }
    groups
}

fn is_alike(one: &RequestDifference, other: &RequestDifference) -> bool {
    let outlook = |outlook: &Outlook| (outlook.fate, outlook.end);
    one.app == other.app
        && outlook(&one.done) == outlook(&other.done)
        && outlook(&one.proposed) == outlook(&other.proposed)
        && one.done_why == other.done_why
        && one.proposed_why == other.proposed_why
}

fn group_lines(catalog: &Catalog, group: &[&RequestDifference], now: Time) -> [String; 3] {
    let first = group[0];
    let app = catalog.app(first.app).map_or("?", |app| &app.name);
    let line = |side: &str, outlook: fn(&RequestDifference) -> &Outlook, why: Option<&str>| {
        let Outlook { fate, end, .. } = *outlook(first);
        let mut line = format!("    {side} {}", fate_in_words(catalog, fate));
        if let (Fate::Runs(_), Some(end)) = (fate, end) {
            line += &format!(", done in {}", end.since(now));
        }
        let utilities = group.iter().filter_map(|request| outlook(request).utility);
        line += &utility(utilities);
        if let Some(why) = why {
            line += &format!("; {}", Why::of(why).words());
        }
        line
    };
    [
        format!("  {} of {app}", ids(group)),
        line(
            "recorded:",
            |request| &request.done,
            first.done_why.as_deref(),
        ),
        line(
            "replayed:",
            |request| &request.proposed,
            first.proposed_why.as_deref(),
        ),
    ]
}

fn ids(group: &[&RequestDifference]) -> String {
    let shown = group.iter().take(IDS_MAX);
    let shown: Vec<String> = shown.map(|request| request.id.0.to_string()).collect();
    match group.len() {
        1 => format!("request {}", shown[0]),
        n if n > IDS_MAX => format!("{n} requests, {}, ...", shown.join(", ")),
        n => format!("{n} requests, {}", shown.join(", ")),
    }
}

/// One utility, or the lowest and the highest.
fn utility(utilities: impl Iterator<Item = f64>) -> String {
    let ends = utilities.fold(None, |ends, utility| {
        let (low, high) = ends.unwrap_or((utility, utility));
        Some((utility.min(low), utility.max(high)))
    });
    let Some((low, high)) = ends else {
        return String::new();
    };
    let [low, high] = [low, high].map(|utility| format!("{utility:.3}"));
    match low == high {
        true => format!(", utility {low}"),
        false => format!(", utility {low} to {high}"),
    }
}

fn fate_in_words(catalog: &Catalog, fate: Fate) -> String {
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
