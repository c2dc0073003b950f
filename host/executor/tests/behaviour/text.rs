//! Texts: tokenised while a batch is assembled, and answered.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use switchyard_core::catalog::Catalog;
use switchyard_core::ids::{AppId, BatchId, ExitId, RequestId, VariantId};
use switchyard_core::residents::Soon;
use switchyard_executor::energy::Meters;
use switchyard_executor::executor::Executor;
use switchyard_executor::manifest::Manifest;
use switchyard_executor::{
    BatchOutput, CandleBench, CandleExecutor, Device, InputTensor, Job, JobRow, ModelSource,
    TextInput, Weights,
};
use switchyard_models::{Zoo, tokenizer_of};

use crate::bench::{kind, measured};
use crate::text_zoo::{Answers, HIDDEN, MAX_TOKENS, write_app};

const CLASSIFIER: VariantId = VariantId(0);
const ENCODER: VariantId = VariantId(1);

/// `mood`, which classifies, then `sense`, which embeds.
fn zoo(dir: &Path) -> Manifest {
    write_app(dir, "mood", Answers::Classes, &["tiny"]);
    write_app(dir, "sense", Answers::Embeddings, &["tiny"]);
    Manifest::all(&Zoo::open(dir).unwrap()).unwrap()
}

fn executor(manifest: &Manifest) -> CandleExecutor {
    let source: Arc<dyn ModelSource> = Arc::clone(&manifest.source) as _;
    CandleExecutor::new(Weights::new(source), Device::Cpu, u64::MAX)
}

/// Stages `[from, to)` for these requests; the exit follows stage 2.
fn job(variant: VariantId, [from, to]: [u32; 2], rows: &[(u64, &str)]) -> Job {
    let rows = rows.iter().map(|&(request, text)| JobRow {
        request: RequestId(request),
        input: (from == 0).then(|| [InputTensor::Text(text.into())].into()),
    });
    Job {
        batch: BatchId(1),
        app: AppId(variant.0),
        variant,
        from_stage: from,
        to_stage: to,
        exit: (to == 2).then_some(ExitId(0)),
        rows: rows.collect(),
        soon: Soon::new(),
        until: None,
    }
}

fn answers(executor: &mut CandleExecutor, mut job: Job) -> Vec<Vec<f32>> {
    let output = executor.run(&mut job).result.unwrap();
    output.rows().map(<[f32]>::to_vec).collect()
}

fn assert_close(a: &[f32], b: &[f32]) {
    assert_eq!(a.len(), b.len());
    assert!(
        a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-5),
        "{a:?} {b:?}"
    );
}

#[test]
fn texts_of_different_lengths_share_a_batch() {
    let dir = tempfile::tempdir().unwrap();
    let mut executor = executor(&zoo(dir.path()));
    // The long one is computed apart: it is wider than the others by more than a group costs.
    let long = "w9 w8 ".repeat(MAX_TOKENS);
    let texts = [(1, "w4"), (2, "W5 w6"), (4, long.as_str()), (3, "")];
    for (variant, width) in [(CLASSIFIER, 3), (ENCODER, HIDDEN)] {
        let together = answers(&mut executor, job(variant, [0, 2], &texts));
        assert_eq!(together.len(), 4);
        for (row, text) in together.iter().zip(texts) {
            assert_eq!(row.len(), width);
            let alone = answers(&mut executor, job(variant, [0, 2], &[text]));
            assert_close(row, &alone[0]);
        }
        assert_ne!(together[0], together[1]);
    }
}

/// The tokens that the host counted are those that the model reads, whichever is made first.
#[test]
fn a_pair_of_texts_has_one_score() {
    let dir = tempfile::tempdir().unwrap();
    write_app(dir.path(), "rank", Answers::Score, &["tiny"]);
    let manifest = Manifest::all(&Zoo::open(dir.path()).unwrap()).unwrap();
    let tokenizer = tokenizer_of(&dir.path().join("rank/tiny"))
        .unwrap()
        .unwrap();
    let mut executor = executor(&manifest);
    let mut score = |pairs: &[(&str, &str)], counted: bool| {
        let mut job = job(VariantId(0), [0, 2], &[]);
        for (request, (text, second)) in (0..).zip(pairs) {
            let (mut text, second) = (TextInput::from(*text), TextInput::from(*second));
            if counted {
                let tokens = text.tokenise_pair(&second, &tokenizer).unwrap();
                assert!(tokens as usize <= MAX_TOKENS);
            }
            job.rows.push(JobRow {
                request: RequestId(request),
                input: Some(
                    [InputTensor::Text(text), InputTensor::Text(second)]
                        .into_iter()
                        .collect(),
                ),
            });
        }
        answers(&mut executor, job)
    };
    let long = "w9 w8 ".repeat(MAX_TOKENS);
    let pairs = [("w4 w5", "w6"), ("w4 w5", long.as_str()), ("", "")];
    let together = score(&pairs, true);
    assert_eq!(together.len(), 3);
    for (row, pair) in together.iter().zip(pairs) {
        assert!(row.len() == 1 && (0.0..=1.0).contains(&row[0]), "{row:?}");
        assert_close(row, &score(&[pair], false)[0]);
    }
    assert_ne!(together[0], together[1]);
    assert_ne!(score(&[("w6", "w4 w5")], true)[0], together[0], "in order");
}

#[test]
fn texts_parked_in_different_batches_continue_together() {
    let dir = tempfile::tempdir().unwrap();
    let mut executor = executor(&zoo(dir.path()));
    let (short, long) = ((1, "w4"), (2, "w5 w6 w7 w8 w9"));
    for text in [short, long] {
        let parked = executor.run(&mut job(ENCODER, [0, 1], &[text]));
        assert_eq!(parked.result.unwrap(), BatchOutput::Parked);
    }
    let joined = answers(&mut executor, job(ENCODER, [1, 2], &[short, long]));
    for (row, text) in joined.iter().zip([short, long]) {
        let whole = answers(&mut executor, job(ENCODER, [0, 2], &[text]));
        assert_close(row, &whole[0]);
    }
}

#[test]
fn an_encoder_without_its_tokenizer_fails_alone() {
    let dir = tempfile::tempdir().unwrap();
    let manifest = zoo(dir.path());
    let file = dir.path().join("sense/tiny/tokenizer.json");
    let whole = std::fs::read(&file).unwrap();
    for damaged in [None, Some(&whole[..whole.len() / 2])] {
        match damaged {
            None => std::fs::remove_file(&file).unwrap(),
            Some(bytes) => std::fs::write(&file, bytes).unwrap(),
        }
        let mut executor = executor(&manifest);
        let failed = executor.run(&mut job(ENCODER, [0, 2], &[(1, "w4")]));
        let error = failed.result.unwrap_err();
        assert!(!error.is_fatal());
        let error = error.to_string();
        assert!(error.starts_with("sense/tiny: "), "{error}");
        assert!(error.contains("tokenizer.json"), "{error}");
        answers(&mut executor, job(CLASSIFIER, [0, 2], &[(2, "w4")]));
    }
    std::fs::write(&file, whole).unwrap();
    answers(&mut executor(&manifest), job(ENCODER, [0, 2], &[(3, "w4")]));
}

#[test]
fn an_encoder_is_renewed_while_it_serves() {
    let dir = tempfile::tempdir().unwrap();
    let source: Arc<dyn ModelSource> = zoo(dir.path()).source;
    let weights = Weights::new(source);
    for variant in [CLASSIFIER, ENCODER] {
        weights.renew(variant, &[Device::Cpu]).unwrap();
    }
}

#[test]
fn numbers_are_refused_as_text() {
    let dir = tempfile::tempdir().unwrap();
    let mut executor = executor(&zoo(dir.path()));
    let mut wrong = job(CLASSIFIER, [0, 2], &[(7, "w4")]);
    wrong.rows[0].input = Some([InputTensor::F32(vec![1.0].into())].into());
    let error = executor.run(&mut wrong).result.unwrap_err().to_string();
    assert_eq!(
        error,
        "request 7: input `text`: type F32, the model takes Text"
    );
}

#[test]
fn encoders_are_measured_with_their_longest_text() {
    let dir = tempfile::tempdir().unwrap();
    let manifest = zoo(dir.path());
    let source: Arc<dyn ModelSource> = Arc::clone(&manifest.source) as _;
    let bench = CandleBench {
        source: &source,
        kinds: &[kind(1)],
        meters: Meters::default(),
    };
    let catalog = Catalog {
        apps: manifest.apps.clone(),
        variants: manifest.variants.clone(),
        ..Catalog::default()
    };
    let file = measured(&catalog, &bench, Duration::from_millis(50)).unwrap();
    assert_eq!(file.models.len(), 2);
    // All stages, the first one and the last one, for batches of 1, 2 and 4.
    assert_eq!(file.latencies.len(), 2 * 3 * 3);
}
