//! This server and others on real models, with onnxruntime called in an axum handler as the bound: ResNet-50,
//! MiniLM with texts of mixed lengths, a perceptron, and all of them at once.
//!
//! ```text
//! cargo xtask plugins
//! cargo bench -p switchyard --bench rivals
//! cargo bench -p switchyard --bench rivals -- --only inline --only mlserver --quick
//! ```
//!
//! Every server has one core, and the client has another one. Every one runs the same weights on one thread;
//! this one twice: on its own kernels, and with the graphs in onnxruntime, as all others. First each must answer
//! like the bound. Then 16 and 64 connections are busy with one model, without deadlines; the rate with 16 is
//! the server's capacity. Then requests arrive as a Poisson process at 1 and 2 times its capacity, with a
//! deadline of 500 ms (ResNet-50) or 150 ms (MiniLM), and their clients give up after twice that. `all` are
//! arrivals of the three models at 1 and 2 times: 0.45 of the capacity for ResNet-50, as much for MiniLM, and
//! 300 requests/s of the perceptron with a deadline of 100 ms. Capacities are those of the server itself.
//! text-embeddings-inference serves MiniLM only.
//!
//! Contenders take turns, each is started for its turn. The table has medians over the rounds. Peers that have
//! been built take part: `tests/peers`.

#![allow(clippy::unwrap_used, missing_docs)]

#[path = "rivals/connection.rs"]
mod connection;
#[path = "rivals/inline.rs"]
mod inline;
#[path = "rivals/load.rs"]
mod load;
#[path = "rivals/model.rs"]
mod model;
#[path = "race/model.rs"]
#[allow(dead_code)] // Shared with the other benches, so too below.
mod perceptron;
#[path = "race/process.rs"]
#[allow(dead_code)]
mod process;
#[path = "../../../models/benches/common/onnx.rs"]
#[allow(dead_code)]
mod python;
#[path = "rivals/report.rs"]
mod report;
#[path = "rivals/request.rs"]
mod request;
#[path = "../../../models/benches/common/resnet.rs"]
#[allow(dead_code)]
mod resnet;
#[path = "rivals/server.rs"]
mod server;
#[path = "../../../models/tests/common/text.rs"]
#[allow(dead_code)]
mod text_zoo;
#[path = "../../../models/benches/common/times.rs"]
#[allow(dead_code)]
mod times;
#[path = "rivals/zoo.rs"]
mod zoo;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use load::{Target, arriving, busy};
use model::Model;
use report::Turn;
use server::{CONTENDERS, Contender, Place};

/// Largest difference of a value of an answer.
const TOLERANCE: f32 = 1e-3;
/// The part of the capacity that each of the large models gets where all are asked at once, and the rate of the
/// small one.
const ALL_SHARE: f64 = 0.45;
const ALL_MLP_PER_S: f64 = 300.0;

/// Between two loads: longer than this server counts an arrival.
const FORGOTTEN: Duration = Duration::from_secs(3);

struct Options {
    rounds: usize,
    busy: Duration,
    arriving: Duration,
    only: Vec<String>,
    policy: String,
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [serve, port, library, folder] = args.as_slice()
        && serve == "inline"
    {
        return inline::serve(port.parse().unwrap(), library.as_ref(), folder.as_ref());
    }
    let options = Options::of(&args);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/rivals");
    // With the profile that this server has measured in the last race.
    let _ = std::fs::remove_dir_all(&folder);
    zoo::write(&folder);
    let library = library();
    let place = Place {
        models: &folder,
        library: &library,
        policy: &options.policy,
    };
    let contenders: Vec<Contender> = CONTENDERS
        .into_iter()
        .filter(|c| options.races(c))
        .collect();
    let mut wanted = BTreeMap::new();
    let mut turns: Vec<Vec<Turn>> = contenders.iter().map(|_| Vec::new()).collect();
    for round in 0..options.rounds {
        for (contender, turns) in contenders.iter().zip(&mut turns) {
            eprintln!("round {round}: {}", contender.name);
            switchyard_threads::pin(0).unwrap();
            let running = contender.start(&place);
            switchyard_threads::pin(1).unwrap();
            compare(contender.name, &mut wanted, answers(running.target));
            turns.push(options.turn(running.target));
            eprintln!("{:.2?}", turns.last().unwrap());
        }
    }
    let named = contenders.iter().map(|contender| contender.name);
    report::print(&named.zip(turns).collect::<Vec<_>>());
}

/// Waits until the last load is over: some servers go on with requests whose clients have given up. And while this
/// server remembers arrivals of other models, it refuses those of one that takes more than its share.
fn settle(target: Target) {
    answers(target);
    std::thread::sleep(FORGOTTEN);
}

fn answers(target: Target) -> BTreeMap<Model, Vec<f32>> {
    let answer = |&model: &Model| {
        // Behind the requests of the last load this may time out.
        let mut answers = (0..10).map(|_| target.answer(model));
        (model, answers.find_map(Result::ok).expect("an answer"))
    };
    target.dialect.models().iter().map(answer).collect()
}

/// Servers that compute something else than the first are no rivals.
fn compare(name: &str, wanted: &mut BTreeMap<Model, Vec<f32>>, found: BTreeMap<Model, Vec<f32>>) {
    for (model, found) in found {
        let wanted = wanted.entry(model).or_insert_with(|| found.clone());
        let apart = wanted.iter().zip(&found).map(|(a, b)| (a - b).abs());
        let apart = apart.fold(0_f32, f32::max);
        let same = wanted.len() == found.len() && apart <= TOLERANCE;
        assert!(same, "{name}: {} differs by {apart}", model.name());
    }
}

/// onnxruntime's library in the environment that has exported the graphs, so that all have one version.
fn library() -> PathBuf {
    let python = python::python().unwrap();
    let ask = "import onnxruntime, pathlib; \
               print(next(pathlib.Path(onnxruntime.__file__).parent.glob('capi/libonnxruntime.so.*')))";
    let output = std::process::Command::new(python)
        .args(["-c", ask])
        .output();
    PathBuf::from(String::from_utf8(output.unwrap().stdout).unwrap().trim())
}

// === impl Options ===

impl Options {
    fn of(args: &[String]) -> Self {
        let after = |name: &str| -> Vec<String> {
            let pairs = args.windows(2).filter(|pair| pair[0] == name);
            pairs.map(|pair| pair[1].clone()).collect()
        };
        let is_quick = args.iter().any(|arg| arg == "--quick");
        let rounds = if is_quick { 1 } else { 3 };
        Self {
            rounds: after("--rounds")
                .first()
                .map_or(rounds, |text| text.parse().unwrap()),
            busy: Duration::from_secs(if is_quick { 3 } else { 6 }),
            arriving: Duration::from_secs(if is_quick { 5 } else { 10 }),
            only: after("--only"),
            policy: after("--policy").pop().unwrap_or("yardmaster".to_owned()),
        }
    }

    fn races(&self, contender: &Contender) -> bool {
        let is_wanted = self.only.is_empty() || self.only.iter().any(|name| name == contender.name);
        let missing = contender.missing().filter(|_| is_wanted);
        if let Some(reason) = &missing {
            eprintln!("{} is not raced: {reason}", contender.name);
        }
        is_wanted && missing.is_none()
    }

    /// All loads on one server.
    fn turn(&self, target: Target) -> Turn {
        let mut turn = Turn::default();
        for &model in target.dialect.models() {
            settle(target);
            busy(target, model, 4, self.busy / 3);
            let loads = [16, 64].map(|connections| busy(target, model, connections, self.busy));
            turn.busy.insert(model, loads);
        }
        let capacity = |model| Some((model, turn.busy.get(&model)?[0].per_s));
        let [images, texts] = [Model::Resnet50, Model::Minilm].map(capacity);
        for (model, per_s) in [images, texts].into_iter().flatten() {
            let rates = [1.0, 2.0].map(|times| {
                settle(target);
                let arrived = arriving(target, &[(model, per_s * times)], self.arriving);
                arrived[0].of(self.arriving)
            });
            turn.alone.insert(model, rates);
        }
        let (Some(images), Some(texts)) = (images, texts) else {
            return turn;
        };
        let all = [1.0, 2.0].map(|times| {
            settle(target);
            let of = |(model, per_s): (Model, f64)| (model, per_s * ALL_SHARE * times);
            let rates = [of(images), of(texts), (Model::Mlp, ALL_MLP_PER_S * times)];
            let arrived = arriving(target, &rates, self.arriving);
            let each = arrived.iter().map(|one| one.of(self.arriving));
            each.collect::<Vec<_>>()
        });
        let each = Model::ALL.into_iter().enumerate();
        turn.all = each
            .map(|(at, model)| (model, [all[0][at], all[1][at]]))
            .collect();
        turn
    }
}
