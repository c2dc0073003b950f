//! The rayon pool of a worker: the threads that compute its batches.

use std::io;

use switchyard_threads::pin;

/// A rayon pool with threads called `NAME-I`. Thread I runs on the I-th of `cores` alone; if
/// `cores` is empty, on any core of the process.
///
/// # Errors
/// The operating system refuses the threads or these cores.
pub(crate) fn pool(name: &str, threads: usize, cores: &[usize]) -> io::Result<rayon::ThreadPool> {
    let name = name.to_owned();
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads.max(1))
        .thread_name(move |i| format!("{name}-{i}"))
        .build()
        .map_err(io::Error::other)?;
    if !cores.is_empty() {
        let pinned = pool.broadcast(|thread| pin(cores[thread.index() % cores.len()]));
        pinned.into_iter().collect::<io::Result<()>>()?;
    }
    Ok(pool)
}
