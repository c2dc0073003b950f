//! Batches on a far worker answer as in this process.

use std::sync::Arc;

use serde_json::json;
use switchyard_core::ids::{AppId, BatchId, ExitId, RequestId, VariantId};
use switchyard_core::residents::Soon;
use switchyard_executor::{
    CandleExecutor, Device, Executor, InputTensor, Job, JobRow, ModelSource, Weights,
};
use switchyard_remote::{RemoteExecutor, RemoteModel, RemoteOptions};

use super::super::fixture::beats;
use super::{blocking, manifest, options, two_workers};

pub(super) fn batch(rows: usize, variant: VariantId, to_stage: u32, exit: ExitId) -> Job {
    let body: serde_json::Value = serde_json::from_str(&beats(0, rows, &json!({}))).unwrap();
    let input = &body["inputs"][0];
    let data: Vec<f32> = serde_json::from_value(input["data"].clone()).unwrap();
    let width = data.len() / rows;
    let row = |row: usize| JobRow {
        request: RequestId(row as u64),
        input: Some(
            std::iter::once(InputTensor::F32(
                data[row * width..(row + 1) * width].to_vec().into(),
            ))
            .collect(),
        ),
    };
    Job {
        batch: BatchId(0),
        app: AppId(0),
        variant,
        from_stage: 0,
        to_stage,
        exit: Some(exit),
        rows: (0..rows).map(row).collect(),
        soon: Soon::new(),
        until: None,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_remote_batch_has_the_same_answers_at_every_exit_and_a_misfit_names_both_values() {
    let (addresses, _workers) = two_workers().await;
    blocking(move || {
        let options = options(addresses[0]);
        misfits(&options);
        compare(options);
    })
    .await;
}

fn misfits(options: &RemoteOptions) {
    let refused = |change: fn(&mut RemoteModel)| {
        let mut models = options.models.to_vec();
        change(&mut models[0]);
        let wrong = RemoteOptions {
            models: models.into(),
            ..options.clone()
        };
        match RemoteExecutor::connect(wrong) {
            Ok(_) => panic!("it connects"),
            Err(error) => error.to_string(),
        }
    };
    let error = refused(|model| model.inputs[0].name = "x".to_owned());
    assert!(
        error.contains("input x: the server has only `beat`"),
        "{error}"
    );
    let error = refused(|model| model.inputs[0].shape = vec![188]);
    assert!(
        error.contains("[-1, 187]") && error.contains("[188]"),
        "{error}"
    );
    let error = refused(|model| model.versions[0] = "none".to_owned());
    assert!(
        error.contains("status 5") && error.contains("none"),
        "{error}"
    );
}

/// Every exit of every variant answers as in this process.
pub(in super::super) fn compare(options: RemoteOptions) {
    let manifest = manifest();
    let mut remote = RemoteExecutor::connect(options).unwrap();
    let source: Arc<dyn ModelSource> = Arc::clone(&manifest.source) as _;
    let mut local = CandleExecutor::new(Weights::new(source), Device::Cpu, u64::MAX);
    let mut exits = 0;
    for (id, variant) in (0..).map(VariantId).zip(&manifest.variants) {
        for (exit, spec) in (0..).map(ExitId).zip(&variant.exits) {
            let job = || batch(7, id, spec.after_stage, exit);
            let here = local.run(&mut job()).result.unwrap();
            let there = remote.run(&mut job()).result.unwrap();
            assert_eq!(here, there, "{}: {}", variant.name, spec.name);
            exits += 1;
        }
    }
    assert!(
        exits > manifest.variants.len(),
        "a variant has several exits"
    );
}
