//! The driver of all convolutions.
//!
//! A kernel says how it reads its input, how its output is cut into blocks and how one block is
//! computed ([`ConvKernel`]). Everything else is [`convolve`].

use rayon::prelude::*;

use crate::activation::Activation;
use crate::error::KernelError;
use crate::memory::{FeatureMap, FeatureView};
use crate::window::Window2d;

/// Multiply-adds below which a convolution is not shared among threads: waking one takes as long.
const SHARED_MIN: usize = 1 << 20;

/// Packed weights of a convolution, and the code that multiplies them.
pub(super) trait ConvKernel: Sync + Sized {
    /// A batch of images with padding, in the form that the kernel reads.
    type Input: Sync;

    /// Multiply-adds from which on threads share a convolution.
    const SHARED_MIN: usize = SHARED_MIN;

    /// Refuses a window or a number of channels that the weights were not made for.
    fn check(&self, channels: usize, window: Window2d) -> Result<(), KernelError>;

    /// Output channels.
    fn output(&self) -> usize;

    /// Products of one output value, in multiply-adds of `f32`.
    fn products(&self) -> usize;

    /// Prepares `x` for windows `[lines, columns]` over each image.
    fn prepare(&self, x: FeatureView<'_>, window: Window2d, windows: [usize; 2]) -> Self::Input;

    /// How an output of `len` values is cut for this many threads.
    fn cut(&self, job: &ConvJob<'_, Self>, len: usize, threads: usize) -> OutputCut;

    /// Computes one block with the chosen instructions: sums, bias, residual and ReLU.
    fn compute(block: ConvBlock<'_, Self>);
}

/// One convolution.
pub(super) struct ConvJob<'a, K: ConvKernel> {
    pub(super) kernel: &'a K,
    pub(super) x: FeatureView<'a>,
    pub(super) input: &'a K::Input,
    pub(super) window: Window2d,
    /// Lines and columns of windows over an image.
    pub(super) windows: [usize; 2],
    /// As the output.
    pub(super) residual: Option<&'a [f32]>,
    pub(super) activation: Activation,
}

/// A part of a convolution's output.
pub(super) struct ConvBlock<'a, K: ConvKernel> {
    pub(super) job: ConvJob<'a, K>,
    /// Offset of the block in the output, in values.
    pub(super) from: usize,
    pub(super) out: &'a mut [f32],
}

/// Sizes of the parts of an output, in values.
#[derive(Clone, Copy, Debug)]
pub(super) struct OutputCut {
    /// No block spans two groups.
    pub(super) group: usize,
    pub(super) block: usize,
}

/// Convolves `x` with `window`; adds `residual`, which has the result's shape; applies
/// `activation`. Uses the threads of the current pool if there is enough work.
///
/// # Errors
/// Shapes do not fit, or an image with its padding is smaller than a window.
pub(super) fn convolve<K: ConvKernel>(
    kernel: &K,
    x: &FeatureMap,
    window: Window2d,
    residual: Option<&FeatureMap>,
    activation: Activation,
) -> Result<FeatureMap, KernelError> {
    let [images, height, width, channels] = x.dims();
    kernel.check(channels, window)?;
    let windows = window.output(height, width)?;
    let mut result = FeatureMap::new([images, windows[0], windows[1], kernel.output()]);
    if residual.is_some_and(|residual| residual.dims() != result.dims()) {
        return Err(KernelError::Shape(format!(
            "a residual of another shape than {:?}",
            result.dims()
        )));
    }
    let (x, residual) = (x.view(), residual.map(|residual| &*residual.values));
    let input = kernel.prepare(x, window, windows);
    let job = ConvJob {
        kernel,
        x,
        input: &input,
        window,
        windows,
        residual,
        activation,
    };
    job.run(&mut result.values);
    Ok(result)
}

/// Multiplies `x`, `[rows, input]`, by weights of one position; writes `[rows, output]`. Uses threads as
/// [`convolve`] does.
///
/// # Errors
/// The weights are of a window, or the sizes do not fit.
pub(super) fn multiply<K: ConvKernel>(
    kernel: &K,
    x: &[f32],
    input: usize,
    out: &mut [f32],
) -> Result<(), KernelError> {
    let window = Window2d::centred(1, 1);
    kernel.check(input, window)?;
    let (rows, output) = (x.len() / input.max(1), kernel.output());
    if x.len() != rows * input || out.len() != rows * output {
        let (x, out) = (x.len(), out.len());
        return Err(KernelError::Shape(format!(
            "{x} values to {out}, of rows of {input} to {output}"
        )));
    }
    let x = FeatureView {
        values: x,
        dims: [1, 1, rows, input],
    };
    let windows = [1, rows];
    let job = ConvJob {
        kernel,
        x,
        input: &kernel.prepare(x, window, windows),
        window,
        windows,
        residual: None,
        activation: Activation::None,
    };
    job.run(out);
    Ok(())
}

// === impl ConvJob ===

impl<K: ConvKernel> Clone for ConvJob<'_, K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K: ConvKernel> Copy for ConvJob<'_, K> {}

impl<K: ConvKernel> ConvJob<'_, K> {
    /// Computes all of the output, block by block.
    fn run(self, out: &mut [f32]) {
        let threads = if out.len() * self.kernel.products() < K::SHARED_MIN {
            1
        } else {
            rayon::current_num_threads()
        };
        let cut = self.kernel.cut(&self, out.len(), threads);
        let (group, block) = (cut.group.max(1), cut.block.max(1));
        if threads > 1 {
            let groups = out.par_chunks_mut(group).enumerate();
            groups.for_each(|(i, out)| {
                let blocks = out.par_chunks_mut(block).enumerate();
                blocks.for_each(|(j, out)| self.block(i * group + j * block, out));
            });
        } else {
            for (i, out) in out.chunks_mut(group).enumerate() {
                for (j, out) in out.chunks_mut(block).enumerate() {
                    self.block(i * group + j * block, out);
                }
            }
        }
    }

    /// Computes the block of the output at `from`.
    fn block(self, from: usize, out: &mut [f32]) {
        K::compute(ConvBlock {
            job: self,
            from,
            out: &mut *out,
        });
        self.activation.of_block(out);
    }
}
