//! The configuration of the server: the simulated one, with the simulated policy, workers and profile.

use std::fs;
use std::path::Path;

use serde::Serialize;
use switchyard_core::policy::FALLBACK_NAME;
use switchyard_server::config::LatencySource;
use switchyard_simulate::Prepared;
use switchyard_simulate::named::{FALLBACK, Named};
use toml::{Table, Value};

use super::options::{LiveOptions, LiveWorkers};
use crate::commands::Failure;

/// The text of the configuration; the server writes into `folder`.
pub(super) fn configuration(
    prepared: &Prepared,
    options: &LiveOptions,
    named: &Named,
    folder: &Path,
) -> Result<String, Failure> {
    let file = &options.config;
    let refused = |reason: String| Failure::input(format!("{}: {reason}", file.display()));
    let text = fs::read_to_string(file).map_err(|error| refused(error.to_string()))?;
    let mut config: Table = text.parse().map_err(|error| refused(format!("{error}")))?;
    let pools = tables(&config, "pool");
    let pool = pools.into_iter().next();
    let mut pool = pool.ok_or_else(|| refused("no [[pool]]".to_owned()))?;
    let names = |field: &str| strings(pool.get(field));
    let (app_names, worker_names) = (names("apps"), names("workers"));

    let mut apps = tables(&config, "app");
    apps.retain(|app| is_among(app, &app_names));
    for app in &mut apps {
        let zoo = app.get("zoo").and_then(Value::as_str);
        let own = zoo.map(|zoo| file.parent().unwrap_or(Path::new("")).join(zoo));
        if let Some(zoo) = prepared.request.zoo.clone().or(own) {
            app.insert("zoo".to_owned(), absolute(&zoo)?);
        }
        // The defaults of an imported profile and of a server differ.
        let name = app.get("name").and_then(Value::as_str);
        let mut simulated = prepared.test_bed.catalog.apps.iter();
        if let Some(simulated) = simulated.find(|it| Some(it.name.as_str()) == name) {
            app.insert("late".to_owned(), value(simulated.late)?);
        }
    }

    let mut workers = tables(&config, "worker");
    workers.retain(|worker| is_among(worker, &worker_names));
    let workers = repeated(&workers, prepared.test_bed.catalog.workers.len(), options);
    let names = workers
        .iter()
        .filter_map(|worker| worker.get("name").cloned());
    pool.insert("workers".to_owned(), Value::Array(names.collect()));
    policy(&mut pool, prepared, named)?;
    if let Some(latencies) = prepared.request.latencies {
        let latencies = match latencies {
            LatencySource::Observed => "observed",
            LatencySource::Profiled => "profiled",
        };
        pool.insert("latencies".to_owned(), latencies.into());
    }
    if let Some(budget) = prepared.request.window_budget {
        let ms = i64::try_from(budget.as_millis()).unwrap_or(i64::MAX);
        pool.insert("window_budget_ms".to_owned(), ms.into());
    }
    for other in ["record", "shadow", "prepare"] {
        pool.remove(other);
    }

    let server = server(&config);
    let mut policies = Table::new();
    policies.insert("dir".to_owned(), absolute(&folder.join("policies"))?);
    policies.insert("cache".to_owned(), absolute(&folder.join("compiled"))?);
    let mut profile = table(&config, "profile");
    profile.insert("file".to_owned(), absolute(&prepared.request.profile)?);
    profile.insert("percentile".to_owned(), value(prepared.request.percentile)?);
    let stands_in = options.workers == LiveWorkers::StandIn;
    profile.insert("stand_in".to_owned(), stands_in.into());

    let list = |tables: Vec<Table>| Value::Array(tables.into_iter().map(Value::Table).collect());
    // The server is no member of the configured cluster.
    config.remove("etcd");
    config.insert("app".to_owned(), list(apps));
    config.insert("worker".to_owned(), list(workers));
    config.insert("pool".to_owned(), list(vec![pool]));
    config.insert("server".to_owned(), Value::Table(server));
    config.insert("policies".to_owned(), Value::Table(policies));
    config.insert("profile".to_owned(), Value::Table(profile));
    toml::to_string(&config).map_err(Failure::check)
}

/// The configured limits, on free ports of this machine for plain HTTP.
fn server(config: &Table) -> Table {
    let mut server = table(config, "server");
    for outside in ["grpc", "tls", "admin_tls", "operators", "traces"] {
        server.remove(outside);
    }
    for port in ["http", "admin"] {
        server.insert(port.to_owned(), "127.0.0.1:0".into());
    }
    server
}

/// The policy as it is simulated: its file, its settings, the seed of its random numbers.
fn policy(pool: &mut Table, prepared: &Prepared, named: &Named) -> Result<(), Failure> {
    pool.remove("settings");
    pool.insert("seed".to_owned(), 0.into());
    if named.policy == FALLBACK {
        pool.insert("policy".to_owned(), FALLBACK_NAME.into());
        return Ok(());
    }
    let bed = &prepared.test_bed;
    let component = named.found_in_either(&bed.policies, bed.bundled.as_deref());
    pool.insert("policy".to_owned(), absolute(&component?)?);
    let settings = Value::Table(named.settings.clone());
    pool.insert("settings".to_owned(), settings);
    Ok(())
}

/// `count` workers, round-robin, each with its own name. Workers that run models get the cores that are
/// left, as far as these go.
fn repeated(workers: &[Table], count: usize, options: &LiveOptions) -> Vec<Table> {
    let copies = workers.iter().cycle().take(count).enumerate();
    let mut cores = options.worker_cores.iter();
    copies
        .map(|(at, worker)| {
            let mut worker = worker.clone();
            let copy = at / workers.len();
            if let Some(name) = worker.get("name").and_then(Value::as_str)
                && copy > 0
            {
                let name = format!("{name}-{}", copy + 1);
                worker.insert("name".to_owned(), name.into());
            }
            let threads = worker.get("threads").and_then(Value::as_integer);
            let threads = usize::try_from(threads.unwrap_or(1)).unwrap_or(1);
            let own: Vec<Value> = match options.workers {
                LiveWorkers::StandIn => Vec::new(),
                LiveWorkers::Models => cores
                    .by_ref()
                    .take(threads)
                    .map(|&core| Value::Integer(i64::try_from(core).unwrap_or_default()))
                    .collect(),
            };
            worker.remove("cores");
            if own.len() == threads {
                worker.insert("cores".to_owned(), Value::Array(own));
            }
            worker
        })
        .collect()
}

fn tables(config: &Table, name: &str) -> Vec<Table> {
    let list = config.get(name).and_then(Value::as_array);
    let tables = list.into_iter().flatten().filter_map(Value::as_table);
    tables.cloned().collect()
}

fn table(config: &Table, name: &str) -> Table {
    let table = config.get(name).and_then(Value::as_table);
    table.cloned().unwrap_or_default()
}

fn strings(list: Option<&Value>) -> Vec<String> {
    let list = list.and_then(Value::as_array).into_iter().flatten();
    list.filter_map(|it| it.as_str().map(str::to_owned))
        .collect()
}

fn is_among(table: &Table, names: &[String]) -> bool {
    let name = table.get("name").and_then(Value::as_str);
    name.is_some_and(|name| names.iter().any(|known| known == name))
}

fn absolute(path: &Path) -> Result<Value, Failure> {
    let path = std::path::absolute(path).map_err(Failure::input)?;
    Ok(Value::String(path.to_string_lossy().into_owned()))
}

fn value(of: impl Serialize) -> Result<Value, Failure> {
    Value::try_from(of).map_err(Failure::check)
}

#[cfg(test)]
mod tests {
    use switchyard_simulate::{SimulationRequest, words};

    use super::*;

    fn options(workers: LiveWorkers, config: &Path) -> LiveOptions {
        LiveOptions {
            workers,
            client_core: Some(3),
            worker_cores: vec![0, 1, 2],
            config: config.to_path_buf(),
        }
    }

    fn workers(text: &str, count: usize, workers: LiveWorkers) -> Vec<(String, Vec<i64>)> {
        let config: Table = text.parse().expect("a configuration");
        let options = options(workers, Path::new("test-bed.toml"));
        let made = repeated(&tables(&config, "worker"), count, &options);
        let shown = made.iter().map(|worker| {
            let cores = worker.get("cores").and_then(Value::as_array);
            let cores = cores.into_iter().flatten().filter_map(Value::as_integer);
            let name = worker.get("name").and_then(Value::as_str);
            (name.unwrap_or_default().to_owned(), cores.collect())
        });
        shown.collect()
    }

    #[test]
    fn copies_of_workers_have_their_own_names_and_cores() {
        let text =
            "[[worker]]\nname = \"a\"\n[[worker]]\nname = \"b\"\nthreads = 2\ncores = [5, 6]";
        let made = workers(text, 3, LiveWorkers::Models);
        let expected = [("a", vec![0]), ("b", vec![1, 2]), ("a-2", vec![])];
        assert_eq!(made, expected.map(|(name, cores)| (name.to_owned(), cores)));
        let made = workers(text, 2, LiveWorkers::StandIn);
        assert!(made.iter().all(|(_, cores)| cores.is_empty()), "{made:?}");
    }

    /// The configuration of a server with stand-ins; `more` is in that of a pool with an app of MAEL.
    fn made(more: &str, latencies: Option<LatencySource>) -> Table {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("production.toml");
        let text = format!(
            "[[app]]\nname = \"alexnet\"\n[[worker]]\nname = \"cpu\"\n[[pool]]\nname = \"main\"\n\
             apps = [\"alexnet\"]\nworkers = [\"cpu\"]\npolicy = \"mael\"\n{more}"
        );
        fs::write(&file, text).expect("a file");
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let profile = root.join("tests/paper/mael/profile.json");
        let workload = words::workload("poisson:1").expect("a workload");
        let request = SimulationRequest {
            config: Some(file.clone()),
            latencies,
            ..SimulationRequest::new(profile, workload, String::new())
        };
        let prepared = Prepared::try_new(request).expect("a simulation");
        let named: Named = FALLBACK.parse().expect("a policy");
        let options = options(LiveWorkers::StandIn, &file);
        let text = configuration(&prepared, &options, &named, folder.path());
        let text = text.expect("a configuration");
        text.parse().expect("TOML")
    }

    #[test]
    fn the_server_joins_no_cluster() {
        let more = "[etcd]\nendpoints = [\"http://127.0.0.1:2379\"]\n\
                    election = \"switchyard/leader\"\npolicies = \"switchyard/policies\"\n";
        assert!(!made(more, None).contains_key("etcd"));
    }

    #[test]
    fn the_server_has_only_its_own_ports() {
        let text = "[server]\nhttp = \"0.0.0.0:8000\"\ngrpc = \"0.0.0.0:8001\"\n\
                    tls = { certificate = \"a.pem\", key = \"a.key\" }\n\
                    admin_tls = { certificate = \"a.pem\", key = \"a.key\" }\n\
                    operators = \"operators\"\nthreads = 2\n\
                    traces = { endpoint = \"http://127.0.0.1:4318\" }\n";
        let config: Table = text.parse().expect("a configuration");
        let expected = "http = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\nthreads = 2\n";
        let expected: Table = expected.parse().expect("a table");
        assert_eq!(server(&config), expected);
    }

    #[test]
    fn the_server_predicts_from_the_latencies_of_the_simulation() {
        let configured = "latencies = \"profiled\"\n";
        for (latencies, expected) in [
            (None, "profiled"),
            (Some(LatencySource::Observed), "observed"),
            (Some(LatencySource::Profiled), "profiled"),
        ] {
            let pools = tables(&made(configured, latencies), "pool");
            let written = pools[0].get("latencies").and_then(Value::as_str);
            assert_eq!(written, Some(expected), "{latencies:?}");
        }
    }

    #[test]
    fn late_requests_are_treated_as_in_the_simulation() {
        let apps = tables(&made("", None), "app");
        let late = apps[0].get("late").and_then(Value::as_str);
        assert_eq!(late, Some("serve"), "the default of an imported profile");
    }
}
