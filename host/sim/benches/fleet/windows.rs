//! One arrival, its window, the plan, its batch, and the end of another batch, at 10 to 1,000 workers.

use switchyard_core::catalog::Late;

use crate::clock::{Clock, median};
use crate::pool::{Pool, PoolKind};

const WORKERS: [usize; 3] = [10, 100, 1_000];

/// Turns between two looks at the clock.
const TURNS: u32 = 200;

pub(crate) fn print(quick: bool) {
    let rounds = if quick { 100 } else { 1_000 };
    println!("microseconds of processor time for an arrival, its window and the end of a batch");
    println!("late requests | windows |      10 |     100 |   1,000 | 1,000 to 10");
    println!("------------- | ------- | ------- | ------- | ------- | -----------");
    for late in [Late::Serve, Late::Shed, Late::Last] {
        let kind = PoolKind {
            late,
            pinned: false,
        };
        compare(kind, rounds);
    }
    let pinned = PoolKind {
        late: Late::Serve,
        pinned: true,
    };
    compare(pinned, rounds);
}

fn compare(kind: PoolKind, rounds: u32) {
    let mut pools = WORKERS.map(|workers| Pool::new(workers, kind));
    let mut times = WORKERS.map(|_| Vec::new());
    let before = pools[2].windows();
    for _ in 0..rounds {
        for (pool, times) in pools.iter_mut().zip(&mut times) {
            let clock = Clock::start();
            (0..TURNS).for_each(|_| pool.turn());
            times.push(clock.stop().thread_s * 1e6 / f64::from(TURNS));
        }
    }
    let windows = (pools[2].windows() - before) as f64 / f64::from(rounds * TURNS);
    let [few, some, many] = times.map(|times| median(times.into_iter()));
    println!(
        "{:<13} | {windows:>7.2} | {few:>7.2} | {some:>7.2} | {many:>7.2} | {:>11.2}",
        match kind.pinned {
            true => "pinned".to_owned(),
            false => format!("{:?}", kind.late).to_lowercase(),
        },
        many / few,
    );
}
