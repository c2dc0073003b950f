//! The registry of metrics. Each server has its own, so that the metrics of two servers in one test
//! stay apart.
//!
//! A series lives as long as its handles: a pool, worker, policy or app that leaves drops them. A gauge
//! then leaves at once; a counter or histogram is shown once more, so that no count is lost.
//!
//! Two pools of one name have gauges of the same labels while one replaces the other. That of the pool which
//! serves is shown: not that of one which starts and may be refused, nor that of one which ends its requests.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::log_queue::lines_dropped;
use super::meters::{Counter, Gauge, Histogram, SecondsCounter};
use super::names::{self, CounterName, GaugeName, HistogramName, SecondsName};
use super::process;
use super::text::{self, Shown};

/// Registers metrics and renders them. Clones are the same registry.
#[derive(Clone)]
pub struct Registry {
    families: Arc<Mutex<Families>>,
    /// Times that pools replaced others.
    changes: Arc<AtomicU64>,
    /// Series of the process, which stay.
    lines_dropped: Counter,
    _build: Gauge,
}

/// By name.
type Families = BTreeMap<&'static str, Family>;

/// All series of one name.
struct Family {
    help: &'static str,
    /// By labels, as they are shown.
    series: BTreeMap<String, Series>,
}

enum Series {
    Counter(Counter),
    Seconds(SecondsCounter),
    /// In the order in which they were made, each with the changes before it.
    Gauge(Vec<(u64, Gauge)>),
    Histogram(Histogram),
}

// === impl Registry ===

impl Default for Registry {
    fn default() -> Self {
        Self::new()
    }
}

impl Registry {
    /// A registry with the series of the process.
    pub fn new() -> Self {
        let families = Arc::default();
        let version = [("version", env!("CARGO_PKG_VERSION"))];
        let build = gauge(&families, 0, names::BUILD_INFO, version);
        build.set(1.0);
        Self {
            lines_dropped: counter(&families, names::LOG_LINES_DROPPED, []),
            _build: build,
            families,
            changes: Arc::default(),
        }
    }

    /// The counter of this name and these labels: from 0, or the one that is still shown.
    pub(crate) fn counter<const N: usize>(
        &self,
        name: CounterName,
        labels: [(&'static str, &str); N],
    ) -> Counter {
        counter(&self.families, name, labels)
    }

    /// As [`counter`](Self::counter), of seconds.
    pub(crate) fn seconds<const N: usize>(
        &self,
        name: SecondsName,
        labels: [(&'static str, &str); N],
    ) -> SecondsCounter {
        let mut families = lock(&self.families);
        let series = series(&mut families, (name.name, name.help), labels);
        match series.or_insert_with(|| Series::Seconds(SecondsCounter::default())) {
            Series::Seconds(seconds) => seconds.clone(),
            _ => SecondsCounter::default(),
        }
    }

    /// A gauge of this name and these labels, from 0. Where an older one is held, it is shown from the next
    /// [`change`](Self::change) on.
    pub(crate) fn gauge<const N: usize>(
        &self,
        name: GaugeName,
        labels: [(&'static str, &str); N],
    ) -> Gauge {
        gauge(&self.families, self.changes(), name, labels)
    }

    /// Pools that have started replace others.
    pub(crate) fn change(&self) {
        self.changes.fetch_add(1, Ordering::Relaxed);
    }

    fn changes(&self) -> u64 {
        self.changes.load(Ordering::Relaxed)
    }

    /// As [`counter`](Self::counter), a histogram.
    pub(crate) fn histogram<const N: usize>(
        &self,
        name: HistogramName,
        labels: [(&'static str, &str); N],
    ) -> Histogram {
        let mut families = lock(&self.families);
        let series = series(&mut families, (name.name, name.help), labels);
        match series.or_insert_with(|| Series::Histogram(Histogram::new(name.bounds))) {
            Series::Histogram(histogram) => histogram.clone(),
            _ => Histogram::new(name.bounds),
        }
    }

    /// Everything, in the Prometheus text format. Series without a handle are gone afterwards.
    pub fn render(&self) -> String {
        // The log belongs to the process, not to one server.
        self.lines_dropped.raise_to(lines_dropped());
        let mut text = String::new();
        let mut families = lock(&self.families);
        families.retain(|name, family| {
            // Handles are made under the lock: a series without one is written by no thread.
            family.series.retain(|_, series| match series {
                Series::Gauge(made) => {
                    made.retain(|(_, Gauge(cell))| has_handle(cell));
                    !made.is_empty()
                }
                _ => true,
            });
            let gone: Vec<String> = family
                .series
                .iter()
                .filter(|(_, series)| !series.is_held())
                .map(|(labels, _)| labels.clone())
                .collect();
            family.render(name, self.changes(), &mut text);
            for labels in gone {
                family.series.remove(&labels);
            }
            !family.series.is_empty()
        });
        drop(families);
        process::render(&mut text);
        text
    }
}

// === impl Family ===

impl Family {
    fn render(&self, name: &str, changes: u64, text: &mut String) {
        let Some(first) = self.series.values().next() else {
            return;
        };
        text::head(text, name, first.kind(), self.help);
        for (labels, series) in &self.series {
            let shown = match series {
                Series::Counter(counter) => Shown::Count(counter.get()),
                Series::Seconds(seconds) => Shown::Value(seconds.seconds()),
                Series::Gauge(made) => {
                    let serving = made.iter().rfind(|(before, _)| *before < changes);
                    let serving = serving.or(made.first());
                    Shown::Value(serving.map_or(0.0, |(_, gauge)| gauge.get()))
                }
                Series::Histogram(histogram) => {
                    let (buckets, count, sum) = histogram.0.read();
                    Shown::Histogram {
                        buckets,
                        count,
                        sum,
                    }
                }
            };
            text::series(text, name, labels, &shown);
        }
    }
}

// === impl Series ===

impl Series {
    fn kind(&self) -> &'static str {
        match self {
            Self::Counter(_) | Self::Seconds(_) => "counter",
            Self::Gauge(_) => "gauge",
            Self::Histogram(_) => "histogram",
        }
    }

    /// Whether there is a handle outside the registry.
    fn is_held(&self) -> bool {
        match self {
            Self::Counter(Counter(cell)) | Self::Seconds(SecondsCounter(cell)) => has_handle(cell),
            Self::Gauge(made) => made.iter().any(|(_, Gauge(cell))| has_handle(cell)),
            Self::Histogram(Histogram(cell)) => has_handle(cell),
        }
    }
}

/// Whether a cell of the registry has a handle outside it.
fn has_handle<T>(cell: &Arc<T>) -> bool {
    Arc::strong_count(cell) > 1
}

fn counter<const N: usize>(
    families: &Mutex<Families>,
    name: CounterName,
    labels: [(&'static str, &str); N],
) -> Counter {
    let mut families = lock(families);
    let series = series(&mut families, (name.name, name.help), labels);
    match series.or_insert_with(|| Series::Counter(Counter::default())) {
        Series::Counter(counter) => counter.clone(),
        // A name is of one kind: no other one comes here.
        _ => Counter::default(),
    }
}

fn gauge<const N: usize>(
    families: &Mutex<Families>,
    changes: u64,
    name: GaugeName,
    labels: [(&'static str, &str); N],
) -> Gauge {
    let mut families = lock(families);
    let series = series(&mut families, (name.name, name.help), labels);
    let gauge = Gauge::default();
    if let Series::Gauge(made) = series.or_insert_with(|| Series::Gauge(Vec::new())) {
        made.retain(|(_, Gauge(cell))| has_handle(cell));
        made.push((changes, gauge.clone()));
    }
    gauge
}

fn series<'a, const N: usize>(
    families: &'a mut Families,
    (name, help): (&'static str, &'static str),
    labels: [(&'static str, &str); N],
) -> std::collections::btree_map::Entry<'a, String, Series> {
    let family = families.entry(name).or_insert_with(|| Family {
        help,
        series: BTreeMap::new(),
    });
    family.series.entry(text::labels(&labels))
}

fn lock(families: &Mutex<Families>) -> MutexGuard<'_, Families> {
    // Each change is one insertion or removal.
    families.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_leaves_with_its_last_handle_after_one_more_scrape() {
        let registry = Registry::new();
        let labels = [("app", "a\"b"), ("outcome", "late")];
        let counter = registry.counter(names::REQUESTS, labels);
        counter.increment(2);
        registry.counter(names::REQUESTS, labels).increment(1);
        let line = "switchyard_requests_total{app=\"a\\\"b\",outcome=\"late\"} 3";
        for _ in 0..2 {
            assert!(registry.render().lines().any(|shown| shown == line));
        }
        counter.increment(1);
        drop(counter);
        let last = "switchyard_requests_total{app=\"a\\\"b\",outcome=\"late\"} 4";
        assert!(registry.render().lines().any(|shown| shown == last));
        assert!(!registry.render().contains("switchyard_requests_total"));
    }

    #[test]
    fn a_handle_that_comes_back_before_the_scrape_counts_on() {
        let registry = Registry::new();
        let histogram = || registry.histogram(names::BATCH_SIZE, [("pool", "main")]);
        histogram().record(3.0);
        let again = histogram();
        again.record(9000.0);
        let text = registry.render();
        for line in [
            "# TYPE switchyard_batch_size histogram",
            "switchyard_batch_size_bucket{pool=\"main\",le=\"2\"} 0",
            "switchyard_batch_size_bucket{pool=\"main\",le=\"4\"} 1",
            "switchyard_batch_size_bucket{pool=\"main\",le=\"+Inf\"} 2",
            "switchyard_batch_size_sum{pool=\"main\"} 9003",
            "switchyard_batch_size_count{pool=\"main\"} 2",
        ] {
            assert!(text.lines().any(|shown| shown == line), "{line}: {text}");
        }
    }

    #[test]
    fn a_gauge_leaves_at_once() {
        let registry = Registry::new();
        let gauge = registry.gauge(names::WORKER_UP, [("pool", "main"), ("worker", "cpu")]);
        gauge.set(1.0);
        assert!(registry.render().contains("switchyard_worker_up"));
        drop(gauge);
        assert!(!registry.render().contains("switchyard_worker_up"));
    }

    #[test]
    fn the_gauge_of_the_pool_that_serves_is_shown() {
        let registry = Registry::new();
        let gauge = |value| {
            let gauge = registry.gauge(names::PENDING_MAX, [("pool", "main")]);
            gauge.set(value);
            gauge
        };
        let shows = |value: u32| {
            let line = format!("switchyard_pending_max{{pool=\"main\"}} {value}");
            registry.render().lines().any(|shown| shown == line)
        };
        let (first, refused) = (gauge(1.0), gauge(2.0));
        assert!(shows(1));
        drop(refused);
        let second = gauge(3.0);
        assert!(shows(1));
        registry.change();
        assert!(shows(3));
        let third = gauge(4.0);
        drop(first);
        assert!(shows(3));
        registry.change();
        assert!(shows(4));
        drop(second);
        assert!(shows(4));
        drop(third);
        assert!(!registry.render().contains("switchyard_pending_max"));
    }
}
