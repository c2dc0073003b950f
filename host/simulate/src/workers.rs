//! Copies of workers, and their bounds.

use switchyard_core::catalog::WorkerSpec;
use switchyard_server::config::{PoolConfig, WorkerConfig};

/// Sets the bounds of queues and parking to those of the pool's configured workers, round-robin.
pub(crate) fn bound(workers: &mut [WorkerSpec], pool: &PoolConfig, configured: &[WorkerConfig]) {
    let of_pool = |name: &String| configured.iter().find(|worker| worker.name == *name);
    let known: Vec<&WorkerConfig> = pool.workers.iter().filter_map(of_pool).collect();
    for (worker, of) in workers.iter_mut().zip(known.iter().cycle()) {
        worker.queue_max = of.queue_max;
        worker.parked_max = of.parked_max;
    }
}

/// `count` workers: copies of the given ones round-robin, each with its own name.
pub(crate) fn repeated(workers: &[WorkerSpec], count: usize) -> Vec<WorkerSpec> {
    let copies = workers.iter().cycle().take(count).enumerate();
    copies
        .map(|(i, worker)| WorkerSpec {
            name: match i / workers.len() {
                0 => worker.name.clone(),
                copy => format!("{}-{}", worker.name, copy + 1),
            },
            ..worker.clone()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::path::Path;

    use switchyard_server::config::Config;

    use super::*;

    fn worker(name: &str) -> WorkerSpec {
        WorkerSpec {
            name: name.to_owned(),
            kind: switchyard_core::ids::KindId(0),
            memory_bytes: 1,
            queue_max: 1,
            parked_max: 0,
            can: switchyard_core::catalog::Capabilities::ALL,
            transfer: switchyard_core::time::Micros::ZERO,
            outstanding: 1,
        }
    }

    #[test]
    fn workers_get_the_configured_bounds_round_robin() {
        let text = r#"
            [[app]]
            name = "a"
            [[worker]]
            name = "one"
            queue_max = 3
            [[worker]]
            name = "two"
            parked_max = 7
            [[pool]]
            name = "main"
            apps = ["a"]
            workers = ["two", "one"]
            policy = "fcfs"
        "#;
        let config = Config::parse(text, Path::new("test-bed.toml"), Path::new("")).unwrap();
        let mut workers = repeated(&[worker("a"), worker("b")], 3);
        bound(&mut workers, &config.pools[0], &config.workers);
        let bounds = workers.iter().map(|w| (w.queue_max, w.parked_max));
        assert_eq!(bounds.collect::<Vec<_>>(), [(8, 7), (3, 64), (8, 7)]);
    }

    #[test]
    fn copies_of_workers_have_their_own_names() {
        let many = repeated(&[worker("a"), worker("b")], 5);
        let names: Vec<_> = many.iter().map(|worker| worker.name.as_str()).collect();
        assert_eq!(names, ["a", "b", "a-2", "b-2", "a-3"]);
    }
}
