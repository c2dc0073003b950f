//! Running stages, and the activations that wait between them.

use std::collections::HashMap;
use std::ops::Range;

use candle_core::Tensor;
use switchyard_core::ids::{RequestId, VariantId};
use switchyard_models::StagedModel;

use crate::error::ExecuteError;
use crate::job::{Job, Row};
use crate::source::LoadedModel;

/// Where a request's run has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Progress {
    pub(crate) variant: VariantId,
    pub(crate) stages_run: u32,
}

/// Parked activations, kept on the device as the batches that made them.
///
/// A group's memory is freed when its last row has gone: rows are views into it.
#[derive(Default)]
pub(crate) struct Parked {
    rows: HashMap<RequestId, Place>,
    groups: HashMap<u64, Group>,
    next_group: u64,
    bytes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    group: u64,
    /// Position along dimension 0 of the group's tensor.
    index: usize,
}

struct Group {
    progress: Progress,
    /// Which of the variant's weights made them.
    generation: u64,
    /// `[rows, ..]`, contiguous.
    activations: Tensor,
    /// Rows that still wait.
    live: usize,
    bytes: u64,
}

/// Rows of a batch that go on with the same weights.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) generation: u64,
    pub(crate) rows: usize,
    /// `[rows, ..]`.
    pub(crate) activations: Tensor,
}

// === impl Parked ===

impl Parked {
    /// Bytes of the device that parked activations take.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Parks row i of `activations` for the i-th request.
    pub(crate) fn park(
        &mut self,
        requests: impl Iterator<Item = RequestId>,
        progress: Progress,
        generation: u64,
        activations: Tensor,
    ) {
        let group = self.next_group;
        self.next_group += 1;
        let mut live = 0;
        for (index, request) in requests.enumerate() {
            self.release(request);
            self.rows.insert(request, Place { group, index });
            live += 1;
        }
        let bytes = (activations.elem_count() * activations.dtype().size_in_bytes()) as u64;
        self.bytes += bytes;
        let parked = Group {
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

    /// Forgets a request. Returns whether it was parked.
    pub(crate) fn release(&mut self, request: RequestId) -> bool {
        let Some(place) = self.rows.remove(&request) else {
            return false;
        };
        if let Some(group) = self.groups.get_mut(&place.group) {
            group.live -= 1;
            if group.live == 0 {
                self.bytes -= group.bytes;
                self.groups.remove(&place.group);
            }
        }
        true
    }

    /// Takes the activations of all rows, in their order: as one batch of `model`, or as several
    /// where neighbours were made by different weights.
    ///
    /// Nothing is copied when the rows were parked as neighbours of one batch, in this order.
    pub(crate) fn take(
        &mut self,
        rows: &[Row],
        progress: Progress,
        model: &dyn StagedModel,
    ) -> Result<Vec<Part>, ExecuteError> {
        let mut places = Vec::with_capacity(rows.len());
        for row in rows {
            places.push(self.find(row.request, progress)?);
        }
        let refuse = |at: usize, reason: &str| {
            let request = rows.get(at).map(|row| row.request).unwrap_or_default();
            ExecuteError::not_parked(request, reason)
        };
        let mut parts: Vec<(u64, usize, Vec<Tensor>)> = Vec::new();
        for run in neighbours(&places) {
            let place = places[run.start];
            let Some(group) = self.groups.get(&place.group) else {
                return Err(refuse(run.start, "not parked here"));
            };
            // The whole group comes out of this as it is: candle hands back the same tensor.
            let tensor = group.activations.narrow(0, place.index, run.len());
            let tensor = tensor.map_err(|error| refuse(run.start, &error.to_string()))?;
            match parts.last_mut() {
                Some((generation, rows, tensors)) if *generation == group.generation => {
                    *rows += run.len();
                    tensors.push(tensor);
                }
                _ => parts.push((group.generation, run.len(), vec![tensor])),
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
            activations.map(|activations| Part {
                generation,
                rows,
                activations,
            })
        });
        let joined: Option<Vec<Part>> = joined.collect();
        joined.ok_or_else(|| refuse(0, "parked activations of different shapes"))
    }

    fn find(&self, request: RequestId, wanted: Progress) -> Result<Place, ExecuteError> {
        let parked = self
            .rows
            .get(&request)
            .and_then(|place| Some((place, self.groups.get(&place.group)?)));
        match parked {
            None => Err(ExecuteError::not_parked(request, "not parked here")),
            Some((place, group)) if group.progress == wanted => Ok(*place),
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

/// Cuts places into runs of consecutive rows of one group.
fn neighbours(places: &[Place]) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for (i, place) in places.iter().enumerate() {
        let follows =
            i > 0 && places[i - 1].group == place.group && places[i - 1].index + 1 == place.index;
        match runs.last_mut() {
            Some(run) if follows => run.end = i + 1,
            _ => runs.push(i..i + 1),
        }
    }
    runs
}

// === running ===

/// Checks a job's stages, exit and rows against the model it names.
pub(crate) fn check(job: &Job, model: &LoadedModel) -> Result<(), ExecuteError> {
    let stages = model.model.stages();
    let (from, to) = (job.from_stage as usize, job.to_stage as usize);
    if from >= to || to > stages {
        let reason = format!("stages {from} to {to} cannot be run, it has {stages}");
        return Err(ExecuteError::job(&model.name, reason));
    }
    if let Some(exit) = job.exit {
        let exits = model.model.exits();
        match exits.get(exit.index()) {
            Some(&after) if after == to => {}
            Some(after) => {
                let reason = format!("exit {} follows stage {after}, not stage {to}", exit.0);
                return Err(ExecuteError::job(&model.name, reason));
            }
            None => {
                let reason = format!("exit {} does not exist, it has {}", exit.0, exits.len());
                return Err(ExecuteError::job(&model.name, reason));
            }
        }
    }
    if job.rows.is_empty() {
        return Err(ExecuteError::job(&model.name, "a batch without requests"));
    }
    Ok(())
}

/// Runs the stages of `range` on a batch.
pub(crate) fn run(
    model: &LoadedModel,
    range: Range<usize>,
    batch: Tensor,
) -> Result<Tensor, ExecuteError> {
    let network: &dyn StagedModel = &*model.model;
    let mut x = batch;
    for stage in range {
        x = network.run_stage(stage, &x).map_err(|error| {
            ExecuteError::compute(&model.name, format!("stage {stage}"), &error)
        })?;
    }
    Ok(x)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use candle_core::{DType, Device};

    use super::*;

    const AT_1: Progress = Progress {
        variant: VariantId(0),
        stages_run: 1,
    };

    /// Never run: rows are parked and taken.
    struct Any;

    impl StagedModel for Any {
        fn stages(&self) -> usize {
            2
        }

        fn exits(&self) -> &[usize] {
            &[2]
        }

        fn classes(&self) -> usize {
            2
        }

        fn run_stage(&self, _stage: usize, x: &Tensor) -> candle_core::Result<Tensor> {
            Ok(x.clone())
        }

        fn logits(&self, _exit: usize, x: &Tensor) -> candle_core::Result<Tensor> {
            Ok(x.clone())
        }
    }

    fn rows(requests: &[u64]) -> Vec<Row> {
        requests
            .iter()
            .map(|&request| Row {
                request: RequestId(request),
                input: None,
            })
            .collect()
    }

    fn park(parked: &mut Parked, requests: &[u64], values: &[f32]) -> Tensor {
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
        let mut parked = Parked::default();
        let tensor = park(&mut parked, &[5, 6], &[1.0, 2.0]);
        let taken = parked.take(&rows(&[5, 6]), AT_1, &Any).unwrap();
        assert_eq!(taken.len(), 1);
        assert_eq!(taken[0].activations.id(), tensor.id());
        assert_eq!(parked.bytes(), 0);
    }

    #[test]
    fn rows_of_different_parkings_are_joined_in_order() {
        let mut parked = Parked::default();
        park(&mut parked, &[1, 2, 3], &[1.0, 1.5, 2.0, 2.5, 3.0, 3.5]);
        park(&mut parked, &[4], &[4.0, 4.5]);
        assert_eq!(parked.bytes(), 8 * 4);
        let taken = parked.take(&rows(&[3, 4, 1]), AT_1, &Any).unwrap();
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
    fn rows_of_different_weights_come_apart() {
        let mut parked = Parked::default();
        park(&mut parked, &[1, 2], &[1.0, 2.0]);
        let newer = Tensor::from_slice(&[3.0f32], (1, 1), &Device::Cpu).unwrap();
        parked.park([RequestId(3)].into_iter(), AT_1, 1, newer);
        assert!(parked.holds(VariantId(0), 0) && parked.holds(VariantId(0), 1));
        let taken = parked.take(&rows(&[1, 2, 3]), AT_1, &Any).unwrap();
        let parts: Vec<_> = taken.iter().map(|p| (p.generation, p.rows)).collect();
        assert_eq!(parts, [(0, 2), (1, 1)]);
        assert!(!parked.holds(VariantId(0), 0));
    }

    #[test]
    fn parking_again_frees_the_former_activations() {
        let mut parked = Parked::default();
        park(&mut parked, &[1], &[1.0; 8]);
        park(&mut parked, &[1], &[2.0; 2]);
        assert_eq!(parked.bytes(), 2 * DType::F32.size_in_bytes() as u64);
    }

    #[test]
    fn another_point_of_the_run_is_refused() {
        let mut parked = Parked::default();
        park(&mut parked, &[1], &[1.0]);
        let at_2 = Progress {
            stages_run: 2,
            ..AT_1
        };
        assert_eq!(
            parked
                .take(&rows(&[1]), at_2, &Any)
                .unwrap_err()
                .to_string(),
            "request 1: cannot continue: parked after stage 1 of variant 0, asked for stage 2 of \
             variant 0"
        );
        assert_eq!(
            parked
                .take(&rows(&[9]), AT_1, &Any)
                .unwrap_err()
                .to_string(),
            "request 9: cannot continue: not parked here"
        );
    }
}
