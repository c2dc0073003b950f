//! Refused configurations: the message names the file, the field, the reason and the remedy.

#![allow(clippy::unwrap_used)]

use std::path::Path;

use insta::assert_snapshot;
use switchyard_server::config::{Config, Draft, Overrides, WorkerConfig};

const GOOD: &str = r#"
[server]
http = "127.0.0.1:8000"

[[app]]
name = "heart"

[[app]]
name = "fall"

[[worker]]
name = "cpu-a"

[[worker]]
name = "cpu-b"

[[pool]]
name = "main"
apps = ["heart", "fall"]
workers = ["cpu-a", "cpu-b"]
policy = "fcfs"
"#;

/// The message of the refusal if `from` is replaced by `to`.
fn said(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from), "{from}");
    said_about(&GOOD.replacen(from, to, 1))
}

fn said_about(text: &str) -> String {
    let parsed = Config::parse(text, Path::new("switchyard.toml"), Path::new(""));
    parsed.unwrap_err().to_string()
}

#[test]
fn the_good_one_is_good() {
    let config = Config::parse(GOOD, Path::new("switchyard.toml"), Path::new("/etc")).unwrap();
    // Relative paths are seen from the file's folder.
    assert_eq!(config.apps[0].zoo, Path::new("/etc/models/zoo"));
    assert_eq!(config.policies.dir, Path::new("/etc/policies"));
}

#[test]
fn stand_ins_need_latencies_and_workers_of_this_process() {
    let pool = "[[pool]]";
    let alone = said(pool, "[profile]\nstand_in = true\n\n[[pool]]");
    assert!(
        alone.contains("profile.stand_in: true, needs `file`"),
        "{alone}"
    );
    let given = GOOD.replacen(
        pool,
        "[profile]\nstand_in = true\nfile = \"p.json\"\n\n[[pool]]",
        1,
    );
    assert!(Config::parse(&given, Path::new("switchyard.toml"), Path::new("")).is_ok());
    let remote = "name = \"cpu-b\"\nremote = { url = \"grpc://w:1\" }";
    let remote = said_about(&given.replacen("name = \"cpu-b\"", remote, 1));
    assert!(remote.contains("worker cpu-b is remote"), "{remote}");
}

#[test]
fn a_name_with_slots_is_a_worker_for_each() {
    let text = GOOD.replacen(
        "name = \"cpu-a\"",
        "name = \"cpu-a\"\nremote = { url = \"grpc://w:1\", at_most = 2 }",
        1,
    );
    let config = Config::parse(&text, Path::new("switchyard.toml"), Path::new("")).unwrap();
    let workers = config.workers_of(&config.pools[0]);
    let names: Vec<_> = workers.iter().map(|worker| worker.name.as_str()).collect();
    assert_eq!(names, ["cpu-a-0", "cpu-a-1", "cpu-b"]);
    let kinds: Vec<_> = workers.iter().map(WorkerConfig::remote_kind).collect();
    let far = Some("remote:cpu-a".to_owned());
    assert_eq!(kinds, [far.clone(), far, None]);
}

#[test]
fn traces_need_a_collector_and_a_share() {
    let with = |traces: &str| said("[server]", &format!("[server]\ntraces = {{ {traces} }}"));
    assert_snapshot!(with("share = 0.5"), @"switchyard.toml:3: server.traces: missing field `endpoint`");
    assert_snapshot!(with("endpoint = \"https://127.0.0.1:4318\""), @r#"switchyard.toml:3: server.traces.endpoint: "https://127.0.0.1:4318", must be http://HOST:PORT; for TLS send to a collector on this machine"#);
    assert_snapshot!(with("endpoint = \"127.0.0.1:4318\""), @r#"switchyard.toml:3: server.traces.endpoint: "127.0.0.1:4318", must be http://HOST:PORT; for TLS send to a collector on this machine"#);
    assert_snapshot!(with("endpoint = \"http://127.0.0.1:4318\", share = 2.0"), @"switchyard.toml:3: server.traces.share: 2, must be 0 to 1");
    let good = "[server]\ntraces = { endpoint = \"http://[::1]:4318/otlp/\" }";
    let text = GOOD.replacen("[server]", good, 1);
    let config = Config::parse(&text, Path::new("switchyard.toml"), Path::new("")).unwrap();
    assert_eq!(config.server.traces.unwrap().share, 0.01);
}

#[test]
fn etcd_is_reached_by_urls_and_its_keys_are_words() {
    let with = |etcd: &str| said("[server]", &format!("[etcd]\n{etcd}\n[server]"));
    let here = "endpoints = [\"http://127.0.0.1:2379\"]\n";
    assert_snapshot!(with("endpoints = [\"127.0.0.1:2379\"]"), @"switchyard.toml:3: etcd.endpoints[0]: `127.0.0.1:2379`, must be `http://HOST:PORT` or `https://HOST:PORT` with a port from 1 to 65535, such as http://127.0.0.1:2379");
    assert_snapshot!(with("endpoints = [\"https://127.0.0.1:2379\"]"), @"switchyard.toml:3: etcd.endpoints[0]: `https://127.0.0.1:2379` needs `ca`: the authorities of its certificate");
    assert_snapshot!(with("endpoints = [\"http://127.0.0.1:2379\"]\nca = \"ca.pem\""), @"switchyard.toml:3: etcd.endpoints[0]: `http://127.0.0.1:2379`, must begin with https:// where ca is set");
    assert_snapshot!(with(&format!("{here}certificate = \"a.pem\"")), @"switchyard.toml:4: etcd.certificate: needs `key` and `ca` next to it");
    assert_snapshot!(with(&format!("{here}ttl_s = 1")), @"switchyard.toml:4: etcd.ttl_s: 1, must be 2 to 3600");
    assert_snapshot!(with(&format!("{here}election = \"/leader\"")), @"switchyard.toml:4: etcd.election: `/leader`, must be words with slashes between them, such as switchyard/leader");
    assert_snapshot!(with("election = \"yard/leader\""), @r#"switchyard.toml:3: etcd.election: needs `endpoints` next to it, such as ["http://127.0.0.1:2379"]"#);
    assert_snapshot!(with(&format!("{here}policies = \"yard//policies\"")), @"switchyard.toml:4: etcd.policies: `yard//policies`, must be words with slashes between them, such as switchyard/policies");
    assert_snapshot!(with("policies = \"yard/policies\""), @r#"switchyard.toml:3: etcd.policies: needs `endpoints` next to it, such as ["http://127.0.0.1:2379"]"#);
    assert_snapshot!(with(&format!("{here}advertise = \"10.0.0.1:8000\"")), @"switchyard.toml:4: etcd.advertise: needs `election` next to it; or leave it out");
    let far = "name = \"cpu-a\"\nremote = { etcd = \"yard/far\", at_most = 2 }";
    assert_snapshot!(said("name = \"cpu-a\"", far), @r#"switchyard.toml:13: worker[0].remote.etcd: needs etcd: set `endpoints` in [etcd], such as ["http://127.0.0.1:2379"]"#);
}

#[test]
fn unknown_fields_are_refused_with_a_suggestion() {
    assert_snapshot!(said("policy = ", "polcy = "), @"switchyard.toml:21: pool[0].polcy: unknown field `polcy`, expected one of `name`, `apps`, `workers`, `policy`, `settings`, `window_budget_ms`, `policy_memory_mb`, `pending_max`, `fault_limit`, `patience_ms`, `latencies`, `windows_kept`, `seed`, `record`, `prepare`, `shadow`; did you mean `policy`?");
    assert_snapshot!(said("[server]", "[server]\nhtpp = 1"), @"switchyard.toml:3: server.htpp: unknown field `htpp`, expected one of `http`, `grpc`, `tls`, `admin`, `socket_mode`, `admin_tls`, `admin_hosts`, `operators`, `threads`, `body_max_mb`, `header_max_kb`, `header_timeout_ms`, `head_timeout_ms`, `body_timeout_ms`, `rate_min`, `write_timeout_ms`, `request_memory_mb`, `connections_max`, `connections_per_client_max`, `model_control`, `load_timeout_ms`, `timeout_max_ms`, `rows_max`, `inbox_max`, `drain_delay_ms`, `drain_timeout_ms`, `traces`, `onnxruntime`; did you mean `http`?");
    assert_snapshot!(said("[server]", "[sever]"), @"switchyard.toml:2: sever: unknown field `sever`, expected one of `server`, `app`, `worker`, `pool`, `policies`, `profile`, `etcd`; did you mean `server`?");
    assert_snapshot!(said("name = \"cpu-a\"", "name = \"cpu-a\"\nzzz = 1"), @"switchyard.toml:13: worker[0].zzz: unknown field `zzz`, expected one of `name`, `device`, `threads`, `cores`, `memory_mb`, `pin`, `power_w`, `queue_max`, `parked_max`, `remote`");
    assert_snapshot!(said("policy = ", "fault_limit = { fault = 3 }\npolicy = "), @"switchyard.toml:21: pool[0].fault_limit.fault: unknown field `fault`, expected `faults` or `windows`; did you mean `faults`?");
}

#[test]
fn missing_fields_and_wrong_types_are_named() {
    assert_snapshot!(said("policy = \"fcfs\"", ""), @"switchyard.toml:17: pool[0]: missing field `policy`");
    assert_snapshot!(said("name = \"cpu-b\"", "name = \"cpu-b\"\nthreads = \"two\""), @r#"switchyard.toml:16: worker[1].threads: "two", must be an integer, at least 0"#);
    assert_snapshot!(said("127.0.0.1:8000", "localhost"), @r#"switchyard.toml:3: server.http: "localhost", must be ADDRESS:PORT or unix:PATH, such as "127.0.0.1:8000""#);
    assert_snapshot!(said("name = \"fall\"", "name = \"fall\"\nlate = \"dorp\""), @"switchyard.toml:10: app[1].late: unknown variant `dorp`, expected one of `serve`, `drop`, `last`, `shed`; did you mean `drop`?");
    assert_snapshot!(said("name = \"heart\"", "name = \"heart\"\npenalty = \"cubic\""), @"switchyard.toml:7: app[0].penalty: unknown variant `cubic`, expected one of `step`, `linear`, `sigmoid`");
    assert_snapshot!(said("name = \"main\"", "name = main"), @"switchyard.toml:18:8: not TOML: string values must be quoted, expected literal string: `name = main`");
}

#[test]
fn what_no_type_forbids_is_checked() {
    assert_snapshot!(said("name = \"cpu-a\"", "name = \"cpu-a\"\nthreads = 0"), @"switchyard.toml:13: worker[0].threads: 0, must be 1 to 1024");
    assert_snapshot!(said("[server]", "[server]\nadmin = \"0.0.0.0:8002\""), @"switchyard.toml:3: server.admin: 0.0.0.0:8002, must be a loopback address, unless `admin_tls` and `operators` are set");
    assert_snapshot!(said("[server]", "[server]\nadmin = \"0.0.0.0:8002\"\noperators = \"operators\""), @"switchyard.toml:3: server.admin: 0.0.0.0:8002, must be a loopback address, unless `admin_tls` and `operators` are set");
    assert_snapshot!(said("[server]", "[server]\nadmin = \"unix:a\"\nadmin_tls = { certificate = \"a.pem\", key = \"a.key\" }"), @"switchyard.toml:4: server.admin_tls: must be absent: `admin` is a Unix socket");
    assert_snapshot!(said("[server]", "[server]\nsocket_mode = \"0066\""), @"switchyard.toml:3: server.socket_mode: `0066`, must be an octal mode from \"0600\" to \"0777\" that lets the owner read and write, such as \"0660\"");
    assert_snapshot!(said("[server]", "[server]\nadmin_hosts = [\"https://a.example\"]"), @"switchyard.toml:3: server.admin_hosts[0]: `https://a.example`, must be a name without scheme and port");
    assert_snapshot!(said("[server]", "[server]\nadmin_tls = { certificate = \"a.pem\" }"), @"switchyard.toml:3: server.admin_tls: missing field `key`");
    assert_snapshot!(said("name = \"cpu-a\"", "name = \"cpu-a\"\nremote = { url = \"here:1\" }"), @"switchyard.toml:13: worker[0].remote.url: `here:1`, must be `grpc://HOST:PORT` or `grpcs://HOST:PORT` with a port from 1 to 65535, or `unix:PATH`, such as grpc://10.0.0.2:8001");
    assert_snapshot!(said("name = \"cpu-a\"", "name = \"cpu-a\"\nremote = { url = \"grpcs://a:1\" }"), @"switchyard.toml:13: worker[0].remote.ca: is required with grpcs://: the authorities of the server's certificate");
    assert_snapshot!(said("name = \"cpu-a\"", "name = \"cpu-a\"\nremote = { url = \"grpc://a:1\", ca = \"ca.pem\" }"), @"switchyard.toml:13: worker[0].remote.url: `grpc://a:1`, must begin with grpcs:// where ca is set");
    assert_snapshot!(said("name = \"cpu-a\"", "name = \"cpu-a\"\nremote = { url = \"grpcs://a:1\", ca = \"ca.pem\", key = \"a.key\" }"), @"switchyard.toml:13: worker[0].remote.key: needs `certificate` and `ca` next to it, and a url of grpcs://");
    assert_snapshot!(said("name = \"cpu-a\"", "name = \"cpu-a\"\nremote = { url = \"grpc://a:1\", timeout_ms = 0 }"), @"switchyard.toml:13: worker[0].remote.timeout_ms: 0, must be 1 to 3600000");
    let remote = |fields: &str| {
        said(
            "name = \"cpu-a\"",
            &format!("name = \"cpu-a\"\nremote = {{ {fields} }}"),
        )
    };
    assert_snapshot!(remote("url = \"grpc://w:1\", at_most = 0"), @"switchyard.toml:13: worker[0].remote.at_most: 0, must be 1 to 256");
    assert_snapshot!(remote("url = \"grpc://w:1\", at_most = 4, resolve_s = 0"), @"switchyard.toml:13: worker[0].remote.resolve_s: 0, must be 1 to 3600");
    assert_snapshot!(remote("url = \"grpc://w:1\", resolve_s = 2"), @"switchyard.toml:13: worker[0].remote.resolve_s: is for a name with several addresses; set `at_most` too, or leave it out");
    assert_snapshot!(remote("url = \"grpc://10.0.0.2:1\", at_most = 4"), @"switchyard.toml:13: worker[0].remote.url: `grpc://10.0.0.2:1` is one address; must have a name with at_most, or leave at_most out");
    let slot = GOOD.replace("cpu-b", "cpu-a-1").replacen(
        "name = \"cpu-a\"",
        "name = \"cpu-a\"\nremote = { url = \"grpc://w:1\", at_most = 2 }",
        1,
    );
    assert_snapshot!(said_about(&slot), @"switchyard.toml:16: worker[1].name: `cpu-a-1` is a slot of worker `cpu-a`; must be another name");
    assert_snapshot!(said("[server]", "[server]\nbody_max_mb = 300"), @"switchyard.toml:2: server.request_memory_mb: 512, must be 600 to 1048576");
    assert_snapshot!(said("[server]", "[server]\ntimeout_max_ms = 0"), @"switchyard.toml:3: server.timeout_max_ms: 0, must be 1 to 3600000");
    assert_snapshot!(said("name = \"fall\"", "name = \"fall\"\nslo_ms = 0"), @"switchyard.toml:10: app[1].slo_ms: 0, must be at least 0.001");
    assert_snapshot!(said("name = \"fall\"", "name = \"fall\"\nprior = \"strong\""), @"switchyard.toml:8: app[1].prior_requests: must be a number above 0 with the strong prior, absent with the others");
    assert_snapshot!(said("policy = \"fcfs\"", "policy = \"../fcfs\""), @"switchyard.toml:21: pool[0].policy: `../fcfs`, must be the name of a policy in policies.dir, or a path to a .wasm file");
    assert_snapshot!(said("policy = \"fcfs\"", "policy = \"fcfs\"\nrecord = { file = \"a\", max_mb = 0 }"), @"switchyard.toml:22: pool[0].record.max_mb: 0, must be 1 to 1048576");
    assert_snapshot!(said("policy = \"fcfs\"", "policy = \"fcfs\"\nwindow_budget_ms = 0"), @"switchyard.toml:22: pool[0].window_budget_ms: 0, must be 1 to 60000");
}

#[test]
fn every_mistake_is_reported_at_once() {
    let text = GOOD
        .replace("[server]", "[server]\nthreads = 5000\nrows_max = 0")
        .replace(
            "name = \"fall\"",
            "name = \"fall\"\nslo_ms = -1.0\nneighbours = 0",
        )
        .replace(
            "name = \"cpu-a\"",
            "name = \"cpu-a\"\nthreads = 0\npin = [\"hart/cnn\"]",
        )
        .replace("[\"cpu-a\", \"cpu-b\"]", "[\"cpu-a\", \"cpu-c\"]")
        .replace("\"fcfs\"", "\"../fcfs\"\npatience_ms = 0");
    // A worker that only a mistyped name leaves out is no further mistake.
    assert_snapshot!(said_about(&text), @r"
    switchyard.toml:3: server.threads: 5000, must be 0 to 1024
    switchyard.toml:4: server.rows_max: 0, must be 1 to 65536
    switchyard.toml:12: app[1].slo_ms: -1, must be at least 0.001
    switchyard.toml:13: app[1].neighbours: 0, must be at least 1
    switchyard.toml:17: worker[0].threads: 0, must be 1 to 1024
    switchyard.toml:18: worker[0].pin[0]: no [[app]] is called `hart`; did you mean `heart`?
    switchyard.toml:26: pool[0].workers[1]: no [[worker]] is called `cpu-c`; did you mean `cpu-b`?
    switchyard.toml:27: pool[0].policy: `../fcfs`, must be the name of a policy in policies.dir, or a path to a .wasm file
    switchyard.toml:28: pool[0].patience_ms: 0, must be 1 to 3600000
    ");
}

/// Unknown fields, missing fields, wrong types, ranges and references in one run.
#[test]
fn mistakes_of_every_kind_are_reported_at_once() {
    let text = GOOD
        .replace(
            "[server]",
            "[server]\nhtpp = 1\nthreads = 5000\nadmin = \"here\"",
        )
        .replace("name = \"fall\"", "name = 5\nlate = \"dorp\"")
        .replace(
            "name = \"cpu-a\"",
            "name = \"cpu-a\"\ncores = [\"x\"]\nmemory_mb = -1",
        )
        .replace("policy = \"fcfs\"", "polcy = \"fcfs\"\npatience_ms = 0")
        + "[[pool]]\nname = \"second\"\n[sever]\nx = 1\n[profile]\nmeasure_s = true\n";
    assert_snapshot!(said_about(&text), @r#"
    switchyard.toml:3: server.htpp: unknown field `htpp`, expected one of `http`, `grpc`, `tls`, `admin`, `socket_mode`, `admin_tls`, `admin_hosts`, `operators`, `threads`, `body_max_mb`, `header_max_kb`, `header_timeout_ms`, `head_timeout_ms`, `body_timeout_ms`, `rate_min`, `write_timeout_ms`, `request_memory_mb`, `connections_max`, `connections_per_client_max`, `model_control`, `load_timeout_ms`, `timeout_max_ms`, `rows_max`, `inbox_max`, `drain_delay_ms`, `drain_timeout_ms`, `traces`, `onnxruntime`; did you mean `http`?
    switchyard.toml:4: server.threads: 5000, must be 0 to 1024
    switchyard.toml:5: server.admin: "here", must be ADDRESS:PORT or unix:PATH, such as "127.0.0.1:8000"
    switchyard.toml:12: app[1].name: 5, must be a string
    switchyard.toml:13: app[1].late: unknown variant `dorp`, expected one of `serve`, `drop`, `last`, `shed`; did you mean `drop`?
    switchyard.toml:17: worker[0].cores[0]: "x", must be an integer, at least 0
    switchyard.toml:18: worker[0].memory_mb: -1, must be an integer, at least 0
    switchyard.toml:27: pool[0].polcy: unknown field `polcy`, expected one of `name`, `apps`, `workers`, `policy`, `settings`, `window_budget_ms`, `policy_memory_mb`, `pending_max`, `fault_limit`, `patience_ms`, `latencies`, `windows_kept`, `seed`, `record`, `prepare`, `shadow`; did you mean `policy`?
    switchyard.toml:28: pool[0].patience_ms: 0, must be 1 to 3600000
    switchyard.toml:29: pool[1]: missing field `apps`
    switchyard.toml:29: pool[1]: missing field `workers`
    switchyard.toml:29: pool[1]: missing field `policy`
    switchyard.toml:31: sever: unknown field `sever`, expected one of `server`, `app`, `worker`, `pool`, `policies`, `profile`, `etcd`; did you mean `server`?
    switchyard.toml:34: profile.measure_s: true, must be an integer, at least 0
    "#);
    // The other sections are read, whatever the syntax of a line.
    let text = text.replace("threads = 5000", "threads = = 5");
    let said = said_about(&text);
    assert!(said.contains("not TOML"), "{said}");
    assert!(said.contains("unknown field `sever`"), "{said}");
}

#[test]
fn a_section_that_is_no_list_is_told_how_to_become_one() {
    assert_snapshot!(said("[[pool]]", "[pool]"), @"switchyard.toml:17: pool: must be a list of tables: write [[pool]]");
    assert_snapshot!(said("[\"heart\", \"fall\"]", "\"heart\""), @r#"switchyard.toml:19: pool[0].apps: "heart", must be a list, such as ["a", "b"]"#);
}

fn overridden(variables: &[(&str, &str)]) -> Result<Config, String> {
    let variables = variables.iter();
    let variables = variables.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let overrides = Overrides::of(variables);
    let file = Path::new("switchyard.toml");
    let draft = Draft::parse(GOOD, file, Path::new(""), &overrides);
    draft.finish().map_err(|error| error.to_string())
}

#[test]
fn variables_override_fields_and_unknown_ones_are_refused() {
    let config = overridden(&[
        ("SWITCHYARD_SERVER__HTTP", "0.0.0.0:9000"),
        ("SWITCHYARD_SERVER__MODEL_CONTROL", "true"),
        ("SWITCHYARD_POOL__0__POLICY", "sneakpeek"),
        ("SWITCHYARD_POOL__0__NAME", "5"),
        ("SWITCHYARD_POOL__0__APPS", "[\"fall\", \"heart\"]"),
        ("SWITCHYARD_PROFILE__PERCENTILE", "p99"),
        ("SWITCHYARD_SERVICE_HOST", "10.0.0.1"),
    ]);
    let config = config.unwrap();
    assert_eq!(config.server.http.tcp().unwrap().port(), 9000);
    assert!(config.server.model_control);
    let pool = &config.pools[0];
    assert_eq!(
        (pool.policy.as_str(), pool.name.as_str()),
        ("sneakpeek", "5")
    );
    assert_eq!(pool.apps, ["fall", "heart"]);
    let refused = overridden(&[
        ("SWITCHYARD_SERVER__HTPP", "0.0.0.0:9000"),
        ("SWITCHYARD_SEVER__HTTP", "0.0.0.0:9000"),
        ("SWITCHYARD_SERVER__ROWS_MAX", "many"),
        ("SWITCHYARD_SERVER__THREADS", "5000"),
        ("SWITCHYARD_POOL__1__POLICY", "fcfs"),
    ]);
    assert_snapshot!(refused.unwrap_err(), @r"
    SWITCHYARD_POOL__1__POLICY: pool[1].policy: the file has no such list entry: a variable changes the fields of entries that the file has, counted from 0
    SWITCHYARD_SERVER__HTPP: server.htpp: unknown field `htpp`, expected one of `http`, `grpc`, `tls`, `admin`, `socket_mode`, `admin_tls`, `admin_hosts`, `operators`, `threads`, `body_max_mb`, `header_max_kb`, `header_timeout_ms`, `head_timeout_ms`, `body_timeout_ms`, `rate_min`, `write_timeout_ms`, `request_memory_mb`, `connections_max`, `connections_per_client_max`, `model_control`, `load_timeout_ms`, `timeout_max_ms`, `rows_max`, `inbox_max`, `drain_delay_ms`, `drain_timeout_ms`, `traces`, `onnxruntime`; did you mean `http`?
    SWITCHYARD_SERVER__ROWS_MAX: server.rows_max: many, must be an integer, at least 0
    SWITCHYARD_SEVER__HTTP: sever: unknown field `sever`, expected one of `server`, `app`, `worker`, `pool`, `policies`, `profile`, `etcd`; did you mean `server`?
    SWITCHYARD_SERVER__THREADS: server.threads: 5000, must be 0 to 1024
    ");
}

#[test]
fn names_refer_to_one_thing_each() {
    assert_snapshot!(said("name = \"cpu-b\"", "name = \"cpu-a\""), @"switchyard.toml:15: worker[1].name: `cpu-a` is taken by another [[worker]]");
    assert_snapshot!(said("\"cpu-a\", \"cpu-b\"]", "\"cpu-a\", \"cpu-c\"]"), @"switchyard.toml:20: pool[0].workers[1]: no [[worker]] is called `cpu-c`; did you mean `cpu-b`?");
    assert_snapshot!(said("\"cpu-a\", \"cpu-b\"]", "\"cpu-a\"]"), @"switchyard.toml:14: worker[1]: is in no [[pool]]");
    assert_snapshot!(said("[\"heart\", \"fall\"]", "[]"), @"switchyard.toml:19: pool[0].apps: is empty");
    let second = "\n[[pool]]\nname = \"second\"\napps = [\"fall\"]\nworkers = [\"cpu-b\"]\npolicy = \"fcfs\"\n";
    let text = GOOD.replace("[\"heart\", \"fall\"]", "[\"heart\"]") + second;
    assert_snapshot!(said_about(&text), @"switchyard.toml:26: pool[1].workers[0]: worker `cpu-b` is in a pool already");
    assert_snapshot!(said_about(""), @r"
    switchyard.toml: app: there is no [[app]]
    switchyard.toml: worker: there is no [[worker]]
    switchyard.toml: pool: there is no [[pool]]
    ");
}

#[test]
fn pins_name_variants_of_apps_that_are_served() {
    let pin = |pins: &str| {
        said(
            "name = \"cpu-a\"",
            &format!("name = \"cpu-a\"\npin = [{pins}]"),
        )
    };
    assert_snapshot!(pin("\"heart\""), @"switchyard.toml:13: worker[0].pin[0]: `heart`, must be `app/variant`");
    assert_snapshot!(pin("\"heart/cnn\", \"hart/cnn\""), @"switchyard.toml:13: worker[0].pin[1]: no [[app]] is called `hart`; did you mean `heart`?");
    assert_snapshot!(pin("\"heart/cnn\", \"heart/cnn\""), @"switchyard.toml:13: worker[0].pin[1]: `heart/cnn` is there already");
}

#[test]
fn a_device_is_one_that_this_program_can_use() {
    let device = |name: &str| {
        let more = format!("name = \"cpu-a\"\ndevice = \"{name}\"");
        said("name = \"cpu-a\"", &more)
    };
    assert_snapshot!(device("gpu"), @"switchyard.toml:13: worker[0].device: `gpu` is not a device; devices are `cpu` and `cuda:N`, such as `cuda:0`");
    assert_snapshot!(device("cuda:one"), @"switchyard.toml:13: worker[0].device: `cuda:one` is not a device; devices are `cpu` and `cuda:N`, such as `cuda:0`");
    // Whether there is such a card is seen when it is opened.
    let cards = GOOD.replacen(
        "name = \"cpu-a\"",
        "name = \"cpu-a\"\ndevice = \"cuda:3\"",
        1,
    );
    let parsed = Config::parse(&cards, Path::new("switchyard.toml"), Path::new(""));
    if cfg!(feature = "cuda") {
        let worker = &parsed.unwrap().workers[0];
        assert_eq!(worker.device.to_string(), "cuda:3");
    } else {
        assert_snapshot!(parsed.unwrap_err(), @"switchyard.toml:13: worker[0].device: `cuda:3`: this program was built without the feature `cuda`; `cargo xtask cuda` builds one with it");
    }
}

#[test]
fn cores_are_as_many_as_threads() {
    let cores = |cores: &str| {
        let text = format!("name = \"cpu-a\"\nthreads = 2\ncores = [{cores}]");
        said("name = \"cpu-a\"", &text)
    };
    assert_snapshot!(cores("0"), @"switchyard.toml:14: worker[0].cores: has 1, must be as many as threads, 2, or none");
    assert_snapshot!(cores("1, 1"), @"switchyard.toml:14: worker[0].cores[1]: 1 is there already");
    assert_snapshot!(cores("0, -1"), @"switchyard.toml:14: worker[0].cores[1]: -1, must be an integer, at least 0");
}

#[test]
fn workers_of_a_kind_draw_the_same_power() {
    let power = |power: &str| {
        said(
            "name = \"cpu-a\"",
            &format!("name = \"cpu-a\"\npower_w = {power}"),
        )
    };
    assert_snapshot!(power("-1.0"), @"switchyard.toml:13: worker[0].power_w: -1, must be above 0, at most 100000");
    assert_snapshot!(power("nan"), @"switchyard.toml:13: worker[0].power_w: NaN, must be above 0, at most 100000");
    assert_snapshot!(power("15.0"), @"switchyard.toml:15: worker[1].power_w: must be that of worker `cpu-a`, which has the same device and threads");
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let error = Config::read(Path::new("/nowhere/switchyard.toml")).unwrap_err();
    assert_snapshot!(error, @"/nowhere/switchyard.toml: cannot be read: No such file or directory (os error 2)");
}

#[test]
fn beyond_loopback_the_admin_port_has_tls_and_operators() {
    let text = GOOD.replacen(
        "[server]",
        "[server]\nadmin = \"0.0.0.0:8002\"\noperators = \"operators\"\n\
         admin_tls = { certificate = \"a.pem\", key = \"a.key\" }",
        1,
    );
    let config = Config::parse(&text, Path::new("switchyard.toml"), Path::new("/etc")).unwrap();
    // Relative paths are seen from the file's folder.
    let tls = config.server.admin_tls.unwrap();
    assert_eq!(tls.certificate, Path::new("/etc/a.pem"));
    assert_eq!(tls.key, Path::new("/etc/a.key"));
}
