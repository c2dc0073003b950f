//! ONNX graphs under the same cache, budget and replacement as any other variant. The tests pass
//! without a check on machines without onnxruntime.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use candle_core::Device;
use switchyard_core::ids::{AppId, BatchId, ExitId, RequestId, VariantId, WorkerId};
use switchyard_core::residents::Soon;
use switchyard_executor::manifest::Manifest;
use switchyard_executor::{
    BatchOutput, CandleExecutor, Executor, InputTensor, Job, JobRow, Weights, Worker, WorkerEvent,
    WorkerOptions,
};
use switchyard_models::Zoo;
use tempfile::TempDir;

use crate::onnx_zoo::{self, PARAMETERS, SAMPLES, perceptron};

/// Ids are in the order of the names.
const GRAPH: VariantId = VariantId(0);
const PLAIN: VariantId = VariantId(1);

/// Bytes that each takes.
const BYTES: u64 = PARAMETERS as u64 * 4;

struct GraphZoo {
    _dir: TempDir,
    graph: PathBuf,
    weights: Arc<Weights>,
}

fn graph_zoo() -> GraphZoo {
    let dir = tempfile::tempdir().unwrap();
    let graph = onnx_zoo::write(dir.path());
    let manifest = Manifest::all(&Zoo::open(dir.path()).unwrap()).unwrap();
    let sizes: Vec<u64> = manifest.variants.iter().map(|v| v.memory_bytes).collect();
    assert_eq!(sizes, [BYTES; 2]);
    GraphZoo {
        _dir: dir,
        graph,
        weights: Weights::new(manifest.source),
    }
}

fn job(variant: VariantId, rows: u64) -> Job {
    let row = |request| JobRow {
        request: RequestId(request),
        input: Some(
            [InputTensor::F32(
                (0..SAMPLES as u64)
                    .map(|i| ((i * 5 + request) % 7) as f32 / 7.0)
                    .collect(),
            )]
            .into(),
        ),
    };
    Job {
        batch: BatchId(1),
        app: AppId(0),
        variant,
        from_stage: 0,
        to_stage: 1,
        exit: Some(ExitId(0)),
        rows: (0..rows).map(row).collect(),
        soon: Soon::new(),
        until: None,
    }
}

fn probabilities(output: BatchOutput) -> Vec<f32> {
    match output {
        BatchOutput::Answered { probabilities, .. } => probabilities,
        other => panic!("not answered: {other:?}"),
    }
}

fn answers(executor: &mut CandleExecutor, variant: VariantId) -> Vec<f32> {
    probabilities(executor.run(&mut job(variant, 3)).result.unwrap())
}

fn are_close(a: &[f32], b: &[f32]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-5)
}

/// Replaces the file by another graph, whole at once.
fn replace(graph: &Path, bytes: &[u8]) {
    std::fs::write(graph.join("next.onnx"), bytes).unwrap();
    std::fs::rename(graph.join("next.onnx"), graph.join("model.onnx")).unwrap();
}

#[test]
fn a_graph_takes_its_part_of_the_budget_and_is_evicted() {
    let zoo = graph_zoo();
    let mut executor = CandleExecutor::new(zoo.weights.clone(), Device::Cpu, BYTES + 10);
    let of_graph = answers(&mut executor, GRAPH);
    assert_eq!(executor.residency().resident, [GRAPH]);
    assert_eq!(executor.residency().free_bytes, 10);
    let of_plain = answers(&mut executor, PLAIN);
    assert!(are_close(&of_graph, &of_plain), "{of_graph:?} {of_plain:?}");
    assert_eq!(executor.residency().resident, [PLAIN], "evicted");
    let outcome = executor.run(&mut job(GRAPH, 1));
    assert!(outcome.result.is_ok() && outcome.load.0 > 0, "loaded again");
    executor.unload(GRAPH);
    assert_eq!(executor.residency().free_bytes, BYTES + 10);

    let mut small = CandleExecutor::new(zoo.weights, Device::Cpu, BYTES - 1);
    let error = small.run(&mut job(GRAPH, 1)).result.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "pulse/graph: takes {BYTES} bytes, the worker's budget is {}",
            BYTES - 1
        )
    );
}

#[test]
fn a_new_graph_replaces_the_old_one_unless_it_is_wrong() {
    let zoo = graph_zoo();
    let mut executor = CandleExecutor::new(zoo.weights.clone(), Device::Cpu, 1_000);
    let first = answers(&mut executor, GRAPH);
    replace(&zoo.graph, &perceptron(2.0).bytes());
    let renewed = zoo.weights.renew(GRAPH, &[Device::Cpu]).unwrap();
    assert!(are_close(&answers(&mut executor, GRAPH), &first), "not yet");
    executor.replace(GRAPH, &renewed[0]);
    let second = answers(&mut executor, GRAPH);
    assert!(!are_close(&second, &first));

    let refused = |reason: &str| {
        let error = zoo.weights.renew(GRAPH, &[Device::Cpu]).err().unwrap();
        let message = error.to_string();
        assert!(
            message.starts_with("pulse/graph: ") && message.contains(reason),
            "{message}"
        );
    };
    let mut unknown = perceptron(3.0);
    unknown.nodes[1].op_type = "Rectify".to_owned();
    replace(&zoo.graph, &unknown.bytes());
    refused("Rectify");
    let mut larger = perceptron(3.0);
    let more = crate::onnx::Weight::new("more", &[2], &[1.0, 2.0]);
    larger.weights.push(more);
    replace(&zoo.graph, &larger.bytes());
    refused("`parameters` is 101 now, the pool started with 99");
    let mut infinite = perceptron(3.0);
    infinite.weights[3] = crate::onnx::Weight::new("b1", &[3], &[f32::NAN; 3]);
    replace(&zoo.graph, &infinite.bytes());
    refused("a trial run: pulse/graph: the answer: has NaN");
    assert!(are_close(&answers(&mut executor, GRAPH), &second), "kept");
}

/// Two workers share the graph, one with one thread, one with two.
#[test]
fn workers_of_different_sizes_run_it_at_once() {
    let zoo = graph_zoo();
    let (send, events) = crossbeam_channel::unbounded();
    let workers: Vec<Worker> = [1, 2]
        .into_iter()
        .map(|threads| {
            let options = WorkerOptions {
                id: WorkerId(threads as u32),
                name: format!("worker-{threads}"),
                threads,
                cores: Vec::new(),
                commands_max: 100,
                outstanding: 1,
            };
            let executor = CandleExecutor::new(zoo.weights.clone(), Device::Cpu, 1_000);
            let send = send.clone();
            let report = move |event| send.send(event).unwrap();
            Worker::spawn(options, Box::new(executor), report).unwrap()
        })
        .collect();
    for _ in 0..40 {
        for worker in &workers {
            worker.run(job(GRAPH, 3)).unwrap();
        }
    }
    let mut alone = CandleExecutor::new(zoo.weights, Device::Cpu, 1_000);
    let wanted = answers(&mut alone, PLAIN);
    let mut finished = 0;
    while finished < 80 {
        let event = events
            .recv_timeout(std::time::Duration::from_secs(60))
            .unwrap();
        if let WorkerEvent::Finished(end) = event {
            assert!(are_close(&probabilities(end.result.unwrap()), &wanted));
            finished += 1;
        }
    }
}
