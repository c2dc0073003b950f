//! JPEG.

use zune_core::bytestream::ZCursor;
use zune_core::colorspace::ColorSpace;
use zune_core::options::DecoderOptions;
use zune_jpeg::JpegDecoder;
use zune_jpeg::errors::DecodeErrors;

use super::error::{ImageError, ImageFormat};
use super::orientation::Orientation;
use super::pixels::{LONGEST_SIDE, Limits, Pixels};

/// Largest number of segments before the first scan. The decoder's time grows with their square.
const MOST_SEGMENTS: usize = 1_024;

/// Largest number of scans of a progressive image; encoders write about ten.
const MOST_SCANS: usize = 64;

const APP1: u8 = 0xE1;
const SOS: u8 = 0xDA;
const EOI: u8 = 0xD9;

/// The fields of a header that decide whether and how the image is decoded.
struct Header {
    width: u32,
    height: u32,
    components: u8,
    orientation: Orientation,
}

/// Width and height in the frame header.
pub(super) fn size(bytes: &[u8]) -> Result<(u32, u32), ImageError> {
    header(bytes).map(|header| (header.width, header.height))
}

/// Decodes to RGB, or to grey if the image has one component.
pub(super) fn decode(bytes: &[u8], limits: Limits) -> Result<Pixels, ImageError> {
    let header = header(bytes)?;
    let (width, height) = limits.admit(ImageFormat::Jpeg, header.width, header.height)?;
    let (colours, stride) = match header.components {
        1 => (ColorSpace::Luma, 1),
        4 => return Err(ImageError::Cmyk),
        _ => (ColorSpace::RGB, 3),
    };
    if !is_whole(bytes) {
        return Err(ImageError::Truncated(ImageFormat::Jpeg));
    }
    let longest = LONGEST_SIDE as usize;
    // Strict: by default the decoder paints missing data grey.
    let options = DecoderOptions::default()
        .set_strict_mode(true)
        .set_max_width(longest)
        .set_max_height(longest)
        .jpeg_set_max_scans(MOST_SCANS)
        .jpeg_set_out_colorspace(colours);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(bytes), options);
    decoder.decode_headers().map_err(refusal)?;
    if decoder.dimensions() != Some((width, height)) {
        return Err(damaged("two sizes"));
    }
    let mut data = vec![0; width * height * stride];
    decoder.decode_into(&mut data).map_err(refusal)?;
    Ok(Pixels {
        data,
        width,
        height,
        stride,
        orientation: header.orientation,
    })
}

/// Reads the segments before the first scan.
fn header(bytes: &[u8]) -> Result<Header, ImageError> {
    let truncated = || ImageError::Truncated(ImageFormat::Jpeg);
    let mut orientation = Orientation::default();
    let mut frame = None;
    let mut rest = bytes.get(2..).ok_or_else(truncated)?;
    for _ in 0..MOST_SEGMENTS {
        let [0xFF, after @ ..] = rest else {
            return Err(damaged("no marker where a segment starts"));
        };
        // A marker may follow any number of fill bytes.
        let fill = after.iter().take_while(|byte| **byte == 0xFF).count();
        let [marker, high, low, ..] = after[fill..] else {
            return Err(truncated());
        };
        let length = usize::from(u16::from_be_bytes([high, low]));
        let content = after.get(fill + 3..(fill + 1 + length).max(fill + 3));
        let content = content.ok_or_else(truncated)?;
        match (marker, content) {
            (SOS, _) => {
                return frame.ok_or_else(|| damaged("no frame header")).map(
                    |(width, height, components)| Header {
                        width,
                        height,
                        components,
                        orientation,
                    },
                );
            }
            // Frame headers, without the tables that share their range.
            (0xC0..=0xCF, &[_, h1, h0, w1, w0, components, ..])
                if !matches!(marker, 0xC4 | 0xC8 | 0xCC) =>
            {
                let side = |high, low| u32::from(u16::from_be_bytes([high, low]));
                frame = Some((side(w1, w0), side(h1, h0), components));
            }
            (APP1, exif) if exif.starts_with(b"Exif\0\0") => {
                orientation = Orientation::from_exif(exif);
            }
            _ => {}
        }
        rest = &after[fill + 3 + content.len()..];
    }
    Err(damaged("more than 1024 segments before the first scan"))
}

/// Whether the end-of-image marker follows the last scan. The bytes of a scan hold neither marker.
fn is_whole(bytes: &[u8]) -> bool {
    let markers = bytes.windows(2).rev();
    let last = markers
        .filter(|pair| pair[0] == 0xFF)
        .find(|pair| matches!(pair[1], EOI | SOS));
    last.is_some_and(|pair| pair[1] == EOI)
}

fn damaged(reason: &str) -> ImageError {
    ImageError::decode(ImageFormat::Jpeg, &reason)
}

fn refusal(error: DecodeErrors) -> ImageError {
    match error {
        DecodeErrors::ExhaustedData => ImageError::Truncated(ImageFormat::Jpeg),
        error => ImageError::decode(ImageFormat::Jpeg, &error),
    }
}
