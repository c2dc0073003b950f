//! The logic for all layouts: earliest deadline first, on the worker that is free first, with the
//! most accurate choice that meets the deadline. The benchmark also compiles this file natively, to
//! measure the logic without the crossing.

/// The fields of a window that the logic reads, in any layout.
pub(crate) trait WindowView {
    /// Time of the window, in microseconds.
    fn now(&self) -> u64;
    /// Number of requests.
    fn requests(&self) -> usize;
    /// A request's id.
    fn id(&self, request: usize) -> u64;
    /// A request's deadline, in microseconds.
    fn deadline(&self, request: usize) -> u64;
    /// A request's priority: among equal deadlines the smaller value goes first.
    fn priority(&self, request: usize) -> u32;
    /// Number of workers.
    fn workers(&self) -> usize;
    /// The time at which a worker is free, in microseconds.
    fn busy_until(&self, worker: usize) -> u64;
}

/// Calls `dispatch` with request, worker and choice, once per request. `latencies` are in
/// microseconds, the most accurate choice first.
pub(crate) fn decide(
    view: &impl WindowView,
    latencies: &[u64],
    mut dispatch: impl FnMut(u64, u32, u32),
) {
    let mut order: Vec<u32> = (0..view.requests() as u32).collect();
    order.sort_by_key(|&r| (view.deadline(r as usize), view.priority(r as usize)));
    let now = view.now();
    let mut free_at: Vec<u64> = (0..view.workers())
        .map(|worker| view.busy_until(worker).max(now))
        .collect();
    for request in order {
        let request = request as usize;
        let Some((worker, begin)) = free_at
            .iter()
            .copied()
            .enumerate()
            .min_by_key(|(_, at)| *at)
        else {
            return;
        };
        let slack = view.deadline(request).saturating_sub(begin);
        let choice = latencies
            .iter()
            .position(|latency| *latency <= slack)
            .unwrap_or(latencies.len() - 1);
        free_at[worker] = begin + latencies[choice];
        dispatch(view.id(request), worker as u32, choice as u32);
    }
}
