//! How many threads candle uses, on which, and on which cores these run.
//!
//! candle 0.11 parallelises in three ways, found by reading it:
//! - Matrix products ask `gemm` for `get_num_threads()` parts and run them with `par_iter` on
//!   *the rayon pool of the calling thread*. The number is read anew for every product: from
//!   `RAYON_NUM_THREADS`, else the physical cores, for which `/proc/cpuinfo` is parsed each
//!   time: on a 2-core machine a product of 94x65 by 65x32 takes 49 us without the variable and
//!   12 us with it.
//! - Softmax, norms and convolutions use `par_iter`, also on the caller's rayon pool.
//! - Element-wise operations on 65,536 numbers or more use one *process-wide* pool of
//!   `CANDLE_NUM_THREADS` threads behind a lock: workers wait for each other there, its threads
//!   spin, and a panic inside poisons it for good.
//!
//! So a [`Worker`](crate::worker::Worker) runs everything inside a rayon pool of its own, which
//! settles the second way and bounds the first. The rest is settled by two environment
//! variables, which [`configure_candle`] sets: `RAYON_NUM_THREADS` to the largest worker's
//! threads (a smaller worker runs its parts one after the other), and `CANDLE_NUM_THREADS` to 1,
//! which leaves the process-wide pool without threads and without its lock.

/// Read by candle for each matrix product.
const PARTS: &str = "RAYON_NUM_THREADS";
/// Read by candle when its process-wide pool starts.
const SHARED_POOL: &str = "CANDLE_NUM_THREADS";

/// Fits candle to workers of at most `threads_max` threads. Variables that the operator has set
/// are left alone.
///
/// # Safety
/// As [`std::env::set_var`]: no other thread may read or write the environment meanwhile. Call
/// it first thing in `main`, before a runtime or worker starts.
pub unsafe fn configure_candle(threads_max: usize) {
    for (name, value) in [(PARTS, threads_max.max(1)), (SHARED_POOL, 1)] {
        if std::env::var_os(name).is_none() {
            // SAFETY: the caller promises that no other thread touches the environment.
            unsafe { std::env::set_var(name, value.to_string()) };
        }
    }
}

/// What keeps candle from running as [`configure_candle`] would have it, in words; `None` when
/// nothing does.
pub fn candle_misfit(threads_max: usize) -> Option<String> {
    let read = |name| {
        std::env::var(name)
            .ok()
            .and_then(|value| value.parse::<usize>().ok())
    };
    let (parts, shared) = (read(PARTS), read(SHARED_POOL));
    if parts == Some(threads_max.max(1)) && shared == Some(1) {
        return None;
    }
    let shown = |value: Option<usize>| value.map_or("unset".to_owned(), |value| value.to_string());
    Some(format!(
        "{PARTS} is {} and {SHARED_POOL} is {}; workers of up to {threads_max} threads run best \
         with {} and 1",
        shown(parts),
        shown(shared),
        threads_max.max(1)
    ))
}

/// A rayon pool of a worker's own. Its threads run on `cores`, thread `i` on the `i`th alone; on
/// any where there are none.
///
/// # Errors
/// The operating system gives no threads, or not these cores.
pub(crate) fn pool(
    name: &str,
    threads: usize,
    cores: &[usize],
) -> std::io::Result<rayon::ThreadPool> {
    let name = name.to_owned();
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads.max(1))
        .thread_name(move |i| format!("{name}-{i}"))
        .build()
        .map_err(std::io::Error::other)?;
    if !cores.is_empty() {
        let pinned = pool.broadcast(|thread| pin(cores[thread.index() % cores.len()]));
        pinned.into_iter().collect::<std::io::Result<()>>()?;
    }
    Ok(pool)
}

/// The cores that the calling thread may run on, ascending; those of the process where it has
/// pinned nothing. Fewer than the machine's under `taskset` or in a container that was given some.
///
/// # Errors
/// The operating system does not say, or is not Linux.
#[cfg(target_os = "linux")]
pub fn cores() -> std::io::Result<Vec<usize>> {
    let mut set = no_cores();
    // SAFETY: a set of that size is written, and 0 is the calling thread.
    let told = unsafe { libc::sched_getaffinity(0, size_of_val(&set), &mut set) };
    if told != 0 {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: only numbers that a set has room for are asked for.
    let may = |core: &usize| unsafe { libc::CPU_ISSET(*core, &set) };
    Ok((0..CORES_MAX).filter(may).collect())
}

/// The cores that the calling thread may run on.
///
/// # Errors
/// Always: this is known on Linux only.
#[cfg(not(target_os = "linux"))]
pub fn cores() -> std::io::Result<Vec<usize>> {
    Err(unsupported())
}

/// Keeps the calling thread on one core.
#[cfg(target_os = "linux")]
fn pin(core: usize) -> std::io::Result<()> {
    if core >= CORES_MAX {
        return Err(std::io::ErrorKind::InvalidInput.into());
    }
    let mut set = no_cores();
    // SAFETY: a set has room for this number.
    unsafe { libc::CPU_SET(core, &mut set) };
    // SAFETY: a set of that size is read, and 0 is the calling thread.
    match unsafe { libc::sched_setaffinity(0, size_of_val(&set), &set) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// Cores that a set has room for.
#[cfg(target_os = "linux")]
const CORES_MAX: usize = 8 * size_of::<libc::cpu_set_t>();

#[cfg(target_os = "linux")]
fn no_cores() -> libc::cpu_set_t {
    // SAFETY: the type is an array of bits, and all of them 0 are an empty set.
    unsafe { std::mem::zeroed() }
}

#[cfg(not(target_os = "linux"))]
fn pin(_: usize) -> std::io::Result<()> {
    Err(unsupported())
}

#[cfg(not(target_os = "linux"))]
fn unsupported() -> std::io::Error {
    let reason = "threads are kept on cores on Linux only";
    std::io::Error::new(std::io::ErrorKind::Unsupported, reason)
}
