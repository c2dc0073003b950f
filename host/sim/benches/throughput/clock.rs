//! Wall time and processor time of this thread. They differ on a shared machine; processor time is the
//! capacity of one core.

use std::time::{Duration, Instant};

/// Both clocks at once.
#[derive(Clone, Copy)]
pub(crate) struct Clock {
    wall: Instant,
    thread: Duration,
}

/// Elapsed time in seconds.
#[derive(Clone, Copy)]
pub(crate) struct Elapsed {
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

    pub(crate) fn stop(self) -> Elapsed {
        Elapsed {
            wall_s: self.wall.elapsed().as_secs_f64(),
            thread_s: (thread_time() - self.thread).as_secs_f64(),
        }
    }
}

/// The middle value.
pub(crate) fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn thread_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap()
}
