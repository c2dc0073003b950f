//! Recorded votes of neighbours, by the class of the request.

use switchyard_core::request::Evidence;

use crate::random::{Stream, running_sums};

/// The votes that samples of each class got.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedVotes {
    classes: Vec<ClassVotes>,
}

/// The different votes of one class, each with the number of samples that got them.
#[derive(Clone, Debug, PartialEq)]
struct ClassVotes {
    votes: Vec<Evidence>,
    /// Running sums of the samples.
    sums: Vec<f64>,
}

// === impl RecordedVotes ===

impl RecordedVotes {
    /// For each class, the votes by class and the number of samples that got them.
    ///
    /// # Errors
    /// Names the class without samples, or with votes for another number of classes.
    pub fn try_new(classes: Vec<Vec<(Vec<u32>, u64)>>) -> Result<Self, String> {
        let count = classes.len();
        let of_class = |(class, rows): (usize, Vec<(Vec<u32>, u64)>)| {
            if rows.iter().all(|(_, samples)| *samples == 0) {
                return Err(format!("class {class}: has no samples"));
            }
            if let Some((votes, _)) = rows.iter().find(|(votes, _)| votes.len() != count) {
                let given = votes.len();
                return Err(format!(
                    "class {class}: votes for {given} classes, must be {count}"
                ));
            }
            Ok(ClassVotes {
                sums: running_sums(rows.iter().map(|(_, samples)| *samples as f64)),
                votes: rows
                    .into_iter()
                    .map(|(votes, _)| votes.into_iter().collect())
                    .collect(),
            })
        };
        let classes = classes.into_iter().enumerate().map(of_class);
        Ok(Self {
            classes: classes.collect::<Result<_, _>>()?,
        })
    }

    /// Number of classes.
    pub fn classes(&self) -> usize {
        self.classes.len()
    }

    /// The votes of one of the samples of a class, each as likely as the others.
    pub(crate) fn draw(&self, class: usize, stream: &mut Stream) -> Evidence {
        let of_class = &self.classes[class];
        of_class.votes[stream.pick(&of_class.sums)].clone()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::random::Purpose;

    #[test]
    fn votes_are_drawn_in_proportion_to_their_samples() {
        let rows = vec![
            vec![(vec![5, 0], 3), (vec![2, 3], 1)],
            vec![(vec![0, 5], 1)],
        ];
        let votes = RecordedVotes::try_new(rows).unwrap();
        let mut stream = Stream::new(1, Purpose::Evidence, 1);
        let wrong = (0..20_000).filter(|_| votes.draw(0, &mut stream)[..] == [2, 3]);
        let share = wrong.count() as f64 / 20_000.0;
        assert!((share - 0.25).abs() < 0.01, "{share}");
        assert_eq!(votes.draw(1, &mut stream)[..], [0, 5]);
    }

    #[test]
    fn classes_without_samples_and_of_another_app_are_refused() {
        let error = |rows| RecordedVotes::try_new(rows).unwrap_err();
        let empty = error(vec![vec![(vec![1, 0], 1)], vec![]]);
        assert!(empty.contains("class 1"), "{empty}");
        let other = error(vec![vec![(vec![1, 0, 0], 1)], vec![(vec![0, 1], 1)]]);
        assert!(other.contains("3 classes, must be 2"), "{other}");
    }
}
