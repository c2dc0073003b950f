//! From the bytes of an image to its pixels, and to the tensor.

use super::card::{Channels, ImageCard};
use super::error::{ImageError, ImageFormat};
use super::geometry::Geometry;
use super::pixels::Limits;
use super::{jpeg, luma, png, resample, webp};

impl ImageCard {
    /// Upper bound of the bytes that [`ImageCard::tensor`] allocates at once for `bytes`, from the
    /// header alone. Saturates.
    ///
    /// # Errors
    /// The bytes are no JPEG, PNG or WebP image, its header is damaged, or states more pixels than
    /// the card allows.
    pub fn peak_bytes(&self, bytes: &[u8]) -> Result<u64, ImageError> {
        let format = format(bytes)?;
        let ((width, height), table_bytes) = match format {
            ImageFormat::Jpeg => (jpeg::size(bytes)?, 0),
            ImageFormat::Png => (png::size(bytes)?, 0),
            ImageFormat::WebP => webp::size(bytes)?,
        };
        let limits = Limits {
            max_pixels: self.max_pixels,
        };
        let (width, height) = limits.admit(format, width, height)?;
        let pixels = width as u64 * height as u64;
        Ok(self.bytes_of_pixels(pixels).saturating_add(table_bytes))
    }

    /// Decodes `bytes` and writes the tensor of [`ImageCard::shape`] to `out`, whose former content
    /// is lost.
    ///
    /// # Errors
    /// The bytes are no JPEG, PNG or WebP image, are damaged or end early, or the image is larger
    /// than the card allows, animated or CMYK.
    pub fn tensor(&self, bytes: &[u8], out: &mut Vec<f32>) -> Result<(), ImageError> {
        self.check()?;
        let limits = Limits {
            max_pixels: self.max_pixels,
        };
        let mut pixels = match format(bytes)? {
            ImageFormat::Jpeg => jpeg::decode(bytes, limits)?,
            ImageFormat::Png => png::decode(bytes, limits)?,
            ImageFormat::WebP => webp::decode(bytes, limits)?,
        };
        if self.channels == Channels::Grey {
            luma::convert(&mut pixels);
        }
        let geometry = Geometry::new(self, &pixels);
        resample::resample(self, &pixels, &geometry, out);
        Ok(())
    }
}

/// The format of `bytes`, by its first bytes alone.
fn format(bytes: &[u8]) -> Result<ImageFormat, ImageError> {
    if bytes.starts_with(&[0xFF, 0xD8, 0xFF]) {
        Ok(ImageFormat::Jpeg)
    } else if bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
        Ok(ImageFormat::Png)
    } else if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
        Ok(ImageFormat::WebP)
    } else {
        let first: Vec<String> = bytes.iter().take(8).map(|b| format!("{b:02x}")).collect();
        let found = match first.as_slice() {
            [] => "no bytes".to_owned(),
            first => format!("first bytes {}", first.join(" ")),
        };
        Err(ImageError::UnknownFormat { found })
    }
}
