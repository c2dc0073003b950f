//! Runs a reader on many mutations and prints a line about them.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::time::{Duration, Instant};

use rand::SeedableRng;
use rand_pcg::Pcg64;

use super::allocator::peak_of;
use super::mutate::{Form, mutated};

/// Longest time of one execution, on a busy machine.
const LONGEST: Duration = Duration::from_secs(10);

/// Longest message, without the input, which it may quote twice.
const MESSAGE_MAX: usize = 64 << 10;

/// Memory of candle's errors, which hold a backtrace where `RUST_BACKTRACE` asks for one.
pub(crate) const BACKTRACE_BYTES: u64 = 96 << 20;

/// A reader of outside data, its real files, and the bounds that it keeps.
pub(crate) struct Target {
    /// Name in reports.
    pub(crate) name: &'static str,
    /// Real files.
    pub(crate) seeds: Vec<Vec<u8>>,
    pub(crate) form: Form,
    /// Mutations that are read, unless a time is set.
    pub(crate) executions: u64,
    /// Least share of them that is accepted: with less, the mutations test only the first check.
    pub(crate) accepted_min: f64,
    /// Most memory held for an input: these bytes, and this many times its length.
    pub(crate) memory_max: (u64, u64),
}

thread_local! {
    /// Panics of this thread are expected: the runner reports them.
    static IS_QUIET: Cell<bool> = const { Cell::new(false) };
}

// === impl Target ===

impl Target {
    /// Reads every seed, then mutations. `read` says why it refuses an input, and panics if a value is
    /// not the same once written and read again.
    pub(crate) fn run(self, read: impl Fn(&[u8]) -> Result<(), String>) {
        quiet_panics();
        for (at, seed) in self.seeds.iter().enumerate() {
            if let Err(error) = read(seed) {
                panic!("{}: seed {at}: {error}", self.name);
            }
        }
        let seconds: Option<u64> = number("SWITCHYARD_FUZZ_SECONDS");
        let first = number("SWITCHYARD_FUZZ_SEED").unwrap_or(0_u64) << 32;
        let began = Instant::now();
        let (mut executions, mut accepted) = (0_u64, 0_u64);
        let (mut peak, mut slowest) = (0, Duration::ZERO);
        loop {
            let is_over = match seconds {
                Some(seconds) => began.elapsed().as_secs() >= seconds,
                None => executions >= self.executions,
            };
            if is_over {
                break;
            }
            let mut random = Pcg64::seed_from_u64(first + executions);
            let input = mutated(&mut random, &self.seeds, self.form);
            let (is_accepted, held, took) = self.execute(executions, &input, &read);
            executions += 1;
            accepted += u64::from(is_accepted);
            peak = peak.max(held);
            slowest = slowest.max(took);
        }
        let share = accepted as f64 / executions as f64;
        println!(
            "fuzz: {:<22} {executions:>9} executions {:>5.1} % accepted {:>8.1} MiB at most {:>8.1} ms at most",
            self.name,
            100.0 * share,
            peak as f64 / f64::from(1 << 20),
            slowest.as_secs_f64() * 1e3,
        );
        assert!(
            share >= self.accepted_min,
            "{}: {:.1} % of the inputs are accepted, at least {:.1} % must be",
            self.name,
            100.0 * share,
            100.0 * self.accepted_min
        );
    }

    fn execute(
        &self,
        execution: u64,
        input: &[u8],
        read: impl Fn(&[u8]) -> Result<(), String>,
    ) -> (bool, u64, Duration) {
        let began = Instant::now();
        IS_QUIET.set(true);
        let (result, held) = peak_of(|| catch_unwind(AssertUnwindSafe(|| read(input))));
        IS_QUIET.set(false);
        let took = began.elapsed();
        let fail = |reason: String| -> ! {
            let file = self.keep(execution, input);
            panic!("{}: {}: {reason}", self.name, file.display());
        };
        let result = result.unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            fail(format!("panic: {}", text.unwrap_or_default()))
        });
        if let Err(message) = &result
            && let Some(fault) = fault_of_message(message, input.len())
        {
            fail(format!("{fault}: {message:?}"));
        }
        let (base, per_byte) = self.memory_max;
        let most = base + per_byte * input.len() as u64;
        if held > most {
            fail(format!("{held} bytes are held, at most {most} may be"));
        }
        if took > LONGEST {
            fail(format!("took {took:?}"));
        }
        (result.is_ok(), held, took)
    }

    /// Writes an input at fault.
    fn keep(&self, execution: u64, input: &[u8]) -> PathBuf {
        let name = format!("fuzz-{}-{execution}", self.name.replace(' ', "-"));
        let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::write(&file, input).unwrap();
        file
    }
}

/// A message says something. The command escapes control characters as it prints.
fn fault_of_message(message: &str, input: usize) -> Option<&'static str> {
    match () {
        () if message.trim().len() < 8 => Some("the message says nothing"),
        () if message.len() > MESSAGE_MAX + 2 * input => Some("the message is too long"),
        () => None,
    }
}

fn number<T: std::str::FromStr>(variable: &str) -> Option<T> {
    std::env::var(variable).ok()?.parse().ok()
}

fn quiet_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !IS_QUIET.get() {
                usual(info);
            }
        }));
    });
}

/// The repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Files of the repository.
pub(crate) fn seeds(files: &[&str]) -> Vec<Vec<u8>> {
    let read = |file: &&str| {
        let path = root().join(file);
        std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    files.iter().map(read).collect()
}
