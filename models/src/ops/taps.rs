//! Windows of images, made of candle's own operations.

use candle_core::{Result, Tensor};
use switchyard_kernels::{Padding, Window2d};

use super::tensors::kernel_error;

/// For each position of the window, in order, the values that all windows have there: `[batch,
/// lines, columns, channels]` of windows.
pub(crate) fn taps(window: Window2d, x: &Tensor) -> Result<Vec<Tensor>> {
    let (batch, height, width, channels) = x.dims4()?;
    let [lines, columns] = window.output(height, width).map_err(kernel_error)?;
    let [kernel_y, kernel_x] = window.kernel;
    let [stride_y, stride_x] = window.stride;
    // Room for whole strides behind the last tap, which are never read.
    let behind = |windows: usize, stride: usize, kernel: usize, before: usize, length: usize| {
        (windows * stride + kernel - 1).saturating_sub(before + length)
    };
    let Padding { top, left, .. } = window.padding;
    let bottom = behind(lines, stride_y, kernel_y, top, height);
    let right = behind(columns, stride_x, kernel_x, left, width);
    let padded = x
        .pad_with_zeros(1, top, bottom)?
        .pad_with_zeros(2, left, right)?;
    let mut taps = Vec::with_capacity(window.positions());
    for y in 0..kernel_y {
        let band = padded.narrow(1, y, lines * stride_y)?;
        // With a stride of 1 all are views: nothing is copied.
        let band = match stride_y {
            1 => band,
            _ => band
                .reshape((batch, lines, stride_y, (), channels))?
                .narrow(2, 0, 1)?
                .squeeze(2)?,
        };
        for x in 0..kernel_x {
            let tap = band.narrow(2, x, columns * stride_x)?;
            taps.push(match stride_x {
                1 => tap,
                _ => tap
                    .reshape((batch, lines, columns, stride_x, channels))?
                    .narrow(3, 0, 1)?
                    .squeeze(3)?,
            });
        }
    }
    Ok(taps)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use candle_core::Device;
    use switchyard_kernels::Windows;

    use super::*;

    fn windows() -> Vec<Window2d> {
        let lopsided = |kernel, stride, [top, left, bottom, right]: [usize; 4]| Window2d {
            kernel,
            stride,
            padding: Padding {
                top,
                left,
                bottom,
                right,
            },
        };
        vec![
            Window2d::centred(1, 1),
            Window2d::centred(1, 2),
            Window2d::centred(3, 1),
            Window2d::centred(3, 2),
            Window2d::centred(7, 2),
            lopsided([2, 3], [1, 2], [0, 1, 1, 0]),
            lopsided([3, 1], [1, 1], [1, 0, 1, 0]),
            lopsided([3, 3], [2, 2], [0, 0, 1, 1]),
            lopsided([4, 4], [4, 4], [0, 0, 0, 0]),
        ]
    }

    #[test]
    fn taps_are_the_rows_of_unfolded_windows() {
        for (height, width) in [(4, 4), (9, 6)] {
            let x = Tensor::randn(0f32, 1.0, (2, height, width, 3), &Device::Cpu).unwrap();
            let values: Vec<f32> = x.flatten_all().unwrap().to_vec1().unwrap();
            for window in windows() {
                let windows = Windows::new(window, [height, width, 3]).unwrap();
                let count = 2 * windows.per_image();
                let taps = Tensor::cat(&taps(window, &x).unwrap(), 3).unwrap();
                let taps = taps.flatten_to(2).unwrap().to_vec2::<f32>().unwrap();
                let rows = windows.unfold(&values, 0..count);
                for (row, taps) in rows.chunks_exact(windows.width() + 1).zip(&taps) {
                    assert_eq!(row.split_last().unwrap(), (&1.0, &taps[..]), "{window:?}");
                }
                assert_eq!(taps.len(), count);
            }
        }
    }
}
