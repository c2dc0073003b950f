//! Activations that are parked between the stages of a request.

use std::collections::HashMap;
use std::ops::Range;

use candle_core::Tensor;
use switchyard_core::ids::{RequestId, VariantId};
use switchyard_models::StagedModel;

use crate::error::ExecuteError;
use crate::job::JobRow;

/// The stages that a parked request has behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StageProgress {
    pub(crate) variant: VariantId,
    pub(crate) stages_run: u32,
}

/// Parked activations. They stay on the device in the batches that made them, one group per batch.
///
/// A group's memory is freed once its last row is released: rows are views into it.
#[derive(Default)]
pub(crate) struct ParkedActivations {
    rows: HashMap<RequestId, ParkedRow>,
    groups: HashMap<u64, ParkedGroup>,
    next_group: u64,
    bytes: u64,
}

/// Where a request's activations are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ParkedRow {
    group: u64,
    /// Position along dimension 0 of the group's tensor.
    index: usize,
}

struct ParkedGroup {
    progress: StageProgress,
    /// The generation of the variant's weights that made them.
    generation: u64,
    /// `[rows, ..]`, contiguous.
    activations: Tensor,
    /// Rows that are still parked.
    live: usize,
    bytes: u64,
}

/// Neighbouring rows of a batch that continue with the same weights.
#[derive(Clone, Debug)]
pub(crate) struct ContinuedRows {
    pub(crate) generation: u64,
    pub(crate) rows: usize,
    /// `[rows, ..]`.
    pub(crate) activations: Tensor,
}

// === impl ParkedActivations ===

impl ParkedActivations {
    /// Bytes of the device that parked activations take.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Parks row i of `activations` for the i-th request.
    pub(crate) fn park(
        &mut self,
        requests: impl Iterator<Item = RequestId>,
        progress: StageProgress,
        generation: u64,
        activations: Tensor,
    ) {
        let group = self.next_group;
        self.next_group += 1;
        let mut live = 0;
        for (index, request) in requests.enumerate() {
            self.release(request);
            self.rows.insert(request, ParkedRow { group, index });
            live += 1;
        }
        let bytes = bytes_of(&activations);
        self.bytes += bytes;
        let parked = ParkedGroup {
            progress,
            generation,
            activations,
            live,
            bytes,
        };
        self.groups.insert(group, parked);
    }

    /// Whether activations of these weights are parked.
    pub(crate) fn holds(&self, variant: VariantId, generation: u64) -> bool {
        let mut groups = self.groups.values();
        groups.any(|group| (group.progress.variant, group.generation) == (variant, generation))
    }

    /// Drops a request's activations. Returns whether it was parked.
    pub(crate) fn release(&mut self, request: RequestId) -> bool {
        let Some(row) = self.rows.remove(&request) else {
            return false;
        };
        if let Some(group) = self.groups.get_mut(&row.group) {
            group.live -= 1;
            if group.live == 0 {
                self.bytes -= group.bytes;
                self.groups.remove(&row.group);
            }
        }
        true
    }

    /// Takes the activations of all rows, in their order: as one batch of `model`, or as several if
    /// different weights made them.
    ///
    /// Nothing is copied if the rows were parked as neighbours of one batch, in this order.
    pub(crate) fn take(
        &mut self,
        rows: &[JobRow],
        progress: StageProgress,
        model: &dyn StagedModel,
    ) -> Result<Vec<ContinuedRows>, ExecuteError> {
        let mut parked = Vec::with_capacity(rows.len());
        for row in rows {
            parked.push(self.find(row.request, progress)?);
        }
        let refuse = |at: usize, reason: &str| {
            let request = rows.get(at).map(|row| row.request).unwrap_or_default();
            ExecuteError::not_parked(request, reason)
        };
        let mut parts: Vec<(u64, usize, Vec<Tensor>)> = Vec::new();
        for range in neighbours(&parked) {
            let first = parked[range.start];
            let Some(group) = self.groups.get(&first.group) else {
                return Err(refuse(range.start, "not parked here"));
            };
            // For the whole group candle returns the same tensor.
            let tensor = group.activations.narrow(0, first.index, range.len());
            let tensor = tensor.map_err(|error| refuse(range.start, &error.to_string()))?;
            match parts.last_mut() {
                Some((generation, rows, tensors)) if *generation == group.generation => {
                    *rows += range.len();
                    tensors.push(tensor);
                }
                _ => parts.push((group.generation, range.len(), vec![tensor])),
            }
        }
        for row in rows {
            self.release(row.request);
        }
        let joined = parts.into_iter().map(|(generation, rows, mut tensors)| {
            let activations = match tensors.len() {
                1 => tensors.pop(),
                _ => model.join(&tensors).ok(),
            };
            activations.map(|activations| ContinuedRows {
                generation,
                rows,
                activations,
            })
        });
        let joined: Option<Vec<ContinuedRows>> = joined.collect();
        joined.ok_or_else(|| refuse(0, "parked activations of different shapes"))
    }

    fn find(&self, request: RequestId, wanted: StageProgress) -> Result<ParkedRow, ExecuteError> {
        let parked = self
            .rows
            .get(&request)
            .and_then(|row| Some((row, self.groups.get(&row.group)?)));
        match parked {
            None => Err(ExecuteError::not_parked(request, "not parked here")),
            Some((row, group)) if group.progress == wanted => Ok(*row),
            Some((_, group)) => Err(ExecuteError::not_parked(
                request,
                format!(
                    "parked after stage {} of variant {}, asked for stage {} of variant {}",
                    group.progress.stages_run,
                    group.progress.variant.0,
                    wanted.stages_run,
                    wanted.variant.0
                ),
            )),
        }
    }
}

/// Bytes of the device that a tensor takes.
pub(crate) fn bytes_of(tensor: &Tensor) -> u64 {
    (tensor.elem_count() * tensor.dtype().size_in_bytes()) as u64
}

/// Ranges of `rows` that are consecutive rows of one group.
fn neighbours(rows: &[ParkedRow]) -> Vec<Range<usize>> {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for (i, row) in rows.iter().enumerate() {
        let follows = i > 0 && rows[i - 1].group == row.group && rows[i - 1].index + 1 == row.index;
        match ranges.last_mut() {
            Some(range) if follows => range.end = i + 1,
            _ => ranges.push(i..i + 1),
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use candle_core::{DType, Device};

    use super::*;
    use crate::toy::ToyModel;

    const AT_1: StageProgress = StageProgress {
        variant: VariantId(0),
        stages_run: 1,
    };

    fn rows(requests: &[u64]) -> Vec<JobRow> {
        requests
            .iter()
            .map(|&request| JobRow {
                request: RequestId(request),
                input: None,
            })
            .collect()
    }

    fn park(parked: &mut ParkedActivations, requests: &[u64], values: &[f32]) -> Tensor {
        let shape = (requests.len(), values.len() / requests.len());
        let tensor = Tensor::from_slice(values, shape, &Device::Cpu).unwrap();
        parked.park(
            requests.iter().copied().map(RequestId),
            AT_1,
            0,
            tensor.clone(),
        );
        tensor
    }

    fn values(tensor: &Tensor) -> Vec<f32> {
        tensor.flatten_all().unwrap().to_vec1().unwrap()
    }

    #[test]
    fn the_whole_group_is_not_copied() {
        let mut parked = ParkedActivations::default();
        let tensor = park(&mut parked, &[5, 6], &[1.0, 2.0]);
        let taken = parked.take(&rows(&[5, 6]), AT_1, &ToyModel).unwrap();
        assert_eq!(taken.len(), 1);
        assert_eq!(taken[0].activations.id(), tensor.id());
        assert_eq!(parked.bytes(), 0);
    }

    #[test]
    fn rows_of_different_parkings_are_joined_in_order() {
        let mut parked = ParkedActivations::default();
        park(&mut parked, &[1, 2, 3], &[1.0, 1.5, 2.0, 2.5, 3.0, 3.5]);
        park(&mut parked, &[4], &[4.0, 4.5]);
        assert_eq!(parked.bytes(), 8 * 4);
        let taken = parked.take(&rows(&[3, 4, 1]), AT_1, &ToyModel).unwrap();
        assert_eq!((taken.len(), taken[0].rows), (1, 3));
        assert_eq!(
            values(&taken[0].activations),
            [3.0, 3.5, 4.0, 4.5, 1.0, 1.5]
        );
        assert_eq!(parked.bytes(), 6 * 4, "request 2 keeps its group alive");
        assert!(parked.release(RequestId(2)));
        assert_eq!(parked.bytes(), 0);
        assert!(!parked.release(RequestId(2)));
    }

    #[test]
    fn rows_of_different_weights_are_separate_parts() {
        let mut parked = ParkedActivations::default();
        park(&mut parked, &[1, 2], &[1.0, 2.0]);
        let newer = Tensor::from_slice(&[3.0f32], (1, 1), &Device::Cpu).unwrap();
        parked.park([RequestId(3)].into_iter(), AT_1, 1, newer);
        assert!(parked.holds(VariantId(0), 0) && parked.holds(VariantId(0), 1));
        let taken = parked.take(&rows(&[1, 2, 3]), AT_1, &ToyModel).unwrap();
        let parts: Vec<_> = taken.iter().map(|p| (p.generation, p.rows)).collect();
        assert_eq!(parts, [(0, 2), (1, 1)]);
        assert!(!parked.holds(VariantId(0), 0));
    }

    #[test]
    fn parking_again_frees_the_former_activations() {
        let mut parked = ParkedActivations::default();
        park(&mut parked, &[1], &[1.0; 8]);
        park(&mut parked, &[1], &[2.0; 2]);
        assert_eq!(parked.bytes(), 2 * DType::F32.size_in_bytes() as u64);
    }

    #[test]
    fn another_stage_is_refused() {
        let mut parked = ParkedActivations::default();
        park(&mut parked, &[1], &[1.0]);
        let at_2 = StageProgress {
            stages_run: 2,
            ..AT_1
        };
        assert_eq!(
            parked
                .take(&rows(&[1]), at_2, &ToyModel)
                .unwrap_err()
                .to_string(),
            "request 1: cannot continue: parked after stage 1 of variant 0, asked for stage 2 of \
             variant 0"
        );
        assert_eq!(
            parked
                .take(&rows(&[9]), AT_1, &ToyModel)
                .unwrap_err()
                .to_string(),
            "request 9: cannot continue: not parked here"
        );
    }
}
