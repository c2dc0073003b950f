//! Times of window calls, by the number of pending requests.

use std::time::{Duration, Instant};

use serde::Serialize;
use switchyard_core::plan::Plan;
use switchyard_core::policy::Policy;
use switchyard_core::window::Window;

/// Pending requests of the windows that are timed.
const TIMED_SIZES: [usize; 3] = [1, 64, 1_024];

/// Most calls per size.
const TIMED_CALLS: usize = 400;

/// Longest time for the calls of one size.
const TIMED_FOR: Duration = Duration::from_millis(250);

/// The time of a window call, on this machine and at this moment.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct WindowCost {
    /// Requests pending.
    pub pending: usize,
    /// Calls that were timed.
    pub calls: usize,
    /// Median, in microseconds.
    pub p50_us: f64,
    /// 99th percentile, in microseconds.
    pub p99_us: f64,
}

/// Times windows of several sizes. Sizes whose windows the policy fails are left out.
pub(crate) fn window_costs(
    policy: &mut dyn Policy,
    window_of: impl Fn(usize) -> Window,
) -> Vec<WindowCost> {
    let costs = TIMED_SIZES.map(|pending| window_cost(policy, window_of(pending)));
    costs.into_iter().flatten().collect()
}

/// Times one window repeatedly; none when the policy fails it.
fn window_cost(policy: &mut dyn Policy, mut window: Window) -> Option<WindowCost> {
    let (mut plan, mut took_us) = (Plan::default(), Vec::with_capacity(TIMED_CALLS));
    let end = Instant::now() + TIMED_FOR;
    while took_us.len() < TIMED_CALLS && Instant::now() < end {
        plan.clear();
        let began = Instant::now();
        let answer = policy.schedule(&window, &mut plan);
        took_us.push(began.elapsed().as_secs_f64() * 1e6);
        answer.ok()?;
        window.id += 1;
    }
    took_us.sort_by(f64::total_cmp);
    let rank = |percent: usize| {
        let rank = (took_us.len() * percent).div_ceil(100).saturating_sub(1);
        took_us.get(rank).copied()
    };
    Some(WindowCost {
        pending: window.len(),
        calls: took_us.len(),
        p50_us: rank(50)?,
        p99_us: rank(99)?,
    })
}
