//! Shared by all tests: a quickly trained zoo, a profile of this machine, components, inputs.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde_json::json;
use switchyard_server::assembly::{Measured, PoolPlan};
use switchyard_training::data::{Generator, Mix};
use switchyard_training::heart::{Heart, SAMPLES, workload_mix};

use super::binary::switchyard;
use super::test_bed::Setup;

/// The app that the zoo holds.
pub(crate) const APP: &str = "heart";

/// Folders that all tests read.
pub(crate) struct Fixture {
    pub(crate) zoo: PathBuf,
    pub(crate) profiles: PathBuf,
}

/// The folders, made by the first caller.
pub(crate) fn fixture() -> &'static Fixture {
    static FIXTURE: OnceLock<Fixture> = OnceLock::new();
    FIXTURE.get_or_init(make)
}

/// Kept between runs for as long as the code that makes models stays the same.
fn make() -> Fixture {
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("live");
    fs::create_dir_all(&root).unwrap();
    // Another process may be at it; the lock goes with the file handle.
    let lock = File::create(root.join("lock")).unwrap();
    lock.lock().unwrap();
    let fixture = Fixture {
        zoo: root.join("zoo"),
        profiles: root.join("profiles"),
    };
    let stamp = root.join("made-by");
    let sources = ["models/src", "models/kernels/src", "models/training/src"];
    let wanted = sources.map(|folder| format!("{:x}", fingerprint(&repository().join(folder))));
    let wanted = wanted.join(" ");
    if fs::read_to_string(&stamp).is_ok_and(|made_by| made_by == wanted) {
        return fixture;
    }
    for folder in [&fixture.zoo, &fixture.profiles] {
        if folder.exists() {
            fs::remove_dir_all(folder).unwrap();
        }
    }
    train(&fixture.zoo.join(APP));
    measure(&fixture);
    fs::write(&stamp, wanted).unwrap();
    fixture
}

/// Changes when a file below `folder` does.
fn fingerprint(folder: &Path) -> u64 {
    let mut paths: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    let mut hasher = DefaultHasher::new();
    for path in paths {
        if path.is_dir() {
            fingerprint(&path).hash(&mut hasher);
        } else {
            fs::read(&path).unwrap().hash(&mut hasher);
        }
    }
    hasher.finish()
}

/// A small variant, one of several exits, and evidence; poor ones, in seconds.
fn train(out: &Path) {
    let mut command = switchyard();
    // As the models' documentation recommends for training.
    command.env("CANDLE_NUM_THREADS", "1");
    command
        .args(["train", "heart", "--quick", "--out"])
        .arg(out);
    for part in ["cnn-small", "resnet", "sneakpeek"] {
        command.args(["--variant", part]);
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

/// Measures the profile once, which each server would otherwise measure at its start.
fn measure(fixture: &Fixture) {
    let config = Setup::new("measuring").config_in(fixture, Path::new("."));
    let plans = PoolPlan::all(&config).unwrap();
    Measured::obtain(&config, &plans).unwrap();
}

/// The bytes of a shipped policy.
pub(crate) fn policy(name: &str) -> Vec<u8> {
    component("SWITCHYARD_POLICIES", "target/policies", name)
}

/// The bytes of a component that misbehaves.
pub(crate) fn guest(name: &str) -> Vec<u8> {
    component("SWITCHYARD_GUESTS", "target/policies-test", name)
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn component(variable: &str, default: &str, name: &str) -> Vec<u8> {
    let folder =
        std::env::var_os(variable).map_or_else(|| repository().join(default), PathBuf::from);
    let file = folder.join(format!("{name}.wasm"));
    fs::read(&file).unwrap_or_else(|error| {
        panic!(
            "{}: {error}: run `cargo xtask plugins --with-guests` first",
            file.display()
        )
    })
}

/// An inference request for `rows` beats, the first of which is the `nth` of the workload.
/// `parameters` are those of the request.
pub(crate) fn beats(nth: u64, rows: usize, parameters: &serde_json::Value) -> String {
    let mix = Mix::try_new(&workload_mix()).unwrap();
    let beats = Generator::new(&Heart, 11, mix).samples(nth, rows);
    let data: Vec<f32> = beats.into_iter().flat_map(|beat| beat.values).collect();
    json!({
        "id": format!("beat-{nth}"),
        "parameters": parameters,
        "inputs": [{
            "name": "beat",
            "shape": [rows, SAMPLES],
            "datatype": "FP32",
            "data": data,
        }],
    })
    .to_string()
}

/// An inference request for one beat that asks for nothing special.
pub(crate) fn beat(nth: u64) -> String {
    beats(nth, 1, &json!({}))
}
