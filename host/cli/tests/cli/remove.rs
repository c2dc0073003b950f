//! `switchyard remove`: which files `--delete` deletes.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;

use super::binary::{Ran, switchyard};
use crate::text_zoo::{Answers, write_app};

/// A zoo with the app `mood`, and a configuration that serves these variants of it. No server
/// listens at its address.
fn configured(folder: &Path, variants: &[&str]) {
    let zoo = folder.join("zoo");
    write_app(&zoo, "mood", Answers::Classes, &["small", "tiny"]);
    let (zoo, socket) = (zoo.display(), folder.join("http.sock"));
    let text = format!(
        "[server]\nhttp = \"unix:{}\"\n[[app]]\nname = \"mood\"\nzoo = \"{zoo}\"\n\
         variants = {variants:?}\n[[worker]]\nname = \"cpu\"\n[[pool]]\nname = \"main\"\n\
         apps = [\"mood\"]\nworkers = [\"cpu\"]\npolicy = \"edf-fallback\"\n",
        socket.display()
    );
    fs::write(folder.join("switchyard.toml"), text).unwrap();
    fs::create_dir_all(folder.join("policies")).unwrap();
}

fn remove(folder: &Path, options: &[&str]) -> Ran {
    let config = folder.join("switchyard.toml").display().to_string();
    switchyard(&[&["remove", "--config", &config][..], options].concat())
}

#[test]
fn weights_that_another_variant_reads_are_not_deleted() {
    let folder = tempfile::tempdir().unwrap();
    configured(folder.path(), &["tiny", "small", "tiny@int8"]);
    let config = folder.path().join("switchyard.toml");
    let before = fs::read_to_string(&config).unwrap();
    for (removed, stays) in [("tiny", "tiny@int8"), ("tiny@int8", "tiny")] {
        let name = format!("mood/{removed}");
        let refused = remove(folder.path(), &[&name, "--delete"]);
        assert_eq!(refused.code, Some(2), "{}", refused.stdout);
        for wanted in [
            format!("mood/{stays} is served from it"),
            format!("`switchyard remove {name}`"),
        ] {
            assert!(refused.stderr.contains(&wanted), "{}", refused.stderr);
        }
        assert!(folder.path().join("zoo/mood/tiny/model.toml").is_file());
        assert_eq!(fs::read_to_string(&config).unwrap(), before);
    }
    let kept = remove(folder.path(), &["mood/tiny"]);
    assert_eq!(kept.code, Some(0), "{}", kept.stderr);
    assert!(folder.path().join("zoo/mood/tiny").is_dir());
}

#[test]
fn the_last_precision_of_a_variant_deletes_its_weights() {
    let folder = tempfile::tempdir().unwrap();
    configured(folder.path(), &["small", "tiny@int8"]);
    let removed = remove(folder.path(), &["mood/tiny@int8", "--delete"]);
    assert_eq!(removed.code, Some(0), "{}", removed.stderr);
    assert!(!folder.path().join("zoo/mood/tiny").exists());
    assert!(folder.path().join("zoo/mood/small").is_dir());
    let config = fs::read_to_string(folder.path().join("switchyard.toml")).unwrap();
    assert!(config.contains("variants = [\"small\"]"), "{config}");
}

/// The server may serve from them still.
#[test]
fn files_stay_where_a_server_cannot_be_asked() {
    let folder = tempfile::tempdir().unwrap();
    configured(folder.path(), &["small", "tiny"]);
    let listener = UnixListener::bind(folder.path().join("http.sock")).unwrap();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 1024]).unwrap();
        // An alert of TLS: unexpected message.
        stream.write_all(&[0x15, 3, 3, 0, 2, 2, 10]).unwrap();
    });
    let kept = remove(folder.path(), &["mood/tiny", "--delete"]);
    assert_eq!(kept.code, Some(1), "{}", kept.stdout);
    assert!(
        kept.stderr.contains("tiny is not deleted"),
        "{}",
        kept.stderr
    );
    assert!(folder.path().join("zoo/mood/tiny/model.toml").is_file());
    server.join().unwrap();
}

/// The models of the program, installed below a prefix.
#[test]
fn models_of_the_program_are_not_deleted() {
    let root = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (bin, here) = (root.path().join("bin"), root.path().join("here"));
    let zoo = root.path().join("share/switchyard/zoo");
    for folder in [&bin, &here, &zoo] {
        fs::create_dir_all(folder).unwrap();
    }
    write_app(&zoo, "mood", Answers::Classes, &["small", "tiny"]);
    let program = bin.join("switchyard");
    fs::hard_link(env!("CARGO_BIN_EXE_switchyard"), &program).unwrap();
    configured(&here, &["small", "tiny"]);
    let config = here.join("switchyard.toml");
    let text = fs::read_to_string(&config).unwrap();
    let named = text.lines().filter(|line| !line.starts_with("zoo = "));
    let text = named.collect::<Vec<_>>().join("\n");
    fs::write(&config, &text).unwrap();
    for name in ["mood", "mood/tiny"] {
        let ran = Command::new(&program)
            .args(["remove", name, "--delete", "--config"])
            .arg(&config)
            .output()
            .unwrap();
        let reason = String::from_utf8_lossy(&ran.stderr);
        assert_eq!(ran.status.code(), Some(2), "{reason}");
        assert!(reason.contains("comes with the program"), "{reason}");
        assert_eq!(fs::read_to_string(&config).unwrap(), text);
    }
    assert!(zoo.join("mood/tiny/model.toml").is_file());
}
