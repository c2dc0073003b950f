//! A folder of tables: generated in parallel, kept if unchanged, consistent at any time.

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

/// A finished table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress<'a> {
    /// Number of finished tables.
    pub done: usize,
    /// Number of wanted tables so far: spacing by accuracy adds loads.
    pub wanted: usize,
    /// The table.
    pub entry: &'a TableEntry,
    /// Whether it was kept from an earlier run.
    pub kept: bool,
}

/// Writes the set of tables for these loads into a folder, which is created if missing.
///
/// A table whose hash matches is kept. The index is written after every table, so that an
/// interrupted run continues.
///
/// # Errors
/// A load out of range, a file that cannot be written, [`PrepareError::Cancelled`], or an error of
/// the generator.
pub fn prepare(
    generator: &Generator,
    loads: &Loads,
    folder: &Path,
    on_progress: &(dyn Fn(Progress<'_>) + Sync),
    cancelled: &AtomicBool,
) -> Result<Set, PrepareError> {
    std::fs::create_dir_all(folder).map_err(|error| io_error(folder, error))?;
    let job = FolderJob {
        generator,
        folder,
        on_progress,
        cancelled,
        kept_tables: Mutex::new(valid_tables(generator, folder)),
        state: Mutex::new(FolderState::default()),
    };
    let mut wanted = loads.begin()?;
    while !wanted.is_empty() {
        job.state().wanted += wanted.len();
        wanted
            .into_par_iter()
            .map(|load_rps| job.make(load_rps))
            .collect::<Result<Vec<()>, _>>()?;
        let made = job.state().entries.clone();
        let made: Vec<_> = made
            .iter()
            .map(|entry| (entry.load_rps, entry.expected_accuracy))
            .collect();
        wanted = loads.between(&made);
    }
    let set = generator.set(job.state().entries.clone());
    write(&folder.join(INDEX_FILE), set.to_json()?.as_bytes())?;
    Ok(set)
}

/// The generation of one folder.
struct FolderJob<'a> {
    generator: &'a Generator,
    folder: &'a Path,
    on_progress: &'a (dyn Fn(Progress<'_>) + Sync),
    cancelled: &'a AtomicBool,
    /// Tables of an earlier run, by hash.
    kept_tables: Mutex<BTreeMap<String, TableEntry>>,
    state: Mutex<FolderState>,
}

/// The finished tables.
#[derive(Default)]
struct FolderState {
    /// By ascending load.
    entries: Vec<TableEntry>,
    wanted: usize,
}

// === impl FolderJob ===

impl FolderJob<'_> {
    fn make(&self, load_rps: f64) -> Result<(), PrepareError> {
        let hash = self.generator.hash(load_rps);
        let earlier = lock(&self.kept_tables).remove(&hash);
        let kept = earlier.is_some();
        let entry = match earlier {
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
            let earlier: Vec<_> = lock(&self.kept_tables).values().cloned().collect();
            let mut tables = [state.entries.as_slice(), &earlier].concat();
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

    fn state(&self) -> MutexGuard<'_, FolderState> {
        lock(&self.state)
    }
}

/// Ignores poisoning: the lists are consistent whenever a thread panics.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The valid tables of an earlier run, by hash. Unreadable tables are generated again.
fn valid_tables(generator: &Generator, folder: &Path) -> BTreeMap<String, TableEntry> {
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

/// Writes a file atomically.
fn write(path: &Path, bytes: &[u8]) -> Result<(), PrepareError> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let written = || -> io::Result<()> {
        let mut file = NamedTempFile::new_in(folder)?;
        file.write_all(bytes)?;
        file.as_file().sync_all()?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            // A temporary file is private; the server reads tables too.
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
