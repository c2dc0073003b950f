//! Folders of tables: consistent, kept, continued.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use ramsis_prepare::tables::{INDEX_FILE, Set, Table};
use ramsis_prepare::{Generator, Grid, Loads, Model, PrepareError, Spec, prepare};

fn spec() -> Spec {
    let models = [
        ("small", 0.58, [22, 39, 57, 69]),
        ("middle", 0.77, [54, 81, 141, 149]),
    ]
    .map(|(name, accuracy, ms)| Model {
        name: name.to_owned(),
        accuracy,
        latency_us: ms.map(|ms| ms * 1_000).to_vec(),
    });
    Spec {
        grid: Grid::Fixed(10),
        ..Spec::new(models.to_vec(), 150_000, 4)
    }
}

/// Generates a set; returns it with the loads that were kept.
fn made(spec: Spec, loads: &Loads, folder: &Path) -> (Set, Vec<f64>) {
    let kept = Mutex::new(Vec::new());
    let generator = Generator::new(spec).unwrap();
    let set = prepare(
        &generator,
        loads,
        folder,
        &|progress| {
            assert!(progress.done <= progress.wanted);
            if progress.kept {
                kept.lock().unwrap().push(progress.entry.load_rps);
            }
        },
        &AtomicBool::new(false),
    );
    let mut kept = kept.into_inner().unwrap();
    kept.sort_by(f64::total_cmp);
    (set.unwrap(), kept)
}

fn loads(set: &Set) -> Vec<f64> {
    set.tables.iter().map(|entry| entry.load_rps).collect()
}

#[test]
fn a_set_is_read_by_the_policys_reader() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("new/tables");
    let each = Loads::Each(vec![80.0, 40.0, 100.0 / 3.0]);
    let (set, kept) = made(spec(), &each, &out);
    assert!(kept.is_empty());
    let index = fs::read_to_string(out.join(INDEX_FILE)).unwrap();
    assert_eq!(Set::parse(&index).unwrap(), set);
    assert_eq!(loads(&set), [33.333_333, 40.0, 80.0]);
    for entry in &set.tables {
        let bytes = fs::read(out.join(&entry.file)).unwrap();
        let table = Table::parse(&entry.file, &bytes, &set).unwrap();
        // With much slack the slower variant answers one request.
        assert_eq!(
            set.variants[usize::from(table.action(1, 150_000).variant)],
            "middle"
        );
        assert_eq!(table.action(4, 0).batch, 4);
        assert_eq!(table.action(9, 0).batch, 4);
        assert_eq!(entry.states, 4 * 11 + 2);
    }
}

#[test]
fn valid_tables_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path();
    let (first, _) = made(spec(), &Loads::Each(vec![40.0, 60.0, 80.0]), out);
    fs::write(out.join("load-60.tbl"), "half of it").unwrap();
    let (again, kept) = made(spec(), &Loads::Each(vec![40.0, 60.0, 80.0, 90.0]), out);
    assert_eq!(kept, [40.0, 80.0]);
    assert_eq!(again.tables[0], first.tables[0]);
    let fewer = Loads::Each(vec![80.0]);
    assert_eq!(loads(&made(spec(), &fewer, out).0), [80.0]);
    let other = Spec {
        workers: 5,
        ..spec()
    };
    assert!(made(other, &fewer, out).1.is_empty());
    fs::write(out.join(INDEX_FILE), "{").unwrap();
    assert!(made(spec(), &fewer, out).1.is_empty());
}

#[test]
fn an_interrupted_folder_is_continued() {
    let folder = tempfile::tempdir().unwrap();
    let generator = Generator::new(spec()).unwrap();
    let loads = Loads::Each((1..=20).map(|i| 5.0 * f64::from(i)).collect());
    let cancelled = AtomicBool::new(false);
    let stopped = prepare(
        &generator,
        &loads,
        folder.path(),
        &|_| cancelled.store(true, std::sync::atomic::Ordering::Relaxed),
        &cancelled,
    );
    assert!(matches!(stopped, Err(PrepareError::Cancelled)));
    let (set, kept) = made(spec(), &loads, folder.path());
    assert!(!kept.is_empty() && kept.len() < 20, "{kept:?}");
    assert_eq!(set.tables.len(), 20);
}

#[test]
fn neighbours_are_spaced_by_accuracy() {
    let folder = tempfile::tempdir().unwrap();
    let (set, _) = made(spec(), &Loads::Spaced(20.0, 120.0), folder.path());
    assert!(set.tables.len() > 3);
    assert_eq!(
        (loads(&set)[0], set.tables.last().unwrap().load_rps),
        (20.0, 120.0)
    );
    for pair in set.tables.windows(2) {
        let apart = (pair[0].expected_accuracy - pair[1].expected_accuracy).abs();
        assert!(apart < 0.01 || pair[1].load_rps - pair[0].load_rps <= 1.0);
    }
}

#[test]
fn an_impossible_folder_is_named() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let generator = Generator::new(spec()).unwrap();
    let never = AtomicBool::new(false);
    let each = Loads::Each(vec![40.0]);
    let error = prepare(&generator, &each, file.path(), &|_| (), &never).unwrap_err();
    assert!(error.to_string().starts_with(file.path().to_str().unwrap()));
}
