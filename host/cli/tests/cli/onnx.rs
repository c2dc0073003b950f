//! A server that cannot run a graph says so before it listens.

use std::fs;

use crate::onnx_zoo;

use super::binary::switchyard;

#[test]
fn a_library_that_is_missing_is_refused_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    onnx_zoo::write(&folder.path().join("zoo"));
    let config = r#"
[server]
http = "127.0.0.1:0"
admin = "127.0.0.1:0"
onnxruntime = "no-such/libonnxruntime.so"

[[app]]
name = "pulse"
zoo = "zoo"

[[worker]]
name = "cpu"

[[pool]]
name = "main"
apps = ["pulse"]
workers = ["cpu"]
policy = "fcfs"
"#;
    let file = folder.path().join("test-bed.toml");
    fs::write(&file, config).unwrap();
    let ran = switchyard(&["serve", "--config", file.to_str().unwrap()]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    let library = folder.path().join("no-such/libonnxruntime.so");
    let reason = format!(
        "onnxruntime cannot be loaded from {} (field `server.onnxruntime`): no such file",
        library.display()
    );
    let wanted = format!("{}:7: app pulse, variant graph: {reason}", file.display());
    assert!(ran.stderr.contains(&wanted), "{}\n{wanted}", ran.stderr);
}
