//! The classifier that the embedding is trained with, as evidence: one vote instead of the
//! neighbours'.

use super::file::{CLASSIFIER, EvidenceTensors};
use super::layer::EvidenceLayer;
use crate::error::ModelError;

/// One linear layer on the embedding.
#[derive(Clone, Debug)]
pub(super) struct Classifier(EvidenceLayer);

// === impl Classifier ===

impl Classifier {
    /// The classifier of an evidence file, if it has one.
    pub(super) fn read(
        tensors: &mut EvidenceTensors<'_>,
        dimensions: usize,
        classes: usize,
    ) -> Result<Option<Self>, ModelError> {
        match EvidenceLayer::read(tensors, CLASSIFIER, dimensions)? {
            Some(layer) if layer.outputs() != classes => {
                let reason = format!("has {} classes, must have {classes}", layer.outputs());
                let name = format!("{CLASSIFIER}.weight");
                Err(ModelError::tensor(tensors.file, &name, reason))
            }
            layer => Ok(layer.map(Self)),
        }
    }

    /// The most likely class of an embedded input; the lower label of equally likely ones.
    pub(super) fn classify(&self, embedded: &[f32]) -> usize {
        let scores = self.0.apply(embedded);
        (0..scores.len())
            .rev()
            .max_by(|&a, &b| scores[a].total_cmp(&scores[b]))
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_likely_class_wins_and_ties_go_to_the_lower() {
        let classifier = Classifier(EvidenceLayer::linear(vec![1.0, -1.0, 0.0], 3));
        assert_eq!(classifier.classify(&[2.0]), 0);
        assert_eq!(classifier.classify(&[-2.0]), 1);
        assert_eq!(classifier.classify(&[0.0]), 0, "all scores are equal");
    }
}
