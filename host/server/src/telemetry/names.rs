//! Names of the metrics. Dashboards and checks rely on them: extend rather than rename.

use metrics::{Unit, describe_counter, describe_gauge, describe_histogram};

pub(crate) const REQUESTS: &str = "switchyard_requests_total";
pub(crate) const REQUEST_LATENCY: &str = "switchyard_request_latency_seconds";
pub(crate) const DEADLINE_MISSED: &str = "switchyard_deadline_missed_total";
pub(crate) const WINDOW_TIME: &str = "switchyard_window_seconds";
pub(crate) const WINDOW_REQUESTS: &str = "switchyard_window_requests";
pub(crate) const POLICY_SWAPS: &str = "switchyard_policy_swaps_total";
pub(crate) const POLICY_FAULTS: &str = "switchyard_policy_faults_total";
pub(crate) const FALLBACK_ACTIVE: &str = "switchyard_fallback_active";
pub(crate) const WORKER_UP: &str = "switchyard_worker_up";
pub(crate) const WORKER_RESTARTS: &str = "switchyard_worker_restarts_total";
pub(crate) const BATCH_SIZE: &str = "switchyard_batch_size";
pub(crate) const VARIANT_REQUESTS: &str = "switchyard_variant_requests_total";
pub(crate) const CACHE_LOADS: &str = "switchyard_model_cache_loads_total";
pub(crate) const CACHE_LOAD_TIME: &str = "switchyard_model_cache_load_seconds";
pub(crate) const CACHE_RESIDENT: &str = "switchyard_model_cache_resident";
pub(crate) const CACHE_FREE: &str = "switchyard_model_cache_free_bytes";
pub(crate) const CACHE_BYTES: &str = "switchyard_model_cache_resident_bytes";
pub(crate) const CACHE_HITS: &str = "switchyard_model_cache_hits_total";
pub(crate) const CACHE_MISSES: &str = "switchyard_model_cache_misses_total";
pub(crate) const CACHE_EVICTIONS: &str = "switchyard_model_cache_evictions_total";
pub(crate) const CACHE_LOAD_ERRORS: &str = "switchyard_model_cache_load_errors_total";
pub(crate) const CACHE_LOAD_RATIO: &str = "switchyard_model_cache_load_ratio";
pub(crate) const CACHE_RELOADS: &str = "switchyard_model_cache_reloads_total";
pub(crate) const CONFIG_CHANGES: &str = "switchyard_config_changes_total";
pub(crate) const QUEUE_DEPTH: &str = "switchyard_queue_depth";
pub(crate) const LEDGER_IMBALANCE: &str = "switchyard_ledger_imbalance";
pub(crate) const EVIDENCE_SKIPPED: &str = "switchyard_evidence_skipped_total";
pub(crate) const REFUSED: &str = "switchyard_refused_total";
pub(crate) const DRIFT_RATIO: &str = "switchyard_profile_drift_ratio";
pub(crate) const DRIFT_EPISODES: &str = "switchyard_profile_drift_episodes_total";
pub(crate) const INBOX_FULL: &str = "switchyard_inbox_full_total";
pub(crate) const RECORDED_WINDOWS: &str = "switchyard_recorded_windows_total";
pub(crate) const RECORDING_DROPPED: &str = "switchyard_recording_dropped_windows_total";
pub(crate) const RECORDING_ACTIVE: &str = "switchyard_recording_active";
pub(crate) const PREPARE_RUNS: &str = "switchyard_prepare_runs_total";
pub(crate) const SHADOW_WINDOWS: &str = "switchyard_shadow_windows_total";
pub(crate) const SHADOW_WINDOW_TIME: &str = "switchyard_shadow_window_seconds";
pub(crate) const BUILD_INFO: &str = "switchyard_build_info";
pub(crate) const POLICY_INFO: &str = "switchyard_policy_info";
pub(crate) const WORKER_BUSY: &str = "switchyard_worker_busy_seconds_total";
pub(crate) const LATENCY_OVER_SLO: &str = "switchyard_request_latency_slo_ratio";
pub(crate) const VARIANT_QUALITY: &str = "switchyard_variant_quality_ratio";
pub(crate) const PENDING_MAX: &str = "switchyard_pending_max";
pub(crate) const CANARY_RUNS: &str = "switchyard_canary_running";
pub(crate) const LOG_LINES_DROPPED: &str = "switchyard_log_lines_dropped_total";

/// Histograms of durations.
pub(super) const SECONDS: [&str; 4] = [
    REQUEST_LATENCY,
    WINDOW_TIME,
    CACHE_LOAD_TIME,
    SHADOW_WINDOW_TIME,
];
/// Histograms of counts.
pub(super) const COUNTS: [&str; 2] = [WINDOW_REQUESTS, BATCH_SIZE];
/// Histograms of shares of a deadline.
pub(super) const RATIOS: [&str; 1] = [LATENCY_OVER_SLO];

/// The name in a policy's label `name@version`: metrics carry no version, so that no series stays
/// behind for each version that has left.
pub(crate) fn policy_of(label: &str) -> &str {
    label.split_once('@').map_or(label, |(name, _)| name)
}

/// Describes each metric to the current recorder.
pub(super) fn describe() {
    describe_counter!(REQUESTS, Unit::Count, "Accepted requests by how they ended");
    describe_histogram!(REQUEST_LATENCY, Unit::Seconds, "From arrival to answer");
    describe_counter!(
        DEADLINE_MISSED,
        Unit::Count,
        "Answered or dropped past the deadline"
    );
    describe_histogram!(WINDOW_TIME, Unit::Seconds, "One window call of the policy");
    describe_histogram!(WINDOW_REQUESTS, Unit::Count, "Pending requests in a window");
    describe_counter!(
        POLICY_SWAPS,
        Unit::Count,
        "Attempts to switch the policy, by result"
    );
    describe_counter!(
        POLICY_FAULTS,
        Unit::Count,
        "Windows that a policy failed, by kind"
    );
    describe_gauge!(
        FALLBACK_ACTIVE,
        Unit::Count,
        "1 while the native fallback serves: no policy, or a failing one"
    );
    describe_gauge!(WORKER_UP, Unit::Count, "1 while a worker takes batches");
    describe_counter!(
        WORKER_RESTARTS,
        Unit::Count,
        "Restarts of a worker that was lost"
    );
    describe_histogram!(BATCH_SIZE, Unit::Count, "Requests per batch run");
    describe_counter!(
        VARIANT_REQUESTS,
        Unit::Count,
        "Requests answered, by policy, variant, exit, and whether in time"
    );
    describe_histogram!(
        LATENCY_OVER_SLO,
        "From arrival to answer, over the app's deadline"
    );
    describe_gauge!(
        VARIANT_QUALITY,
        "Profiled quality of an exit's answers, 0 to 1; absent if it is unknown"
    );
    describe_gauge!(
        PENDING_MAX,
        Unit::Count,
        "Requests that may wait for a decision"
    );
    describe_gauge!(CANARY_RUNS, Unit::Count, "1 while a canary runs");
    describe_counter!(CACHE_LOADS, Unit::Count, "Model loads per worker");
    describe_histogram!(CACHE_LOAD_TIME, Unit::Seconds, "Time of a model load");
    describe_gauge!(CACHE_RESIDENT, Unit::Count, "Variants resident on a worker");
    describe_gauge!(CACHE_FREE, Unit::Bytes, "Model memory left on a worker");
    describe_gauge!(
        CACHE_BYTES,
        Unit::Bytes,
        "Model memory that variants take on a worker"
    );
    describe_counter!(
        CACHE_HITS,
        Unit::Count,
        "Batches whose variant was resident"
    );
    describe_counter!(
        CACHE_MISSES,
        Unit::Count,
        "Batches that waited for a model load"
    );
    describe_counter!(
        CACHE_EVICTIONS,
        Unit::Count,
        "Variants evicted to make room"
    );
    describe_counter!(CACHE_LOAD_ERRORS, Unit::Count, "Model loads that failed");
    describe_gauge!(
        CACHE_LOAD_RATIO,
        "Time of the last load of a variant over the time policies are told"
    );
    describe_counter!(
        CACHE_RELOADS,
        Unit::Count,
        "Changed weights taken in while serving, by variant and result"
    );
    describe_counter!(
        CONFIG_CHANGES,
        Unit::Count,
        "Changed configurations, by result: switched, unchanged, refused"
    );
    describe_gauge!(QUEUE_DEPTH, Unit::Count, "Requests that wait, by where");
    describe_gauge!(
        LEDGER_IMBALANCE,
        Unit::Count,
        "Requests lost or answered twice: 0, always"
    );
    describe_counter!(
        EVIDENCE_SKIPPED,
        Unit::Count,
        "Requests without evidence, its queue full"
    );
    describe_counter!(
        REFUSED,
        Unit::Count,
        "Requests refused before scheduling, by status"
    );
    describe_counter!(
        INBOX_FULL,
        Unit::Count,
        "Calls refused because the inbox was full"
    );
    describe_counter!(
        PREPARE_RUNS,
        Unit::Count,
        "Runs of the prepare command, by result"
    );
    describe_counter!(
        SHADOW_WINDOWS,
        Unit::Count,
        "Windows that the shadow planned, by result, or missed"
    );
    describe_histogram!(
        SHADOW_WINDOW_TIME,
        Unit::Seconds,
        "One window call of the shadow, on a thread of its own"
    );
    describe_counter!(
        LOG_LINES_DROPPED,
        Unit::Count,
        "Log lines dropped because the reader of stderr was too slow"
    );
    describe_counter!(RECORDED_WINDOWS, Unit::Count, "Windows recorded");
    describe_counter!(
        RECORDING_DROPPED,
        Unit::Count,
        "Windows not recorded because the disk was too slow"
    );
    describe_gauge!(
        RECORDING_ACTIVE,
        Unit::Count,
        "1 while windows are recorded, 0 once the file has its size or failed"
    );
    describe_gauge!(
        DRIFT_RATIO,
        Unit::Count,
        "Observed over profiled latency, of the batches furthest from the profile"
    );
    describe_counter!(
        DRIFT_EPISODES,
        Unit::Count,
        "Times that a worker's latencies of a variant left the profile"
    );
}
