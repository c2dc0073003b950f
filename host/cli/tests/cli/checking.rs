//! `switchyard serve --check`, and the configuration that a command finds.

use std::fs;
use std::path::Path;

use insta::assert_snapshot;
use tempfile::TempDir;

use super::binary::{Ran, command, root};

/// A configuration of one shipped app and policy.
const GOOD: &str = r#"[server]
http = "127.0.0.1:0"
admin = "127.0.0.1:0"

[[app]]
name = "heart"
variants = ["cnn-small"]

[[worker]]
name = "cpu"

[[pool]]
name = "main"
apps = ["heart"]
workers = ["cpu"]
policy = "fcfs"
"#;

/// Runs `serve` in a folder, with more arguments and variables.
fn serve(folder: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Ran {
    let output = command()
        .current_dir(folder)
        .env("HOME", folder)
        .env_remove("XDG_CONFIG_HOME")
        .envs(variables.iter().copied())
        .arg("serve")
        .args(arguments)
        .output()
        .unwrap();
    Ran {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

fn folder(text: &str) -> TempDir {
    let folder = TempDir::new().unwrap();
    fs::create_dir(folder.path().join("policies")).unwrap();
    fs::write(folder.path().join("switchyard.toml"), text).unwrap();
    folder
}

/// The output without the parts that differ between machines and runs.
fn shown(text: &str, folder: &Path) -> String {
    let text = text.replace(&folder.display().to_string(), "DIR");
    text.replace(&root().display().to_string(), "ROOT")
}

#[test]
fn every_mistake_is_printed_in_one_run() {
    let text = GOOD
        .replace("[server]", "[server]\nhtpp = 1\nrows_max = 0")
        .replace("\"cnn-small\"", "\"cnn-smal\"")
        .replace(
            "\"fcfs\"",
            "\"sneakpek\"\nshadow = { policy = \"fcfs\", settings = { x = 1 } }",
        )
        .replace("name = \"cpu\"", "name = \"cpu\"\ncores = [5000]")
        + "[pool.record]\nfile = \"nowhere/main.rec\"\n";
    let folder = folder(&text);
    let ran = serve(folder.path(), &["--check"], &[]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert_eq!(ran.stdout, "");
    let said = shown(&ran.stderr, folder.path());
    let cores = said.find("this process may run on ").unwrap();
    let end = cores + said[cores..].find('\n').unwrap();
    let said = said.replacen(&said[cores..end], "this process may run on CORES", 1);
    assert_snapshot!(said);
}

/// The settings of a policy are tried too, once the app is right.
#[test]
fn wrong_settings_of_a_policy_are_named() {
    let text = GOOD.replace(
        "\"fcfs\"",
        "\"fcfs\"\nsettings = { variants = { haert = \"x\" } }",
    );
    let folder = folder(&text);
    let ran = serve(folder.path(), &["--check"], &[]);
    assert_eq!(ran.code, Some(2));
    let start = "error: 1 mistake\nswitchyard.toml:17: pool[0].settings: ";
    assert!(ran.stderr.starts_with(start), "{}", ran.stderr);
    assert!(ran.stderr.contains("haert"), "{}", ran.stderr);
}

/// Zoo and policy come from the repository that the program was built in.
#[test]
fn without_a_mistake_a_summary_is_printed_and_nothing_is_written() {
    let folder = folder(GOOD);
    let variables = [("SWITCHYARD_SERVER__ADMIN", "127.0.0.1:48109")];
    let ran = serve(
        folder.path(),
        &["--check", "--http", "127.0.0.1:48108"],
        &variables,
    );
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let said = shown(&ran.stdout, folder.path());
    assert_snapshot!(said);
    let left = fs::read_dir(folder.path().join("policies")).unwrap();
    assert_eq!(left.count(), 0);
    assert!(!folder.path().join("profiles").exists());
}

#[test]
fn the_users_configuration_is_found_where_the_folder_has_none() {
    let home = TempDir::new().unwrap();
    let own = home.path().join(".config/switchyard");
    fs::create_dir_all(own.join("policies")).unwrap();
    fs::write(own.join("switchyard.toml"), GOOD).unwrap();
    let ran = serve(home.path(), &["--check"], &[]);
    let file = own.join("switchyard.toml");
    let start = format!("{}: no mistake\n", file.display());
    assert!(
        ran.stdout.starts_with(&start),
        "{}{}",
        ran.stdout,
        ran.stderr
    );
}

#[test]
fn an_option_or_a_variable_at_fault_is_named() {
    let folder = folder(GOOD);
    let variables = [("SWITCHYARD_SERVER__THREADS", "many")];
    let ran = serve(
        folder.path(),
        &["--check", "--admin", "0.0.0.0:1"],
        &variables,
    );
    assert_eq!(ran.code, Some(2));
    for mistake in [
        "\nSWITCHYARD_SERVER__THREADS: server.threads: many, must be an integer, at least 0\n",
        "\n--admin: server.admin: 0.0.0.0:1, must be a loopback address, unless `admin_tls` and `operators` are \
         set\n",
    ] {
        assert!(ran.stderr.contains(mistake), "{}", ran.stderr);
    }
}

/// 192.0.2.0/24 is for documentation: no machine has such an address.
#[test]
fn every_address_that_cannot_be_listened_on_is_named_in_one_run() {
    let text = GOOD.replace(
        "http = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"",
        "http = \"192.0.2.1:8000\"\ngrpc = \"unix:nowhere/grpc.sock\"\nadmin = \"localhost:8002\"",
    );
    let folder = folder(&text);
    let ran = serve(folder.path(), &["--check"], &[]);
    assert_eq!(ran.code, Some(2), "{}", ran.stdout);
    assert_eq!(
        ran.stderr,
        "error: 3 mistakes\n\
         switchyard.toml:4: server.admin: \"localhost:8002\", must be ADDRESS:PORT or unix:PATH, such as \
         \"127.0.0.1:8002\"\n\
         switchyard.toml:2: server.http: 192.0.2.1:8000: Cannot assign requested address (os error 99); choose \
         an address of this machine with --http, such as 127.0.0.1:0\n\
         switchyard.toml:3: server.grpc: unix:nowhere/grpc.sock: its folder is missing; `mkdir -p nowhere` \
         makes it\n"
    );
}

#[test]
fn two_ports_of_one_address_are_named() {
    let text = GOOD.replace(
        "http = \"127.0.0.1:0\"",
        "http = \"0.0.0.0:48110\"\ngrpc = \"unix:a.sock\"",
    );
    let folder = folder(&text.replace("127.0.0.1:0", "127.0.0.1:48110"));
    let ran = serve(folder.path(), &["--check"], &[]);
    assert_eq!(ran.code, Some(2), "{}", ran.stdout);
    assert_eq!(
        ran.stderr,
        "error: 1 mistake\nswitchyard.toml:4: server.admin: 127.0.0.1:48110, must be another port than \
         server.http\n"
    );
    let ran = serve(folder.path(), &["--check", "--admin", "unix:a.sock"], &[]);
    let said = "--admin: server.admin: unix:a.sock, must be another path than server.grpc\n";
    assert!(ran.stderr.contains(said), "{}", ran.stderr);
}

/// The configuration of a running server is checked before a reload.
#[test]
fn an_address_in_use_is_a_note() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let folder = folder(GOOD);
    let ran = serve(folder.path(), &["--check", "--http", &address], &[]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let note = format!("note      server.http: {address}: Address already in use");
    assert!(ran.stdout.contains(&note), "{}", ran.stdout);
}

#[test]
fn certificates_that_cannot_be_used_are_named() {
    let tls = Path::new(env!("CARGO_MANIFEST_DIR")).join("../server/tests/tls");
    let lines = format!(
        "[server]\ntls = {{ certificate = \"{0}/server.pem\", key = \"{0}/client.key\" }}\n\
         admin_tls = {{ certificate = \"absent.pem\", key = \"{0}/server.key\" }}\n",
        tls.display()
    );
    let folder = folder(&GOOD.replacen("[server]\n", &lines, 1));
    let ran = serve(folder.path(), &["--check"], &[]);
    assert_eq!(ran.code, Some(2), "{}", ran.stdout);
    for mistake in [
        "server.tls.key: ",
        "must be the key of",
        "server.admin_tls.certificate: ",
    ] {
        assert!(ran.stderr.contains(mistake), "{mistake}: {}", ran.stderr);
    }
}
