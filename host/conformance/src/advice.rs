//! Advice by failure. The host's error names the fault of one plan; the advice names the likely
//! oversight of the policy's author and the change that mends it.

/// Words of a failure and the advice. The first entry whose words the failure contains counts.
const ADVICE: [(&str, &str); 50] = [
    // === plans ===
    (
        "is not pending",
        "name only ids that this very window lists in `requests.id`, ids and not positions; an id \
         kept from an earlier window may have been placed or ended since, so decide anew on each",
    ),
    (
        "is named more than once",
        "put each request into one dispatch, into `rejects` or into `answers`, and remove it from \
         your own list then",
    ),
    (
        "members lists",
        "list the requests of all dispatches one after the other in `members`; the sizes of the \
         dispatches must add up to its length (the SDK's `BatchBuilder::requests` does that)",
    ),
    (
        "there is no worker",
        "a worker is a position in `catalog.workers`, counted from 0; take ids from the catalog \
         (`window.idle_workers()`), not from arithmetic",
    ),
    (
        "is away",
        "skip workers whose `workers.up` is 0 (the SDK's `window.idle_workers()` does); requests \
         that only they can run stay pending until they are back",
    ),
    (
        "queues at most",
        "a worker takes `queue-max` batches in addition to the running one: count `workers.queued` \
         and your own dispatches (`plan.room(worker)`), and leave the other requests pending, the \
         next window lists them again",
    ),
    (
        "parks at most",
        "count `workers.parked` and the requests of your dispatches without exit up to the worker's \
         `parked-max`, and run the others to an exit",
    ),
    (
        "there is no variant",
        "a variant is a position in `catalog.variants`, over all apps and counted from 0, not a \
         position among one app's variants (`catalog.variants_of(app)` has the ids)",
    ),
    (
        "is of another app",
        "choose the variant by the request's own app (`requests.app[i]` is `variants[v].app`), and \
         batch only requests of one app",
    ),
    (
        "can never hold",
        "the variant's `memory-bytes` are more than the worker's: choose among those that fit \
         (`catalog.can_run(worker, variant)`)",
    ),
    (
        "has no exit",
        "an exit is a position in the variant's own `exits`, counted from 0; the last one is \
         `exits.len() - 1` (`variant.last_exit()`)",
    ),
    (
        "follows stage",
        "stop at the exit's stage: `to-stage` must be the exit's `after-stage` (`run(..).exit(e)` \
         sets both)",
    ),
    (
        "is not a range of",
        "`from-stage` must be below `to-stage`, and `to-stage` at most the variant's `stages`",
    ),
    (
        "runs whole variants, no ranges of stages",
        "on a worker without the capability `stage-ranges` run all stages in one batch \
         (`catalog.worker(worker).can`)",
    ),
    (
        "parks no requests",
        "on a worker without the capability `parking` name the exit that answers",
    ),
    (
        "answers at last exits only",
        "on a worker without the capability `exits` run each variant to its last exit",
    ),
    (
        "nothing to park for",
        "a batch that runs the last stage answers: name the last exit, or stop at an earlier stage \
         to park",
    ),
    (
        ".size: ",
        "cut the batch at the variant's `max-batch`, and dispatch no empty batch (the SDK's \
         `BatchBuilder::requests` does both)",
    ),
    (
        ".min-batch: ",
        "a lane's batches must be 1 <= `min-batch` <= `max-batch` <= the variant's `max-batch`",
    ),
    (
        ".capacity: ",
        "a lane's `capacity` must be at least its `min-batch`, otherwise no batch could start",
    ),
    (
        ".from-stage: ",
        "requests in `progress` can only go on: same worker, same variant, `from-stage` = \
         `stages-run`; all others begin at 0; a policy that parks no requests calls \
         `plan.resume_parked(worker)` first and plans only requests without progress",
    ),
    (
        "evidence is not ready",
        "answer only requests at the positions in `evidence.index`, and ask for evidence in \
         `describe` (`WindowFields::EVIDENCE`); the others stay pending",
    ),
    (
        "has no SneakPeek model",
        "answer from evidence only in apps that have a `sneakpeek`, and run the other requests",
    ),
    (
        "is not queued",
        "revoke only batches that `placed` shows as queued (state 1), each once; a running batch \
         cannot be taken back",
    ),
    (
        "not a distribution",
        "a route's weights are shares that sum to 1: divide each by their sum \
         (`plan.route(app, lanes)` does)",
    ),
    (
        "its variant and exit on it",
        "give each worker, variant and exit at most one lane in a route, with the sum of its weights",
    ),
    (
        "can be valid",
        "name each pending request, queued batch, app and lane at most once: no list can be longer \
         than the entries of the window or of the catalog that it names",
    ),
    ("routed twice", "give each app at most one route per plan"),
    (
        "there is no app",
        "an app is a position in `catalog.apps`, counted from 0",
    ),
    // === faults ===
    (
        "overrun: configure",
        "`configure` did not return: bound its loops by the lengths in the catalog, and make large \
         tables offline, as artifacts",
    ),
    (
        "overrun: ",
        "it did not answer within the budget: bound every loop by the lengths in the window, leave \
         the rest pending, and bound searches by a count of nodes (there is no clock)",
    ),
    (
        "memory: ",
        "it asks for more memory than its limit: do not keep windows, reuse buffers from window to \
         window, and avoid tables that grow with the square of the requests",
    ),
    (
        "stack: ",
        "turn the recursion into a loop with a list of the work left",
    ),
    (
        "broke the contract",
        "it returned a value that the WIT does not allow: build with bindings generated from this \
         host's `wit/` folder, by the SDK or by `switchyard policy build`",
    ),
    (
        "trap: ",
        "it panicked: an index past the end, an `unwrap` of nothing, or an overflow. Use `get`, \
         `first` and `saturating_sub`, and run this window in a unit test to see the line \
         (`testing::WindowBuilder`)",
    ),
    (
        "artifact",
        "files are read from the folder NAME/ next to NAME.wasm, during `configure` only: keep \
         their contents",
    ),
    (
        "configure: settings",
        "correct the named setting in NAME.toml next to the component (or in the pool's \
         `settings`), or let `configure` accept it; each setting needs a default, because `{}` \
         gives none",
    ),
    (
        "failed: configure",
        "`configure` refuses this catalog or these settings: rebuild everything that depends on the \
         catalog on every call, and refuse only catalogs with which the policy cannot work at all",
    ),
    (
        "failed: restore",
        "`restore` must accept the bytes that `save` of the same version wrote: write a version byte \
         first, and test the two together",
    ),
    (
        "failed: schedule",
        "an error is a fault and costs the window: answer with a plan, and leave requests pending \
         that you cannot decide (an empty plan is valid)",
    ),
    (
        "starved: ",
        "a request was left to wait although a worker was idle: ask for windows when a worker is \
         idle (`Events::WORKER_IDLE`) and when a request arrives, and run or reject late requests \
         too",
    ),
    (
        "rejecting: ",
        "reject only requests that would be late or that no worker has room for; run the others on \
         an idle worker (`window.idle_workers()`)",
    ),
    (
        "without an end",
        "some requests were never planned: run, answer or reject each in the end, also those whose \
         deadline has passed",
    ),
    (
        "two instances",
        "a plan must follow from catalog, settings, windows and seed: no addresses, no iteration \
         order of a hash map, no uninitialised memory",
    ),
    (
        "with the changed workers than with all",
        "keep a row for each worker, put those of a window in at `workers.index`, and read kept times \
         before `now` as `now` (the SDK does it); decide from the kept rows",
    ),
    (
        "another plan after",
        "`save` omits state that `schedule` decides by: write all of it, or decide from the window \
         alone",
    ),
    (
        "log lines",
        "log in `configure`, or when something changes, not for each request; use a reason \
         (`BatchBuilder::because`) to explain a decision",
    ),
    // === components ===
    (
        "it imports",
        "remove the code that asks for it, often a library: a policy gets its inputs from the \
         window. Rust: build for wasm32-unknown-unknown (`switchyard policy build`)",
    ),
    (
        "does not export",
        "export the policy: `export_policy!(Type)` in Rust, elsewhere the world `policy` of `wit/`",
    ),
    (
        "speaks contract",
        "generate the bindings from this host's `wit/` folder and build again",
    ),
];

/// The advice for a failure: the text of a [`Finding`](crate::Finding), of a
/// [`LoadError`](switchyard_policy::LoadError), or of a fault in a server's log.
pub fn advice(failure: &str) -> Option<&'static str> {
    let found = ADVICE.iter().find(|(words, _)| failure.contains(words));
    found.map(|(_, advice)| *advice)
}

#[cfg(test)]
mod tests {
    use switchyard_core::ids::{BatchId, RequestId};
    use switchyard_core::plan::PlanError;
    use switchyard_core::policy::{FaultKind, PolicyFault};

    use super::*;

    /// Every kind of refusal and fault.
    fn failures() -> Vec<String> {
        let refusals = [
            PlanError::NotPending {
                entry: "members[0]".to_owned(),
                request: RequestId(1),
            },
            PlanError::Doubled {
                request: RequestId(1),
            },
            PlanError::MemberCount {
                sizes: 1,
                members: 2,
            },
            PlanError::NotQueued {
                index: 0,
                batch: BatchId(1),
            },
            PlanError::TooLong {
                list: "members".to_owned(),
                len: 100,
                most: 1,
            },
        ];
        let kinds = [
            (FaultKind::Trap, "schedule trapped: unreachable"),
            (FaultKind::Overrun, "schedule was cut at its budget of 5ms"),
            (FaultKind::Memory, "schedule asked for 9 bytes of memory"),
            (FaultKind::Stack, "schedule overflowed its stack"),
            (FaultKind::Failed, "schedule: I do not know"),
            (FaultKind::Starved, "request 1 waits past its deadline"),
            (FaultKind::Rejecting, "all requests of 101 windows"),
        ];
        let faults = kinds.map(|(kind, words)| PolicyFault::new(kind, words).to_string());
        let refusals = refusals.map(|error| error.to_string());
        refusals.into_iter().chain(faults).collect()
    }

    #[test]
    fn every_failure_has_its_own_advice() {
        let mut given: Vec<&str> = failures()
            .iter()
            .map(|failure| advice(failure).unwrap_or_else(|| panic!("no advice: {failure}")))
            .collect();
        given.sort_unstable();
        let all = given.len();
        given.dedup();
        assert_eq!(given.len(), all);
    }

    #[test]
    fn no_advice_is_hidden_by_one_before_it() {
        for (at, (words, own)) in ADVICE.iter().enumerate() {
            let found = advice(words);
            assert_eq!(found, Some(*own), "entry {at}: {words}");
        }
        assert_eq!(advice("all is well"), None);
    }
}
