//! A draft with its weights packed, and a run of it.
//!
//! The first steps of a network have large images and small weights: they run image by image, so that a step finds
//! its image in the cache, and threads take images. The last ones have small images and
//! large weights, which are read once for the whole batch.

use std::ops::Range;
use std::sync::Arc;

use candle_core::Result;
use rayon::prelude::*;
use switchyard_kernels::FeatureMap;

use super::draft::Draft;
use super::node::Extent;
use super::operation::Operation;
use super::step::Layer;
use crate::networks::datatype::Datatype;
use crate::networks::graph::{NamedTensor, RawTensor};
use crate::networks::onnx::elements;
use crate::ops::tensors::kernel_error;

/// Values of a step's images below which a whole batch of them stays in the cache.
const LARGE_MIN: usize = 64 * 1024;

/// The operations of a graph in their order.
pub(super) struct Plan {
    steps: Vec<Step>,
    /// The steps that run image by image.
    early: usize,
    /// Of the graph's input.
    extent: Extent,
    rank: usize,
    /// Images, with the graph's input.
    images: usize,
    given: Vec<(Arc<str>, usize)>,
}

/// Those that are there.
type Images = Vec<Option<FeatureMap>>;

struct Step {
    layer: Layer,
    inputs: Vec<usize>,
    output: usize,
    /// Images that no later step reads.
    last_read: Vec<usize>,
}

// === impl Plan ===

impl Plan {
    /// # Errors
    /// A weight has not the values of its shape.
    pub(super) fn new(draft: Draft<'_>) -> Result<Self> {
        let step = |operation: &Operation<'_>| {
            Ok(Step {
                layer: Layer::new(&operation.kind)?,
                inputs: operation.inputs.clone(),
                output: operation.output,
                last_read: Vec::new(),
            })
        };
        let values = |image: usize| draft.extents[image].iter().product::<usize>();
        let is_large = |operation: &Operation<'_>| {
            let images = operation.inputs.iter().chain([&operation.output]);
            let images: usize = images.map(|&image| values(image)).sum();
            images > operation.kind.weights().max(LARGE_MIN)
        };
        let early = draft.operations.iter().rposition(is_large);
        let steps = draft.operations.iter().map(step);
        let mut steps = steps.collect::<Result<Vec<Step>>>()?;
        let mut read = vec![false; draft.extents.len()];
        for (_, image) in &draft.given {
            read[*image] = true;
        }
        for step in steps.iter_mut().rev() {
            for &input in &step.inputs {
                if !std::mem::replace(&mut read[input], true) {
                    step.last_read.push(input);
                }
            }
        }
        let given = draft.given.iter();
        Ok(Self {
            steps,
            early: early.map_or(0, |last| last + 1),
            extent: draft.extents[0],
            rank: draft.rank,
            images: draft.extents.len(),
            given: given.map(|(name, at)| ((*name).into(), *at)).collect(),
        })
    }

    /// Computes the images that are given, by name.
    ///
    /// # Errors
    /// The input is no batch of the graph's images.
    pub(super) fn run(&self, input: &RawTensor) -> Result<Vec<NamedTensor>> {
        let rows = input.rows();
        if input.shape != self.shape(rows, self.extent) {
            let (found, wanted) = (&input.shape, self.shape(rows, self.extent));
            candle_core::bail!("input is {found:?}, the graph takes {wanted:?}");
        }
        let planes = elements::numbers::<f32>(input)?;
        let images = match rows > 1 && self.early > 0 {
            false => self.steps(0..self.steps.len(), self.images(&planes, rows)?)?,
            true => {
                let image = (planes.len() / rows).max(1);
                let each = planes.par_chunks(image).map(|image| {
                    let images = self.images(image, 1)?;
                    self.steps(0..self.early, images)
                });
                let images = joined(&each.collect::<Result<Vec<_>>>()?);
                self.steps(self.early..self.steps.len(), images)?
            }
        };
        let given = self.given.iter();
        given
            .map(|(name, at)| match &images[*at] {
                Some(image) => Ok((Arc::clone(name), self.tensor(image))),
                None => candle_core::bail!("`{name}` was not made"),
            })
            .collect()
    }

    #[cfg(test)]
    pub(super) fn length(&self) -> usize {
        self.steps.len()
    }

    /// The images before the first step.
    fn images(&self, planes: &[f32], rows: usize) -> Result<Images> {
        let [channels, height, width] = self.extent;
        let input = FeatureMap::of_planes(planes, [rows, height, width, channels]);
        let mut images = Vec::new();
        images.resize_with(self.images, || None);
        images[0] = Some(input.map_err(kernel_error)?);
        Ok(images)
    }

    fn steps(&self, range: Range<usize>, mut images: Images) -> Result<Images> {
        for step in &self.steps[range] {
            step.run(&mut images)?;
        }
        Ok(images)
    }

    fn shape(&self, rows: usize, [channels, height, width]: Extent) -> Vec<usize> {
        match self.rank {
            3 => vec![rows, channels, width],
            _ => vec![rows, channels, height, width],
        }
    }

    fn tensor(&self, image: &FeatureMap) -> RawTensor {
        let [rows, height, width, channels] = image.dims();
        let shape = self.shape(rows, [channels, height, width]);
        elements::moved(Datatype::Fp32, shape, image.to_planes())
    }
}

// === impl Step ===

impl Step {
    fn run(&self, images: &mut Images) -> Result<()> {
        let Some((&first, others)) = self.inputs.split_first() else {
            return lacks();
        };
        let changes = self.layer.changes();
        let is_read_again = !self.last_read.contains(&first) || others.contains(&first);
        let mut own = match changes {
            true if is_read_again => images[first].clone(),
            true => images[first].take(),
            false => None,
        };
        let others = others.iter().map(|&at| images[at].as_ref());
        let Some(others) = others.collect::<Option<Vec<_>>>() else {
            return lacks();
        };
        let made = match (&mut own, &images[first]) {
            (Some(own), _) if changes => {
                self.layer.change(own, &others)?;
                None
            }
            (_, Some(x)) if !changes => Some(self.layer.make(x, &others)?),
            _ => return lacks(),
        };
        for &image in &self.last_read {
            images[image] = None;
        }
        images[self.output] = made.or(own);
        Ok(())
    }
}

/// The same images of several batches as images of one.
fn joined(each: &[Images]) -> Images {
    let first = each.first().map_or(&[][..], Vec::as_slice);
    let images = first.iter().enumerate().map(|(at, image)| {
        let [_, height, width, channels] = image.as_ref()?.dims();
        let mut joined = FeatureMap::new([each.len(), height, width, channels]);
        let len = (height * width * channels).max(1);
        for (to, images) in joined.values.chunks_exact_mut(len).zip(each) {
            to.copy_from_slice(&images[at].as_ref()?.values);
        }
        Some(joined)
    });
    images.collect()
}

fn lacks() -> Result<()> {
    candle_core::bail!("an operation lacks an image")
}
