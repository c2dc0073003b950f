//! Decoded pixels, and the limits of an image.

use super::error::{ImageError, ImageFormat};
use super::orientation::Orientation;

/// Longest side of an image, the largest that JPEG can state. Bounds the memory of one row.
pub(super) const LONGEST_SIDE: u32 = 65_535;

/// Largest value of `max_pixels`.
pub(super) const MOST_PIXELS: u64 = 1_000_000_000;

/// Decoded pixels, in the order of the file.
pub(super) struct Pixels {
    /// Rows of pixels without padding.
    pub(super) data: Vec<u8>,
    pub(super) width: usize,
    pub(super) height: usize,
    /// Bytes per pixel: 1 grey, 2 grey and alpha, 3 RGB, 4 RGB and alpha.
    pub(super) stride: usize,
    pub(super) orientation: Orientation,
}

/// Width and height in a header, checked against the limits of a card.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    pub(super) max_pixels: u64,
}

// === impl Limits ===

impl Limits {
    /// Width and height as lengths, if an image of this size may be decoded.
    pub(super) fn admit(
        self,
        format: ImageFormat,
        width: u32,
        height: u32,
    ) -> Result<(usize, usize), ImageError> {
        let pixels = u64::from(width) * u64::from(height);
        if pixels > self.max_pixels {
            return Err(ImageError::TooManyPixels {
                format,
                width,
                height,
                pixels,
                limit: self.max_pixels,
            });
        }
        if pixels == 0 || width.max(height) > LONGEST_SIDE {
            return Err(ImageError::Side {
                format,
                width,
                height,
                limit: LONGEST_SIDE,
            });
        }
        Ok((width as usize, height as usize))
    }
}
