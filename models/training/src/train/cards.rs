//! Writing the results of a run into cards.

use std::path::Path;

use switchyard_models::ModelError;
use switchyard_models::card::{
    AppCard, Datatype, ExitCard, SneakPeekCard, Task, TensorCard, ValidationCard,
};

use super::recipe::AppFacts;
use crate::confusion::Confusion;

/// File name of a trained variant's weights.
pub(super) const WEIGHTS: &str = "weights.safetensors";

/// The card of an application whose validation set has `samples` inputs, equally many of each
/// class.
pub(super) fn app(
    facts: &AppFacts,
    samples: usize,
    seed: u64,
    sneakpeek: Option<SneakPeekCard>,
) -> AppCard {
    let classes = facts.classes.len();
    let output = |name: &str, datatype, width: usize| TensorCard::fixed(name, datatype, &[width]);
    AppCard {
        non_finite: false,
        name: facts.name.to_owned(),
        summary: facts.summary.to_owned(),
        task: Task::Classify,
        classes: facts.classes.clone(),
        classes_file: None,
        slo_ms: facts.slo_ms,
        penalty: facts.penalty,
        workload_mix: facts.workload_mix.iter().copied().map(rounded).collect(),
        inputs: facts.inputs.clone(),
        outputs: vec![
            output("probabilities", Datatype::Fp32, classes),
            output("label", Datatype::Int64, 1),
        ],
        validation: ValidationCard {
            samples: samples as u64,
            frequencies: vec![rounded(1.0 / classes as f64); classes],
            seed,
        },
        sneakpeek,
    }
}

/// Exits with their measured profiles, shallowest first.
pub(super) fn exits(after: &[usize], confusions: &[Confusion]) -> Vec<ExitCard> {
    let last = after.len().saturating_sub(1);
    after
        .iter()
        .zip(confusions)
        .enumerate()
        .map(|(i, (&after_stage, confusion))| ExitCard {
            name: if i == last {
                "final".to_owned()
            } else {
                format!("exit{}", i + 1)
            },
            after_stage,
            accuracy: rounded(confusion.accuracy()),
            recall: confusion.recall().into_iter().map(rounded).collect(),
            confusion: confusion.rows().to_vec(),
        })
        .collect()
}

/// Writes a card as TOML, whole or not at all.
pub(super) fn write<T: serde::Serialize>(file: &Path, card: &T) -> Result<(), ModelError> {
    let text = toml::to_string(card)
        .map_err(|error| ModelError::Training(format!("writing {}: {error}", file.display())))?;
    // A server that follows the zoo, and an interrupted training, see the old card or the new one.
    let partial = file.with_extension("partial");
    let written = std::fs::write(&partial, text).and_then(|()| std::fs::rename(&partial, file));
    written.map_err(|source| {
        // The error that matters is the one being returned.
        let _ = std::fs::remove_file(&partial);
        ModelError::io(file, source)
    })
}

/// Creates a folder and its parents.
pub(super) fn make_dir(dir: &Path) -> Result<(), ModelError> {
    std::fs::create_dir_all(dir).map_err(|source| ModelError::io(dir, source))
}

/// Four decimals: the precision of a card, within the tolerance of its check.
pub(super) fn rounded(share: f64) -> f64 {
    (share * 1e4).round() / 1e4
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_card_is_written_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let card = BTreeMap::from([("name", "heart")]);
        let file = folder.path().join("app.toml");
        std::fs::write(&file, "old").unwrap();
        write(&file, &card).unwrap();
        assert_eq!(
            std::fs::read_to_string(&file).unwrap(),
            "name = \"heart\"\n"
        );
        // A folder cannot be replaced by a file.
        let taken = folder.path().join("model.toml");
        std::fs::create_dir(&taken).unwrap();
        write(&taken, &card).unwrap_err();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
    }
}
