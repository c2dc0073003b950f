//! Values of options.

use switchyard_models::card::Task;
use switchyard_models::networks::bert::{Pooling, ScoreActivation};
use switchyard_models::networks::inverted::ImagePadding;
use switchyard_models::onnx::OnnxScores;

pub(super) fn task(text: &str) -> Result<Task, String> {
    let all = [
        Task::Classify,
        Task::Embed,
        Task::Regress,
        Task::Score,
        Task::Tensors,
    ];
    let found = all.into_iter().find(|task| task.name() == text);
    found.ok_or_else(|| "expected classify, embed, regress, score or tensors".to_owned())
}

pub(super) fn scores(text: &str) -> Result<OnnxScores, String> {
    match text {
        "logits" => Ok(OnnxScores::Logits),
        "probabilities" => Ok(OnnxScores::Probabilities),
        _ => Err("expected logits or probabilities".to_owned()),
    }
}

pub(super) fn pooling(text: &str) -> Result<Pooling, String> {
    match text {
        "mean" => Ok(Pooling::Mean),
        "cls" => Ok(Pooling::Cls),
        "max" => Ok(Pooling::Max),
        "last-token" => Ok(Pooling::LastToken),
        _ => Err("expected mean, cls, max or last-token".to_owned()),
    }
}

pub(super) fn activation(text: &str) -> Result<ScoreActivation, String> {
    match text {
        "identity" => Ok(ScoreActivation::Identity),
        "sigmoid" => Ok(ScoreActivation::Sigmoid),
        _ => Err("expected identity or sigmoid".to_owned()),
    }
}

pub(super) fn padding(text: &str) -> Result<ImagePadding, String> {
    match text {
        "centred" => Ok(ImagePadding::Centred),
        "same" => Ok(ImagePadding::Same),
        _ => Err("expected centred or same".to_owned()),
    }
}

pub(super) fn quality(text: &str) -> Result<f64, String> {
    let quality: f64 = text.parse().map_err(|_| "expected a number")?;
    match (0.0..=1.0).contains(&quality) {
        true => Ok(quality),
        false => Err("expected a number from 0 to 1".to_owned()),
    }
}

pub(super) fn shape(text: &str) -> Result<(String, Vec<usize>), String> {
    let refuse = || "expected NAME=SIZE or NAME=SIZExSIZE".to_owned();
    let (name, sizes) = text.split_once('=').ok_or_else(refuse)?;
    let sizes = sizes
        .split('x')
        .map(|size| size.parse().map_err(|_| refuse()));
    Ok((name.to_owned(), sizes.collect::<Result<_, _>>()?))
}
