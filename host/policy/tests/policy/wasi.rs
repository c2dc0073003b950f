//! Versions of WASI: a component with another one than 0.2 is refused before it runs.

use crate::support::{load, loader, made_up, patient};

#[test]
fn another_wasi_is_refused_by_name() {
    let wit = "package a:b; world w { import wasi:cli/environment@0.3.0; \
               export switchyard:policy/scheduling@0.1.0; } \
               package wasi:cli@0.3.0 { interface environment { get: func() -> string; } } \
               package switchyard:policy@0.1.0 { interface scheduling { describe: func(); } }";
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("later.wasm");
    std::fs::write(&file, made_up(wit)).unwrap();
    let error = load(&loader(patient()), &file).err().unwrap().to_string();
    assert!(error.contains("`wasi:cli/environment@0.3.0`"), "{error}");
}
