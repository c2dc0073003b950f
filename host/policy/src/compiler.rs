//! Compiles components away from the threads that serve: on few threads of low priority, one
//! component at a time, and for a limited time.
//!
//! wasmtime cannot be interrupted while it compiles. A compilation that is given up runs on, alone,
//! and its result is dropped; the next one waits for it.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use wasmtime::Engine;
use wasmtime::component::Component;

/// How often a load that waits for its compilation looks whether it is to stop.
const COMPILE_LOOK: Duration = Duration::from_millis(20);

/// Priority of the compiling threads: serving goes first.
#[cfg(target_os = "linux")]
const NICE: i32 = 10;

/// Gives up loads under way and those to come. Clones give up the same loads.
#[derive(Clone, Debug, Default)]
pub struct LoadStop(Arc<AtomicBool>);

/// Compiles for one engine.
pub(crate) struct Compiler {
    threads: usize,
    time_max: Duration,
    /// Held while a component is compiled, also by a compilation that was given up.
    is_busy: Arc<Mutex<bool>>,
}

/// Why a component was not compiled.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CompileError {
    #[error("{0:#}")]
    Invalid(wasmtime::Error),
    #[error("not compiled within {} s", .0.as_secs_f64())]
    TooLong(Duration),
    #[error("another component has been compiled for {} s", .0.as_secs_f64())]
    Busy(Duration),
    #[error("stopped")]
    Stopped,
    #[error("no thread to compile on: {0}")]
    Thread(io::Error),
}

/// The right to compile, given back when it is dropped.
struct Turn(Arc<Mutex<bool>>);

// === impl LoadStop ===

impl LoadStop {
    /// Gives up the loads. Those that wait for a compilation end at once with an error.
    pub fn stop(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

// === impl Compiler ===

impl Compiler {
    pub(crate) fn new(threads: usize, time_max: Duration) -> Self {
        Self {
            threads: threads.max(1),
            time_max,
            is_busy: Arc::default(),
        }
    }

    pub(crate) fn compile(
        &self,
        engine: &Engine,
        bytes: &Arc<[u8]>,
        stop: &LoadStop,
    ) -> Result<Component, CompileError> {
        let (engine, bytes) = (engine.clone(), Arc::clone(bytes));
        self.run(stop, move || Component::from_binary(&engine, &bytes))?
            .map_err(CompileError::Invalid)
    }

    /// Runs work on the compiling threads.
    fn run<T: Send + 'static>(
        &self,
        stop: &LoadStop,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, CompileError> {
        let turn = self.take_turn(stop)?;
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(self.threads)
            .thread_name(|nth| format!("policy-compile-{nth}"))
            .start_handler(|_| lower_priority())
            .build()
            .map_err(|error| CompileError::Thread(io::Error::other(error)))?;
        let (send, done) = sync_channel(1);
        // Not joined: it may outlive this call, and the process need not wait for it.
        thread::Builder::new()
            .name("policy-compile".to_owned())
            .spawn(move || {
                let result = pool.install(work);
                drop(turn);
                // An error means that the load was given up.
                let _ = send.send(result);
            })
            .map_err(CompileError::Thread)?;
        let give_up = Instant::now() + self.time_max;
        loop {
            let left = give_up.saturating_duration_since(Instant::now());
            match done.recv_timeout(COMPILE_LOOK.min(left)) {
                Ok(result) => return Ok(result),
                Err(_) if stop.is_stopped() => return Err(CompileError::Stopped),
                Err(RecvTimeoutError::Timeout) if Instant::now() < give_up => {}
                Err(RecvTimeoutError::Timeout) => {
                    return Err(CompileError::TooLong(self.time_max));
                }
                Err(RecvTimeoutError::Disconnected) => {
                    let panicked = io::Error::other("the compiler panicked");
                    return Err(CompileError::Thread(panicked));
                }
            }
        }
    }

    fn take_turn(&self, stop: &LoadStop) -> Result<Turn, CompileError> {
        let give_up = Instant::now() + self.time_max;
        loop {
            if stop.is_stopped() {
                return Err(CompileError::Stopped);
            }
            if !std::mem::replace(&mut *lock(&self.is_busy), true) {
                return Ok(Turn(Arc::clone(&self.is_busy)));
            }
            if Instant::now() >= give_up {
                return Err(CompileError::Busy(self.time_max));
            }
            thread::sleep(COMPILE_LOOK);
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        *lock(&self.0) = false;
    }
}

/// A flag is whole at every point where a panic could strike.
fn lock(flag: &Mutex<bool>) -> std::sync::MutexGuard<'_, bool> {
    flag.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lowers the priority of the calling thread. A hint: the work runs as well without it.
fn lower_priority() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::setpriority_process(None, NICE);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::sync::mpsc::{Sender, channel};

    use super::*;

    const SHORT: Duration = Duration::from_millis(100);
    const LONG: Duration = Duration::from_secs(60);

    /// Work that ends when the sender is dropped.
    fn held() -> (Sender<()>, impl FnOnce() + Send + 'static) {
        let (hold, held) = channel::<()>();
        (hold, move || {
            let _ = held.recv();
        })
    }

    #[test]
    fn a_compilation_past_its_time_is_given_up_and_the_next_one_waits_for_it() {
        let compiler = Compiler::new(1, SHORT);
        let (hold, work) = held();
        let stop = LoadStop::default();
        let error = compiler.run(&stop, work).unwrap_err().to_string();
        assert_eq!(error, "not compiled within 0.1 s");
        let error = compiler.run(&stop, || ()).unwrap_err().to_string();
        assert_eq!(error, "another component has been compiled for 0.1 s");
        drop(hold);
        let patient = Compiler {
            time_max: LONG,
            ..compiler
        };
        patient.run(&stop, || ()).unwrap();
    }

    #[test]
    fn a_stop_does_not_wait_for_a_compilation() {
        let compiler = Compiler::new(1, LONG);
        let (_hold, work) = held();
        let stop = LoadStop::default();
        thread::scope(|scope| {
            let compiling = scope.spawn(|| compiler.run(&stop, work));
            thread::sleep(SHORT);
            let began = Instant::now();
            stop.stop();
            let result = compiling.join().unwrap();
            assert!(matches!(result, Err(CompileError::Stopped)));
            assert!(began.elapsed() < Duration::from_secs(20));
        });
        let later = compiler.run(&stop, || ());
        assert!(matches!(later, Err(CompileError::Stopped)));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn compiling_threads_have_low_priority_and_others_do_not() {
        let priority = || rustix::process::getpriority_process(None).unwrap();
        let before = priority();
        let compiler = Compiler::new(3, LONG);
        let seen = compiler.run(&LoadStop::default(), move || {
            (rayon::current_num_threads(), priority())
        });
        assert_eq!(seen.unwrap(), (3, NICE.max(before)));
        assert_eq!(priority(), before);
    }
}
