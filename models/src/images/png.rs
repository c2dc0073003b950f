//! PNG.

use std::io::{Cursor, ErrorKind};

use png::{Decoder, DecodingError, Limits as PngLimits, Transformations};

use super::error::{ImageError, ImageFormat};
use super::orientation::Orientation;
use super::pixels::{Limits, Pixels};

/// Bytes that chunks other than the pixels may take. Text and colour profiles are skipped unread.
const CHUNK_BYTES: usize = 1 << 20;

/// Width and height in the header.
pub(super) fn size(bytes: &[u8]) -> Result<(u32, u32), ImageError> {
    let mut decoder = decoder(bytes);
    let header = decoder.read_header_info().map_err(refusal)?;
    Ok(header.size())
}

fn decoder(bytes: &[u8]) -> Decoder<Cursor<&[u8]>> {
    let chunks = PngLimits { bytes: CHUNK_BYTES };
    let mut decoder = Decoder::new_with_limits(Cursor::new(bytes), chunks);
    decoder.set_ignore_text_chunk(true);
    decoder.set_ignore_iccp_chunk(true);
    decoder
}

/// Decodes to 8 bits per channel; palettes and transparency are expanded.
pub(super) fn decode(bytes: &[u8], limits: Limits) -> Result<Pixels, ImageError> {
    let mut decoder = decoder(bytes);
    decoder.set_transformations(Transformations::EXPAND | Transformations::STRIP_16);
    let (width, height) = decoder.read_header_info().map_err(refusal)?.size();
    let (width, height) = limits.admit(ImageFormat::Png, width, height)?;
    let mut reader = decoder.read_info().map_err(refusal)?;
    if reader.info().animation_control().is_some() {
        return Err(ImageError::Animated(ImageFormat::Png));
    }
    let exif = reader.info().exif_metadata.as_deref();
    let orientation = exif.map_or_else(Orientation::default, Orientation::from_exif);
    let stride = reader.output_color_type().0.samples();
    let mut data = vec![0; width * height * stride];
    reader.next_frame(&mut data).map_err(refusal)?;
    Ok(Pixels {
        data,
        width,
        height,
        stride,
        orientation,
    })
}

fn refusal(error: DecodingError) -> ImageError {
    match error {
        DecodingError::IoError(source) if source.kind() == ErrorKind::UnexpectedEof => {
            ImageError::Truncated(ImageFormat::Png)
        }
        error => ImageError::decode(ImageFormat::Png, &error),
    }
}
