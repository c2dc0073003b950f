//! Answers of the admin port for people.

use std::fmt::Write;
use std::path::Path;

use comfy_table::Table;
use comfy_table::presets::NOTHING;
use serde_json::Value;
use switchyard_policy::CodeTier;
use switchyard_server::admin::PoolReport;
use switchyard_server::policies::{Swap, SwapResult, Version};

/// Digits of a hash that tell versions apart.
const DIGITS: usize = 12;

/// One paragraph per pool.
pub(super) fn status(pools: &[&PoolReport]) -> String {
    let mut text = String::new();
    for pool in pools {
        let PoolReport {
            driver,
            policies,
            shadow,
            ..
        } = pool;
        let version = policies.active.as_ref();
        let hash = version.map_or("no version", |version| short(&version.hash));
        let up = driver.workers.iter().filter(|worker| worker.up).count();
        let faults: u64 = driver.faults.values().sum();
        let _ = writeln!(
            text,
            "pool {}: {} serves ({hash}), {up} of {} workers up\n  \
             {} accepted, {} live, {} pending; {} windows, {faults} faults",
            driver.pool,
            driver.policy,
            driver.workers.len(),
            driver.accepted,
            driver.live,
            driver.pending,
            driver.windows,
        );
        let ends: Vec<String> = driver
            .outcomes
            .iter()
            .filter(|(_, count)| **count > 0)
            .map(|(outcome, count)| format!("{count} {outcome}"))
            .collect();
        if !ends.is_empty() {
            let _ = writeln!(text, "  ended: {}", ends.join(", "));
        }
        if let Some(fault) = &driver.last_fault {
            let _ = writeln!(text, "  last fault: {fault}");
        }
        if policies.code == CodeTier::Baseline {
            text.push_str(
                "  in baseline code: its optimised code follows, or the log says why not\n",
            );
        }
        if let Some(shadow) = shadow {
            let policy = shadow.policy.as_deref().unwrap_or("no version");
            let _ = writeln!(
                text,
                "  shadow: {policy}, {} of {} plans equal; expected utility {:.3} against {:.3} where \
                 they differ",
                shadow.identical,
                shadow.windows,
                mean(shadow.shadow.utility, shadow.shadow.requests),
                mean(shadow.active.utility, shadow.active.requests),
            );
            if let Some(error) = &shadow.error {
                let _ = writeln!(text, "  shadow refused: {error}");
            }
        }
        if let Some(canary) = &policies.canary {
            text.push_str(&super::canary::text(canary));
        }
    }
    text
}

/// Versions that a rollback can name.
pub(super) fn history(pools: &[&PoolReport]) -> String {
    let mut table = table(&["pool", "version", "policy", "file"]);
    for pool in pools {
        for version in &pool.policies.history {
            table.add_row([
                &*pool.driver.pool,
                short(&version.hash),
                &version.policy,
                &version.file,
            ]);
        }
    }
    table.trim_fmt()
}

/// Attempts to change policies.
pub(super) fn events(pools: &[&PoolReport]) -> String {
    let mut table = table(&[
        "at s", "pool", "event", "policy", "version", "by", "ms", "reason",
    ]);
    for pool in pools {
        for swap in &pool.policies.swaps {
            let ms = (swap.compile_us + swap.configure_us + swap.validate_us) as f64 / 1e3;
            let by = match swap.by.as_str() {
                "" => "file",
                by => by,
            };
            table.add_row([
                format!("{:.1}", swap.at_us as f64 / 1e6),
                pool.driver.pool.clone(),
                event(swap.result).to_owned(),
                swap.policy.clone(),
                swap.hash.clone(),
                by.to_owned(),
                format!("{ms:.1}"),
                swap.error.clone().unwrap_or_else(|| swap.reason.clone()),
            ]);
        }
    }
    table.trim_fmt()
}

/// Models of workers, and apps that are not ready.
pub(super) fn models(pools: &[&PoolReport]) -> String {
    let mut table = table(&["pool", "worker", "model", "MiB", "free MiB"]);
    let mib = |bytes: u64| format!("{:.1}", bytes as f64 / f64::from(1 << 20));
    let mut notes = String::new();
    for PoolReport { driver, .. } in pools {
        for worker in &driver.workers {
            let name = match worker.up {
                true => worker.name.clone(),
                false => format!("{} (lost)", worker.name),
            };
            for model in &worker.resident {
                let pin = if model.pinned { " (pinned)" } else { "" };
                table.add_row([
                    driver.pool.clone(),
                    name.clone(),
                    format!("{}{pin}", model.variant),
                    mib(model.bytes),
                    mib(worker.free_bytes),
                ]);
            }
        }
        for (app, state) in driver.apps.iter().filter(|(_, state)| *state != "READY") {
            let _ = writeln!(notes, "{app}: {state}");
        }
        for (variant, reason) in &driver.failed_variants {
            let _ = writeln!(notes, "{variant}: {reason}");
        }
    }
    format!("{}\n{notes}", table.trim_fmt())
}

/// The result of an order.
pub(super) fn swap(
    pool: &str,
    asked: Option<&str>,
    before: Option<&Version>,
    swap: &Swap,
) -> String {
    if swap.result == SwapResult::CanaryBegan {
        return format!(
            "pool {pool}: canary: {} ({}) gets its share of the requests; `switchyard ctl status` shows its \
             findings",
            swap.policy, swap.hash,
        );
    }
    let is_same = before.is_some_and(|before| short(&before.hash) == swap.hash);
    let from = match before {
        None => " instead of no policy".to_owned(),
        Some(_) if is_same => ", as before".to_owned(),
        Some(other) => format!(" instead of {} ({})", other.policy, short(&other.hash)),
    };
    let name = swap.policy.split('@').next().unwrap_or_default();
    let note = match asked {
        Some(asked) if is_same && asked != name && is_file_of(asked, swap) => format!(
            "\n  {asked}.wasm has {name}: orders write the version that serves into the file of the pool's \
             policy; `switchyard ctl rollback HASH` switches to one that served before"
        ),
        _ => String::new(),
    };
    format!(
        "pool {pool}: {} {} ({}) serves{from}; compiled in {:.1} ms{}, tried on {} windows in \
         {:.1} ms, switched in {} us{note}",
        event(swap.result),
        swap.policy,
        swap.hash,
        swap.compile_us as f64 / 1e3,
        if swap.cached { " (kept)" } else { "" },
        swap.windows,
        swap.validate_us as f64 / 1e3,
        swap.switch_us,
    )
}

fn is_file_of(policy: &str, swap: &Swap) -> bool {
    Path::new(&swap.file).file_stem() == Some(policy.as_ref())
}

/// A decision: the requests that it was about, the batches, and the reasons.
pub(super) fn decision(decision: &Value, only: Option<u64>) -> String {
    let mut text = String::new();
    let now_us = decision["now_us"].as_u64().unwrap_or_default();
    let causes: Vec<String> = list(&decision["because"]).iter().map(plain).collect();
    let requests = list(&decision["requests"]);
    let _ = writeln!(
        text,
        "window {} at {:.6} s, because of {}: {} decided about {} requests",
        decision["window"],
        now_us as f64 / 1e6,
        causes.join(", "),
        plain(&decision["by"]),
        requests.len(),
    );
    let is_wanted = |id: &Value| only.is_none_or(|only| id.as_u64() == Some(only));
    for request in requests.iter().filter(|request| is_wanted(&request["id"])) {
        let since = |field: &str| request[field].as_u64().unwrap_or_default() as f64 / 1e3;
        let now_ms = now_us as f64 / 1e3;
        let _ = writeln!(
            text,
            "  request {} of {}: waited {:.3} ms, {:.3} ms to its deadline",
            request["id"],
            plain(&request["app"]),
            now_ms - since("arrival_us"),
            since("deadline_us") - now_ms,
        );
    }
    for dispatch in list(&decision["plan"]["dispatches"]) {
        let members = list(&dispatch["requests"]);
        if !members.iter().any(is_wanted) {
            continue;
        }
        let ids: Vec<String> = members.iter().map(ToString::to_string).collect();
        let profiled = match dispatch["profiled_us"].as_f64() {
            Some(us) => format!(", profiled {:.3} ms", us / 1e3),
            None => String::new(),
        };
        let _ = writeln!(
            text,
            "  batch on {}: {} {} for {}{profiled}{}{}",
            plain(&dispatch["worker"]),
            plain(&dispatch["variant"]),
            plain(&dispatch["exit"]),
            ids.join(", "),
            expected(&dispatch["expected"]),
            reason(&dispatch["reason"]),
        );
        alternatives(&mut text, "instead", &dispatch["alternatives"]);
    }
    let plan = &decision["plan"];
    for (field, end) in [
        ("rejects", "rejected"),
        ("answers", "answered from evidence"),
    ] {
        for id in list(&plan[field]).iter().filter(|id| is_wanted(id)) {
            let why = list(&plan["reasons"])
                .iter()
                .find(|why| why["request"] == *id);
            let why = why.map_or(String::new(), |why| reason(&why["reason"]));
            let _ = writeln!(text, "  request {id} {end}{why}");
        }
    }
    for ways in list(&plan["instead"]) {
        if is_wanted(&ways["request"]) {
            let _ = writeln!(text, "  request {} could have run", ways["request"]);
            alternatives(&mut text, "as", &ways["alternatives"]);
        }
    }
    text.trim_end().to_owned()
}

/// The other ways, a line each, the best first.
fn alternatives(text: &mut String, label: &str, ways: &Value) {
    for way in list(ways) {
        let _ = writeln!(
            text,
            "    {label} {} {} on {}{}",
            plain(&way["variant"]),
            plain(&way["exit"]),
            plain(&way["worker"]),
            expected(way),
        );
    }
}

/// The expected result of a way.
fn expected(way: &Value) -> String {
    let mut text = match way["in_us"].as_f64() {
        Some(us) => format!(", expected in {:.3} ms", us / 1e3),
        None => String::new(),
    };
    if let Some(utility) = way["utility"].as_f64() {
        let _ = write!(text, ", utility {utility:.3}");
    }
    if let Some(late @ 1..) = way["late"].as_u64() {
        let _ = write!(text, ", {late} late");
    }
    text
}

fn event(result: SwapResult) -> &'static str {
    match result {
        SwapResult::Switched => "swapped:",
        SwapResult::RolledBack => "rolled back:",
        SwapResult::Refused => "refused:",
        SwapResult::Removed => "removed:",
        SwapResult::CanaryBegan => "canary:",
        SwapResult::Promoted => "promoted:",
        SwapResult::Kept => "kept:",
    }
}

fn mean(sum: f64, count: u64) -> f64 {
    match count {
        0 => 0.0,
        count => sum / count as f64,
    }
}

fn short(hash: &str) -> &str {
    hash.get(..DIGITS).unwrap_or(hash)
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// A text without quotes; nothing for null.
fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn reason(reason: &Value) -> String {
    match reason["text"].as_str() {
        Some(text) => format!(": {text}"),
        None => String::new(),
    }
}

fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_preset(NOTHING).set_header(header);
    table
}
