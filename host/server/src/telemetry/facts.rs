//! Series whose labels or values the exporter cannot hold: seconds that are counted as microseconds, and the
//! versions of active policies, of which the old one must not stay.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::names::{BUILD_INFO, POLICY_INFO, WORKER_BUSY};

/// Counts microseconds; shown as seconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct BusyTime(Arc<AtomicU64>);

/// The series of one server.
#[derive(Debug, Default)]
pub(super) struct Facts {
    /// By pool: label and hash.
    policies: Mutex<BTreeMap<String, (String, String)>>,
    /// By pool and worker.
    busy: Mutex<BTreeMap<(String, String), BusyTime>>,
}

// === impl BusyTime ===

impl BusyTime {
    /// Adds to it.
    pub(crate) fn add(&self, us: u64) {
        self.0.fetch_add(us, Ordering::Relaxed);
    }
}

// === impl Facts ===

impl Facts {
    /// The policy that serves a pool; without one the native fallback does.
    pub(super) fn policy(&self, pool: &str, active: Option<(&str, &str)>) {
        let (label, hash) = active.unwrap_or(("none", ""));
        let active = (label.to_owned(), hash.to_owned());
        lock(&self.policies).insert(pool.to_owned(), active);
    }

    /// The busy time of a worker: the same one each time it is asked for.
    pub(super) fn busy(&self, pool: &str, worker: &str) -> BusyTime {
        let key = (pool.to_owned(), worker.to_owned());
        lock(&self.busy).entry(key).or_default().clone()
    }

    /// Appends them in the Prometheus text format.
    pub(super) fn render(&self, text: &mut String) {
        head(text, BUILD_INFO, "gauge", "1, with the version");
        let version = env!("CARGO_PKG_VERSION");
        let _ = writeln!(text, "{BUILD_INFO}{{version=\"{version}\"}} 1");
        let policies = lock(&self.policies);
        if !policies.is_empty() {
            head(
                text,
                POLICY_INFO,
                "gauge",
                "1, with the policy installed last",
            );
        }
        for (pool, (label, hash)) in policies.iter() {
            let (pool, label, hash) = (escaped(pool), escaped(label), escaped(hash));
            let labels = format!("pool=\"{pool}\",policy=\"{label}\",hash=\"{hash}\"");
            let _ = writeln!(text, "{POLICY_INFO}{{{labels}}} 1");
        }
        let busy = lock(&self.busy);
        if !busy.is_empty() {
            head(
                text,
                WORKER_BUSY,
                "counter",
                "Time in which a worker computed",
            );
        }
        for ((pool, worker), time) in busy.iter() {
            let seconds = time.0.load(Ordering::Relaxed) as f64 / 1e6;
            let (pool, worker) = (escaped(pool), escaped(worker));
            let labels = format!("pool=\"{pool}\",worker=\"{worker}\"");
            let _ = writeln!(text, "{WORKER_BUSY}{{{labels}}} {seconds}");
        }
    }
}

fn head(text: &mut String, name: &str, kind: &str, help: &str) {
    let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
}

/// A label's value.
fn escaped(value: &str) -> String {
    let value = value.replace('\\', "\\\\").replace('"', "\\\"");
    value.replace('\n', "\\n")
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Each change is one insertion.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_that_left_leaves_no_series() {
        let facts = Facts::default();
        facts.policy("main", Some(("fcfs@1", "aa")));
        facts.policy("main", Some(("a\"b@2", "bb")));
        let busy = facts.busy("main", "cpu-a");
        busy.add(1_500_000);
        facts.busy("main", "cpu-a").add(250_000);
        let mut text = String::new();
        facts.render(&mut text);
        assert!(!text.contains("fcfs@1"), "{text}");
        let policy = r#"switchyard_policy_info{pool="main",policy="a\"b@2",hash="bb"} 1"#;
        assert!(text.contains(policy), "{text}");
        let busy = r#"switchyard_worker_busy_seconds_total{pool="main",worker="cpu-a"} 1.75"#;
        assert!(text.contains(busy), "{text}");
    }
}
