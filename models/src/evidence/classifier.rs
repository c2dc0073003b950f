//! The classifier that an embedding is trained with: one vote in the place of neighbours'.

use super::Tensors;
use super::dense::Dense;
use crate::error::ModelError;

/// Name of its layer. Without one behind it, the embedding has to tell the classes apart by
/// itself, and neighbours in it share their class.
pub(crate) const CLASSIFIER: &str = "classifier";

/// One linear layer on the embedding.
#[derive(Clone, Debug)]
pub(super) struct Classifier(Dense);

// === impl Classifier ===

impl Classifier {
    /// The classifier of an evidence file, if it has one.
    pub(super) fn read(
        tensors: &mut Tensors<'_>,
        dimensions: usize,
        classes: usize,
    ) -> Result<Option<Self>, ModelError> {
        match Dense::read(tensors, CLASSIFIER, dimensions)? {
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
        let classifier = Classifier(Dense::linear(vec![1.0, -1.0, 0.0], 3));
        assert_eq!(classifier.classify(&[2.0]), 0);
        assert_eq!(classifier.classify(&[-2.0]), 1);
        assert_eq!(classifier.classify(&[0.0]), 0, "all are even");
    }
}
