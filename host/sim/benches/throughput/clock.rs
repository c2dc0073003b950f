//! The time of this thread, on the wall and on a processor: on a machine that others use as well
//! the two differ, and only the second says what one core can do.

use std::time::{Duration, Instant};

/// Both clocks at once.
#[derive(Clone, Copy)]
pub(crate) struct Clock {
    wall: Instant,
    thread: Duration,
}

/// How long something took, in seconds.
#[derive(Clone, Copy)]
pub(crate) struct Took {
    pub(crate) wall_s: f64,
    pub(crate) thread_s: f64,
}

// === impl Clock ===

impl Clock {
    pub(crate) fn start() -> Self {
        Self {
            wall: Instant::now(),
            thread: thread_time(),
        }
    }

    pub(crate) fn stop(self) -> Took {
        Took {
            wall_s: self.wall.elapsed().as_secs_f64(),
            thread_s: (thread_time() - self.thread).as_secs_f64(),
        }
    }
}

/// The middle one.
pub(crate) fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn thread_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap()
}
