//! A replay as text or JSON.

use std::path::Path;

use serde_json::{Value, json};

use super::engine::Outcome;
use super::text::{paragraph, summary};
use crate::commands::failure::Failure;
use crate::commands::print;

/// Names of the plan that was carried out and the replayed policy's.
const SIDES: [&str; 2] = ["recorded", "replayed"];

/// To stdout.
pub(super) fn print(trace: &Path, outcome: &Outcome, json: bool) -> Result<(), Failure> {
    if json {
        return print::json(&as_json(trace, outcome));
    }
    print::line(summary(trace, outcome))?;
    for (run, difference) in &outcome.differences {
        let paragraph = paragraph(&outcome.catalog, *run, difference);
        print::line(format_args!("\n{paragraph}"))?;
    }
    let shown = outcome.differences.len() as u64 + outcome.tally.asked.wake_only;
    if shown < outcome.tally.asked.different {
        let left = outcome.tally.asked.different - shown;
        print::line(format_args!(
            "\n{left} more windows differ: --limit shows more"
        ))?;
    }
    Ok(())
}

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
        "requests": outcome.requests.to_json(),
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
