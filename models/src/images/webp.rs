//! WebP.
//!
//! The container is walked here, and the decoder sees the bitstream alone. It would else allocate
//! by the sizes of the bitstream before it compares them with the container's, and decode alpha
//! that is dropped.

use std::borrow::Cow;
use std::io::{Cursor, ErrorKind};

use image_webp::{DecodingError, WebPDecoder};

use super::error::{ImageError, ImageFormat};
use super::orientation::Orientation;
use super::pixels::{Limits, Pixels};

/// Bytes before the first chunk: `RIFF`, the length of the rest, `WEBP`.
const HEADER: usize = 12;

/// Bytes of the code tables of a lossless bitstream per byte of it: a hostile one has many short
/// tables, which the decoder expands.
const TABLES_PER_BYTE: u64 = 200;

/// Bit of an extended header's flags that marks an animation.
const ANIMATION: u8 = 0x02;

/// The parts of a container that matter.
struct Container<'a> {
    /// A simple container of the one bitstream.
    simple: Cow<'a, [u8]>,
    width: u32,
    height: u32,
    orientation: Orientation,
    lossless: bool,
}

/// One chunk of a container.
struct Chunk<'a> {
    name: [u8; 4],
    content: &'a [u8],
    /// Name, length, content and padding.
    whole: &'a [u8],
}

/// Width and height in the header of the bitstream, and the most bytes of its code tables.
pub(super) fn size(bytes: &[u8]) -> Result<((u32, u32), u64), ImageError> {
    let container = container(bytes)?;
    let tables = match container.lossless {
        true => TABLES_PER_BYTE.saturating_mul(bytes.len() as u64),
        false => 0,
    };
    Ok(((container.width, container.height), tables))
}

/// Decodes to RGB; the alpha of a lossless bitstream stays with it.
pub(super) fn decode(bytes: &[u8], limits: Limits) -> Result<Pixels, ImageError> {
    let container = container(bytes)?;
    let (width, height) = limits.admit(ImageFormat::WebP, container.width, container.height)?;
    let mut decoder = WebPDecoder::new(Cursor::new(&*container.simple)).map_err(refusal)?;
    if decoder.dimensions() != (container.width, container.height) {
        return Err(damaged("two sizes"));
    }
    let stride = if decoder.has_alpha() { 4 } else { 3 };
    let mut data = vec![0; width * height * stride];
    decoder.read_image(&mut data).map_err(refusal)?;
    Ok(Pixels {
        data,
        width,
        height,
        stride,
        orientation: container.orientation,
    })
}

/// Finds the bitstream, its size and the orientation.
fn container(bytes: &[u8]) -> Result<Container<'_>, ImageError> {
    let mut rest = bytes.get(HEADER..).ok_or_else(truncated)?;
    let mut orientation = Orientation::default();
    let mut bitstream = None;
    while let Some(chunk) = chunk(rest)? {
        match &chunk.name {
            b"VP8X" if chunk.content.first().is_some_and(|f| f & ANIMATION != 0) => {
                return Err(ImageError::Animated(ImageFormat::WebP));
            }
            b"VP8 " | b"VP8L" if bitstream.is_none() => {
                let first = rest.len() + HEADER == bytes.len();
                let (width, height) = stated_size(&chunk)?;
                let lossless = chunk.name == *b"VP8L";
                bitstream = Some((simple(bytes, &chunk, first), width, height, lossless));
            }
            b"EXIF" => orientation = Orientation::from_exif(chunk.content),
            _ => {}
        }
        rest = &rest[chunk.whole.len()..];
    }
    let (simple, width, height, lossless) = bitstream.ok_or_else(|| damaged("no bitstream"))?;
    Ok(Container {
        simple,
        width,
        height,
        orientation,
        lossless,
    })
}

/// The first chunk of `rest`, if there is one.
fn chunk(rest: &[u8]) -> Result<Option<Chunk<'_>>, ImageError> {
    let Some((name, after)) = rest.split_first_chunk::<4>() else {
        return Ok(None);
    };
    let (length, after) = after.split_first_chunk::<4>().ok_or_else(truncated)?;
    let length = u32::from_le_bytes(*length) as usize;
    let content = after.get(..length).ok_or_else(truncated)?;
    // The padding of the last chunk may be missing.
    let end = (8 + length + length % 2).min(rest.len());
    Ok(Some(Chunk {
        name: *name,
        content,
        whole: &rest[..end],
    }))
}

/// Width and height in the header of a bitstream.
fn stated_size(chunk: &Chunk<'_>) -> Result<(u32, u32), ImageError> {
    match (&chunk.name, chunk.content) {
        (b"VP8 ", [_, _, _, 0x9D, 0x01, 0x2A, w0, w1, h0, h1, ..]) => {
            // The upper two bits ask the viewer to scale.
            let side = |low, high| u32::from(u16::from_le_bytes([low, high]) & 0x3FFF);
            Ok((side(*w0, *w1), side(*h0, *h1)))
        }
        (b"VP8L", [0x2F, b0, b1, b2, b3, ..]) => {
            let bits = u32::from_le_bytes([*b0, *b1, *b2, *b3]);
            Ok(((bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1))
        }
        _ => Err(damaged("no key frame at the start of the bitstream")),
    }
}

/// A simple container of `chunk`: `bytes` itself if the chunk is its first.
fn simple<'a>(bytes: &'a [u8], chunk: &Chunk<'_>, first: bool) -> Cow<'a, [u8]> {
    if first {
        return Cow::Borrowed(bytes);
    }
    // The length fits: it is below that of the container.
    let length = (4 + chunk.whole.len()) as u32;
    Cow::Owned(
        [
            b"RIFF".as_slice(),
            &length.to_le_bytes(),
            b"WEBP",
            chunk.whole,
        ]
        .concat(),
    )
}

fn truncated() -> ImageError {
    ImageError::Truncated(ImageFormat::WebP)
}

fn damaged(reason: &str) -> ImageError {
    ImageError::decode(ImageFormat::WebP, &reason)
}

fn refusal(error: DecodingError) -> ImageError {
    match error {
        DecodingError::IoError(source) if source.kind() == ErrorKind::UnexpectedEof => truncated(),
        error => ImageError::decode(ImageFormat::WebP, &error),
    }
}
