//! The error of a variant's estimated accuracy on a request, by the basis of the estimate.
//!
//! `cargo bench -p switchyard-training --bench estimates`
//!
//! SneakPeek's Figure 7: the truth is the variant's recall of the request's own class. The estimate
//! is the mean of its recalls under theta: the class frequencies of the validation set (profiled),
//! or the posterior mean after k neighbours or a single vote, from Jeffreys' prior. For Figure 10,
//! the prior is weakly or strongly informative and has the workload's mix or, wrongly, that of the
//! validation set. Requests are drawn from the application's workload, with seeds of no training or
//! validation.
//!
//! `-- --votes fall,heart` writes the votes of the card's k neighbours to stdout instead, by class of
//! the request, for `switchyard simulate --votes`.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;

use switchyard_models::Zoo;
use switchyard_models::zoo::ZooApp;
use switchyard_training::data::{Generator, Mix, stratified};
use switchyard_training::train::recipe;

/// Not a seed of a training run.
const SEED: u64 = 987_654_321;
const REQUESTS: usize = 2_000;
/// Requests of each class whose votes are recorded.
const RECORDED: usize = 2_000;
/// Jeffreys' prior, per class.
const ALPHA: f64 = 0.5;
/// Requests of an application expected in a window, for the strongly informative prior.
const WINDOW: f64 = 4.0;

/// Basis of an estimate.
#[derive(Clone, Copy)]
enum Basis {
    Profiled,
    Vote,
    Neighbours(usize),
    /// Five neighbours, and a prior of this many requests of the workload's mix.
    Workload(f64),
    /// Five neighbours, and a prior of this many requests of the validation set's mix.
    Validation(f64),
}

const BASES: [(&str, Basis); 9] = [
    ("profiled", Basis::Profiled),
    ("vote", Basis::Vote),
    ("k=1", Basis::Neighbours(1)),
    ("k=5", Basis::Neighbours(5)),
    ("k=15", Basis::Neighbours(15)),
    ("weak", Basis::Workload(1.0)),
    ("strong", Basis::Workload(WINDOW)),
    ("weak-off", Basis::Validation(1.0)),
    ("strong-off", Basis::Validation(WINDOW)),
];

fn main() -> Result<(), Box<dyn Error>> {
    let zoo = Zoo::open(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../zoo"))?;
    let arguments: Vec<String> = std::env::args().collect();
    if let Some(at) = arguments.iter().position(|arg| arg == "--votes") {
        let names = arguments.get(at + 1).map_or("", String::as_str);
        print!("{}", recorded(&zoo, names)?);
        return Ok(());
    }
    let mut rows = Vec::new();
    for app in &zoo.apps {
        rows.push((app.card.name.as_str(), errors(app)?));
    }
    match arguments.iter().any(|arg| arg == "--json") {
        true => println!("{}", json(&rows)),
        false => print!("{}", table(&rows)),
    }
    Ok(())
}

fn table(rows: &[(&str, Vec<f64>)]) -> String {
    let title = "mean absolute error of the estimated accuracy";
    let mut text = format!("{title}, {REQUESTS} requests of the workload\n{:8}", "app");
    text.extend(BASES.iter().map(|(name, _)| format!("{name:>10}")));
    for (app, errors) in rows {
        text += &format!("\n{app:8}");
        text.extend(errors.iter().map(|error| format!("{error:10.4}")));
    }
    text + "\n"
}

/// As the results of `switchyard simulate --json`: the application is the point, the basis of the
/// estimate is the policy.
fn json(rows: &[(&str, Vec<f64>)]) -> serde_json::Value {
    let run = |app: &str, basis: &str, error: f64| {
        serde_json::json!({
            "point": app,
            "policy": basis,
            "estimates": {"error": {"mean": error}},
        })
    };
    let runs = rows.iter().flat_map(|(app, errors)| {
        let named = BASES.iter().zip(errors);
        named.map(move |((basis, _), &error)| run(app, basis, error))
    });
    serde_json::json!({"runs": runs.collect::<Vec<_>>()})
}

/// The votes of each named application, one line per class.
fn recorded(zoo: &Zoo, names: &str) -> Result<String, Box<dyn Error>> {
    let mut apps = Vec::new();
    for name in names.split(',') {
        let app = zoo.apps.iter().find(|app| app.card.name == name);
        let app = app.ok_or_else(|| format!("--votes `{name}`: not an application of the zoo"))?;
        let lines = votes(app)?.join(",\n      ");
        apps.push(format!(
            "    {{\"app\": \"{name}\", \"classes\": [\n      {lines}\n    ]}}"
        ));
    }
    let command = format!("cargo bench --workspace --bench estimates -- --votes {names}");
    Ok(format!(
        "{{\n  \"made\": {{\"command\": \"{command}\", \"samples_per_class\": {RECORDED}, \
         \"seed\": {SEED}}},\n  \"apps\": [\n{}\n  ]\n}}\n",
        apps.join(",\n")
    ))
}

/// By class, the different votes of its samples as JSON.
fn votes(app: &ZooApp) -> Result<Vec<String>, Box<dyn Error>> {
    let name = &app.card.name;
    let recipe = recipe(name).ok_or_else(|| format!("{name}: its data cannot be made"))?;
    let sneakpeek = app.sneakpeek()?;
    let k = app.card.sneakpeek.as_ref().map(|card| card.k);
    let (sneakpeek, k) = sneakpeek
        .zip(k)
        .ok_or_else(|| format!("{name}: has no evidence"))?;
    let mut classes = vec![BTreeMap::<Vec<u32>, usize>::new(); app.card.classes.len()];
    let mut counts = Vec::new();
    for sample in stratified(recipe.data(), SEED, RECORDED) {
        sneakpeek.counts(&sample.values, k, &mut counts);
        *classes[sample.label].entry(counts.clone()).or_default() += 1;
    }
    let line = |votes: &BTreeMap<Vec<u32>, usize>| {
        let mut line = String::new();
        for (votes, samples) in votes {
            let comma = if line.is_empty() { "" } else { "," };
            // Writing to a string cannot fail.
            let _ = write!(line, "{comma}{{\"votes\":{votes:?},\"samples\":{samples}}}");
        }
        format!("[{}]", line.replace(", ", ","))
    };
    Ok(classes.iter().map(line).collect())
}

/// Mean over requests and exits, for each of the bases.
fn errors(app: &ZooApp) -> Result<Vec<f64>, Box<dyn Error>> {
    let name = &app.card.name;
    let recipe = recipe(name).ok_or_else(|| format!("{name}: its data cannot be made"))?;
    let sneakpeek = app
        .sneakpeek()?
        .ok_or_else(|| format!("{name}: has no evidence"))?;
    let mix = Mix::try_new(&app.card.workload_mix)?;
    let requests = Generator::new(recipe.data(), SEED, mix).samples(0, REQUESTS);
    let recalls: Vec<&[f64]> = app
        .variants
        .iter()
        .flat_map(|variant| &variant.card.exits)
        .map(|exit| exit.recall.as_slice())
        .collect();
    let mut counts = Vec::new();
    let mut sums = vec![0.0; BASES.len()];
    for request in &requests {
        for ((_, basis), sum) in BASES.iter().zip(&mut sums) {
            let jeffreys = || vec![ALPHA; app.card.classes.len()];
            let scaled = |shares: &[f64], by: f64| shares.iter().map(|share| share * by).collect();
            let frequencies = &app.card.validation.frequencies;
            let (prior, k): (Vec<f64>, usize) = match *basis {
                Basis::Profiled => (frequencies.clone(), 0),
                Basis::Vote => (jeffreys(), 0),
                Basis::Neighbours(k) => (jeffreys(), k),
                Basis::Workload(by) => (scaled(&app.card.workload_mix, by), 5),
                Basis::Validation(by) => (scaled(frequencies, by), 5),
            };
            match basis {
                Basis::Vote => sneakpeek.vote(&request.values, &mut counts),
                _ => sneakpeek.counts(&request.values, k, &mut counts),
            }
            let theta = posterior(&prior, &counts);
            for recall in &recalls {
                let estimate: f64 = theta.iter().zip(*recall).map(|(t, r)| t * r).sum();
                *sum += (estimate - recall[request.label]).abs();
            }
        }
    }
    let all = (requests.len() * recalls.len()) as f64;
    Ok(sums.iter().map(|sum| sum / all).collect())
}

/// Posterior mean of the class distribution (SneakPeek eq. 11).
fn posterior(prior: &[f64], counts: &[u32]) -> Vec<f64> {
    let weights = prior.iter().zip(counts);
    let weights: Vec<f64> = weights.map(|(a, &n)| a + f64::from(n)).collect();
    let sum: f64 = weights.iter().sum();
    weights.iter().map(|weight| weight / sum).collect()
}
