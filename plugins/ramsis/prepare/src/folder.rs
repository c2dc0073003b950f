//! A folder of tables: made in parallel, kept where nothing changed, whole at any moment.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, MutexGuard, PoisonError};

use ramsis_tables::{INDEX_FILE, Set, Table, TableEntry};
use rayon::iter::{IntoParallelIterator, ParallelIterator};
use tempfile::NamedTempFile;

use crate::error::PrepareError;
use crate::generator::Generator;
use crate::loads::Loads;

/// A table that is there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress<'a> {
    /// Tables that are there.
    pub done: usize,
    /// Tables that are wanted, as far as known: spacing by accuracy finds out as it goes.
    pub wanted: usize,
    /// The table.
    pub entry: &'a TableEntry,
    /// Whether it was there before.
    pub kept: bool,
}

/// Makes the set of tables for these loads in a folder, which is made where it is missing.
///
/// A table whose hash matches is not made again. The index is written anew after every table, so
/// that what was interrupted goes on where it was.
///
/// # Errors
/// A load is no positive number, a file cannot be written, it was cancelled, or the library is
/// at fault.
pub fn prepare(
    generator: &Generator,
    loads: &Loads,
    folder: &Path,
    on_progress: &(dyn Fn(Progress<'_>) + Sync),
    cancelled: &AtomicBool,
) -> Result<Set, PrepareError> {
    std::fs::create_dir_all(folder).map_err(|error| io_error(folder, error))?;
    let work = Work {
        generator,
        folder,
        on_progress,
        cancelled,
        there: Mutex::new(there(generator, folder)),
        state: Mutex::new(State::default()),
    };
    let mut wanted = loads.begin()?;
    while !wanted.is_empty() {
        work.state().wanted += wanted.len();
        wanted
            .into_par_iter()
            .map(|load_rps| work.make(load_rps))
            .collect::<Result<Vec<()>, _>>()?;
        let made = work.state().entries.clone();
        let made: Vec<_> = made
            .iter()
            .map(|entry| (entry.load_rps, entry.expected_accuracy))
            .collect();
        wanted = loads.between(&made);
    }
    let set = generator.set(work.state().entries.clone());
    write(&folder.join(INDEX_FILE), set.to_json()?.as_bytes())?;
    Ok(set)
}

struct Work<'a> {
    generator: &'a Generator,
    folder: &'a Path,
    on_progress: &'a (dyn Fn(Progress<'_>) + Sync),
    cancelled: &'a AtomicBool,
    /// Tables that an earlier run left, by hash.
    there: Mutex<BTreeMap<String, TableEntry>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// By ascending load.
    entries: Vec<TableEntry>,
    wanted: usize,
}

// === impl Work ===

impl Work<'_> {
    fn make(&self, load_rps: f64) -> Result<(), PrepareError> {
        let hash = self.generator.hash(load_rps);
        let there = lock(&self.there).remove(&hash);
        let kept = there.is_some();
        let entry = match there {
            Some(entry) => entry,
            None => {
                let made = self.generator.table_unless(load_rps, self.cancelled)?;
                let set = self.generator.set(vec![made.entry.clone()]);
                let bytes = made.table(&set)?.to_bytes(&made.entry, &set);
                write(&self.folder.join(&made.entry.file), &bytes)?;
                made.entry
            }
        };
        let mut state = self.state();
        let at = state
            .entries
            .partition_point(|other| other.load_rps < load_rps);
        state.entries.insert(at, entry.clone());
        if !kept {
            let there: Vec<_> = lock(&self.there).values().cloned().collect();
            let mut tables = [state.entries.as_slice(), &there].concat();
            tables.sort_by(|a, b| a.load_rps.total_cmp(&b.load_rps));
            let json = self.generator.set(tables).to_json()?;
            write(&self.folder.join(INDEX_FILE), json.as_bytes())?;
        }
        (self.on_progress)(Progress {
            done: state.entries.len(),
            wanted: state.wanted,
            entry: &entry,
            kept,
        });
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

/// A panic elsewhere leaves the lists as they were: nothing is half done under a lock.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The tables of an earlier run that are still right. What cannot be read is made again.
fn there(generator: &Generator, folder: &Path) -> BTreeMap<String, TableEntry> {
    let read = std::fs::read_to_string(folder.join(INDEX_FILE));
    let Some(set) = read.ok().and_then(|text| Set::parse(&text).ok()) else {
        return BTreeMap::new();
    };
    let right = |entry: &&TableEntry| {
        entry.hash == generator.hash(entry.load_rps)
            && std::fs::read(folder.join(&entry.file))
                .is_ok_and(|bytes| Table::parse(&entry.file, &bytes, &set).is_ok())
    };
    let tables = set.tables.iter().filter(right);
    tables
        .map(|entry| (entry.hash.clone(), entry.clone()))
        .collect()
}

/// Writes a file so that nobody ever sees half of it.
fn write(path: &Path, bytes: &[u8]) -> Result<(), PrepareError> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let written = || -> io::Result<()> {
        let mut file = NamedTempFile::new_in(folder)?;
        file.write_all(bytes)?;
        file.as_file().sync_all()?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            // A temporary file is its owner's alone; tables are for the server too.
            file.as_file()
                .set_permissions(std::fs::Permissions::from_mode(0o644))?;
        }
        file.persist(path)?;
        Ok(())
    };
    written().map_err(|error| io_error(path, error))
}

fn io_error(path: &Path, error: io::Error) -> PrepareError {
    PrepareError::Io {
        path: path.to_owned(),
        error,
    }
}
