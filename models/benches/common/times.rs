//! Times of forwards.

use std::error::Error;
use std::time::{Duration, Instant};

use candle_core::Tensor;
use rayon::ThreadPool;
use rustix::time::{ClockId, clock_gettime};
use switchyard_models::{Instructions, StagedModel};

pub(crate) type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Milliseconds of one forward: by the clock, and of CPU.
pub(crate) type Times = [f64; 2];

/// The instruction set of `--instructions`.
pub(crate) fn limit_instructions() -> Result<()> {
    let mut arguments = std::env::args().skip_while(|argument| argument != "--instructions");
    if let Some(asked) = arguments.nth(1) {
        let known = Instructions::available();
        let Some(limit) = known.iter().find(|one| one.name() == asked) else {
            let known: Vec<_> = known.iter().map(|one| one.name()).collect();
            return Err(format!("--instructions {asked}: there are {}", known.join(", ")).into());
        };
        Instructions::limit(*limit).map_err(|chosen| format!("{chosen:?} are in use"))?;
    }
    println!("instructions: {}", Instructions::chosen().name());
    Ok(())
}

/// The times of `runs` forwards on the threads of a pool.
pub(crate) fn forwards(
    pool: &ThreadPool,
    model: &dyn StagedModel,
    exit: usize,
    x: &Tensor,
    runs: usize,
) -> candle_core::Result<Vec<Times>> {
    pool.install(|| {
        let mut times = Vec::with_capacity(runs);
        for _ in 0..runs {
            let (start, start_cpu) = (Instant::now(), cpu_ms());
            model.forward(exit, x)?;
            times.push([start.elapsed().as_secs_f64() * 1e3, cpu_ms() - start_cpu]);
        }
        Ok(times)
    })
}

/// CPU time of this process so far.
fn cpu_ms() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32).as_secs_f64() * 1e3
}

/// Median of each column.
pub(crate) fn medians(times: &[Times]) -> Times {
    [0, 1].map(|column| {
        let mut column: Vec<f64> = times.iter().map(|times| times[column]).collect();
        column.sort_by(f64::total_cmp);
        column.get(column.len() / 2).copied().unwrap_or(f64::NAN)
    })
}
