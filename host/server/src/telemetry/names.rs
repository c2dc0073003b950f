//! Names of the metrics. Dashboards and checks rely on them: extend rather than rename.

/// Bounds of durations in seconds: 2 us, the smallest window of a small policy, to 10 s.
const SECONDS: &[f64] = &[
    2e-6, 5e-6, 10e-6, 20e-6, 50e-6, 100e-6, 200e-6, 500e-6, 1e-3, 2e-3, 5e-3, 10e-3, 20e-3, 50e-3,
    0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0,
];

/// Bounds of counts: powers of two.
const COUNTS: &[f64] = &[
    0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 4096.0,
];

/// Bounds of latencies as shares of the deadline: each app has its buckets around its own.
const RATIOS: &[f64] = &[
    0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0, 5.0,
];

/// A metric of each kind, by name and help.
#[derive(Clone, Copy)]
pub(crate) struct CounterName {
    pub(crate) name: &'static str,
    pub(super) help: &'static str,
}

/// As [`CounterName`], counted in microseconds.
#[derive(Clone, Copy)]
pub(crate) struct SecondsName {
    pub(super) name: &'static str,
    pub(super) help: &'static str,
}

#[derive(Clone, Copy)]
pub(crate) struct GaugeName {
    pub(super) name: &'static str,
    pub(super) help: &'static str,
}

#[derive(Clone, Copy)]
pub(crate) struct HistogramName {
    pub(super) name: &'static str,
    pub(super) help: &'static str,
    pub(super) bounds: &'static [f64],
}

pub(crate) const REQUESTS: CounterName = counter(
    "switchyard_requests_total",
    "Accepted requests by how they ended",
);
pub(crate) const REQUEST_LATENCY: HistogramName = histogram(
    "switchyard_request_latency_seconds",
    "From arrival to answer",
    SECONDS,
);
pub(crate) const DEADLINE_MISSED: CounterName = counter(
    "switchyard_deadline_missed_total",
    "Answered or dropped past the deadline",
);
pub(crate) const WINDOW_TIME: HistogramName = histogram(
    "switchyard_window_seconds",
    "One window call of the policy",
    SECONDS,
);
pub(crate) const WINDOW_REQUESTS: HistogramName = histogram(
    "switchyard_window_requests",
    "Pending requests in a window",
    COUNTS,
);
pub(crate) const POLICY_SWAPS: CounterName = counter(
    "switchyard_policy_swaps_total",
    "Attempts to switch the policy, by result",
);
pub(crate) const POLICY_FAULTS: CounterName = counter(
    "switchyard_policy_faults_total",
    "Windows that a policy failed, by kind",
);
pub(crate) const FALLBACK_ACTIVE: GaugeName = gauge(
    "switchyard_fallback_active",
    "1 while the native fallback serves: no policy, or a failing one",
);
pub(crate) const WORKER_UP: GaugeName =
    gauge("switchyard_worker_up", "1 while a worker takes batches");
pub(crate) const PARKED_ROWS: GaugeName = gauge(
    "switchyard_parked_requests",
    "Requests between two ranges of stages whose activations `switchyard worker` keeps",
);
pub(crate) const PARKED: CounterName = counter(
    "switchyard_parked_total",
    "Times that a request's activations were parked on `switchyard worker`",
);
pub(crate) const PARKED_LOST: CounterName = counter(
    "switchyard_parked_lost_total",
    "Of these, requests whose activations were dropped unasked: they begin anew",
);
pub(crate) const WORKERS_DESIRED: GaugeName = gauge(
    "switchyard_workers_desired",
    "Workers that the load of the last minute asks for, 70 % busy with the fastest variants",
);
pub(crate) const WORKER_ADDRESS: GaugeName = gauge(
    "switchyard_worker_address_info",
    "1, with the address of a worker's server; none: no server has its slot",
);
pub(crate) const ETCD_UP: GaugeName = gauge(
    "switchyard_etcd_up",
    "1 while etcd answers; otherwise its last answers stay",
);
pub(crate) const ACTIVE: GaugeName = gauge(
    "switchyard_active",
    "1 while this scheduler is the active one, with an election in etcd",
);
pub(crate) const POLICY_IN_STEP: GaugeName = gauge(
    "switchyard_policy_in_step",
    "1 while a pool has the policy that schedulers share in etcd",
);
pub(crate) const WORKER_RESTARTS: CounterName = counter(
    "switchyard_worker_restarts_total",
    "Restarts of a worker that was lost",
);
pub(crate) const BATCH_SIZE: HistogramName =
    histogram("switchyard_batch_size", "Requests per batch run", COUNTS);
pub(crate) const VARIANT_REQUESTS: CounterName = counter(
    "switchyard_variant_requests_total",
    "Requests answered, by policy, variant, exit, and whether in time",
);
pub(crate) const CACHE_LOADS: CounterName = counter(
    "switchyard_model_cache_loads_total",
    "Model loads per worker",
);
pub(crate) const CACHE_LOAD_TIME: HistogramName = histogram(
    "switchyard_model_cache_load_seconds",
    "Time of a model load",
    SECONDS,
);
pub(crate) const CACHE_RESIDENT: GaugeName = gauge(
    "switchyard_model_cache_resident",
    "Variants resident on a worker",
);
pub(crate) const CACHE_FREE: GaugeName = gauge(
    "switchyard_model_cache_free_bytes",
    "Model memory left on a worker",
);
pub(crate) const CACHE_BYTES: GaugeName = gauge(
    "switchyard_model_cache_resident_bytes",
    "Model memory that variants take on a worker",
);
pub(crate) const CACHE_HITS: CounterName = counter(
    "switchyard_model_cache_hits_total",
    "Batches whose variant was resident",
);
pub(crate) const CACHE_MISSES: CounterName = counter(
    "switchyard_model_cache_misses_total",
    "Batches that waited for a model load",
);
pub(crate) const CACHE_EVICTIONS: CounterName = counter(
    "switchyard_model_cache_evictions_total",
    "Variants evicted to make room",
);
pub(crate) const CACHE_LOAD_ERRORS: CounterName = counter(
    "switchyard_model_cache_load_errors_total",
    "Model loads that failed",
);
pub(crate) const CACHE_LOAD_RATIO: GaugeName = gauge(
    "switchyard_model_cache_load_ratio",
    "Time of the last load of a variant over the time policies are told",
);
pub(crate) const CACHE_RELOADS: CounterName = counter(
    "switchyard_model_cache_reloads_total",
    "Changed weights taken in while serving, by variant and result",
);
pub(crate) const CONFIG_CHANGES: CounterName = counter(
    "switchyard_config_changes_total",
    "Changed configurations, by result: switched, unchanged, refused",
);
pub(crate) const QUEUE_DEPTH: GaugeName =
    gauge("switchyard_queue_depth", "Requests that wait, by where");
pub(crate) const LEDGER_IMBALANCE: GaugeName = gauge(
    "switchyard_ledger_imbalance",
    "Requests lost or answered twice: 0, always",
);
pub(crate) const EVIDENCE_SKIPPED: CounterName = counter(
    "switchyard_evidence_skipped_total",
    "Requests without evidence, its queue full",
);
pub(crate) const REFUSED: CounterName = counter(
    "switchyard_refused_total",
    "Requests refused before scheduling, by status",
);
pub(crate) const DRIFT_RATIO: GaugeName = gauge(
    "switchyard_profile_drift_ratio",
    "Observed over profiled latency, of the batches furthest from the profile",
);
pub(crate) const DRIFT_EPISODES: CounterName = counter(
    "switchyard_profile_drift_episodes_total",
    "Times that a worker's latencies of a variant left the profile",
);
pub(crate) const INBOX_FULL: CounterName = counter(
    "switchyard_inbox_full_total",
    "Calls refused because the inbox was full",
);
pub(crate) const RECORDED_WINDOWS: CounterName =
    counter("switchyard_recorded_windows_total", "Windows recorded");
pub(crate) const RECORDING_DROPPED: CounterName = counter(
    "switchyard_recording_dropped_windows_total",
    "Windows not recorded because the disk was too slow",
);
pub(crate) const RECORDING_ACTIVE: GaugeName = gauge(
    "switchyard_recording_active",
    "1 while windows are recorded, 0 once the file has its size or failed",
);
pub(crate) const PREPARE_RUNS: CounterName = counter(
    "switchyard_prepare_runs_total",
    "Runs of the prepare command, by result",
);
pub(crate) const SHADOW_WINDOWS: CounterName = counter(
    "switchyard_shadow_windows_total",
    "Windows that the shadow planned, by result, or missed",
);
pub(crate) const SHADOW_WINDOW_TIME: HistogramName = histogram(
    "switchyard_shadow_window_seconds",
    "One window call of the shadow, on a thread of its own",
    SECONDS,
);
pub(crate) const BUILD_INFO: GaugeName = gauge("switchyard_build_info", "1, with the version");
pub(crate) const POLICY_INFO: GaugeName = gauge(
    "switchyard_policy_info",
    "1, with the policy installed last",
);
pub(crate) const WORKER_BUSY: SecondsName = seconds(
    "switchyard_worker_busy_seconds_total",
    "Time in which a worker computed",
);
pub(crate) const LATENCY_OVER_SLO: HistogramName = histogram(
    "switchyard_request_latency_slo_ratio",
    "From arrival to answer, over the app's deadline",
    RATIOS,
);
pub(crate) const VARIANT_QUALITY: GaugeName = gauge(
    "switchyard_variant_quality_ratio",
    "Profiled quality of an exit's answers, 0 to 1; absent if it is unknown",
);
pub(crate) const PENDING_MAX: GaugeName = gauge(
    "switchyard_pending_max",
    "Requests that may wait for a decision",
);
pub(crate) const CANARY_RUNS: GaugeName =
    gauge("switchyard_canary_running", "1 while a canary runs");
pub(crate) const LOG_LINES_DROPPED: CounterName = counter(
    "switchyard_log_lines_dropped_total",
    "Log lines dropped because the reader of stderr was too slow",
);
#[cfg(feature = "traces")]
pub(crate) const TRACES_DROPPED: CounterName = counter(
    "switchyard_traces_dropped_total",
    "Traces dropped because the collector failed or was too slow",
);

/// The name in a policy's label `name@version`: metrics carry no version, so that all versions of a
/// policy share their series.
pub(crate) fn policy_of(label: &str) -> &str {
    label.split_once('@').map_or(label, |(name, _)| name)
}

/// The names in the label of a policy: of both members of a canary.
pub(crate) fn policies_of(label: &str) -> impl Iterator<Item = &str> {
    label.split(" or ").map(policy_of)
}

const fn counter(name: &'static str, help: &'static str) -> CounterName {
    CounterName { name, help }
}

const fn seconds(name: &'static str, help: &'static str) -> SecondsName {
    SecondsName { name, help }
}

const fn gauge(name: &'static str, help: &'static str) -> GaugeName {
    GaugeName { name, help }
}

const fn histogram(
    name: &'static str,
    help: &'static str,
    bounds: &'static [f64],
) -> HistogramName {
    HistogramName { name, help, bounds }
}
