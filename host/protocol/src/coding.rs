//! Content codings: gzip and deflate, which in HTTP is zlib.

use std::io::{Read, Write};

use bytes::Bytes;
use flate2::Compression;
use flate2::read::{MultiGzDecoder, ZlibDecoder};
use flate2::write::{GzEncoder, ZlibEncoder};

use crate::error::ProtocolError;

/// Memory of an output before the first doubling: a usual request fits.
const FIRST_BYTES: usize = 16 << 10;

/// How a body is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentCoding {
    /// Not at all.
    Identity,
    /// gzip, RFC 1952.
    Gzip,
    /// zlib, RFC 1950.
    Deflate,
}

impl ContentCoding {
    /// The name in the headers.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Identity => "identity",
            Self::Gzip => "gzip",
            Self::Deflate => "deflate",
        }
    }

    /// The coding of a request, from its `Content-Encoding`.
    ///
    /// # Errors
    /// 415 for a coding that is not supported.
    pub fn of_request(header: Option<&[u8]>) -> Result<Self, ProtocolError> {
        let Some(header) = header else {
            return Ok(Self::Identity);
        };
        let name = header.trim_ascii();
        for coding in [Self::Identity, Self::Gzip, Self::Deflate] {
            if name.eq_ignore_ascii_case(coding.name().as_bytes()) {
                return Ok(coding);
            }
        }
        match name {
            b"" => Ok(Self::Identity),
            b"x-gzip" => Ok(Self::Gzip),
            _ => Err(ProtocolError::UnsupportedEncoding {
                found: String::from_utf8_lossy(name).into_owned(),
            }),
        }
    }

    /// The coding of an answer: the supported one with the highest weight in `Accept-Encoding`;
    /// gzip if both weigh the same.
    pub fn of_answer(header: Option<&[u8]>) -> Self {
        let Some(header) = header.and_then(|header| str::from_utf8(header).ok()) else {
            return Self::Identity;
        };
        let (mut gzip, mut deflate, mut any) = (None, None, 0.0_f32);
        for item in header.split(',') {
            let (name, weight) = weighted(item);
            match name {
                name if name.eq_ignore_ascii_case("gzip") => gzip = Some(weight),
                name if name.eq_ignore_ascii_case("deflate") => deflate = Some(weight),
                "*" => any = weight,
                _ => {}
            }
        }
        let (gzip, deflate) = (gzip.unwrap_or(any), deflate.unwrap_or(any));
        if gzip <= 0.0 && deflate <= 0.0 {
            Self::Identity
        } else if gzip >= deflate {
            Self::Gzip
        } else {
            Self::Deflate
        }
    }
}

/// Splits `gzip;q=0.5` into its name and weight.
fn weighted(item: &str) -> (&str, f32) {
    let mut parts = item.split(';');
    let name = parts.next().unwrap_or_default().trim();
    let weight = parts
        .find_map(|part| part.trim().strip_prefix("q="))
        .map_or(1.0, |q| q.trim().parse().unwrap_or(0.0));
    (name, weight)
}

/// Undoes a request's coding. `grow` is called with the bytes of memory that the output is about
/// to take, before it takes them.
///
/// # Errors
/// 413 as soon as the output passes `limit_bytes`, so that a small body cannot fill the memory;
/// 400 if the body is not in the coding of its header; any error of `grow`.
pub fn decompress(
    coding: ContentCoding,
    body: &Bytes,
    limit_bytes: usize,
    grow: impl FnMut(usize) -> Result<(), ProtocolError>,
) -> Result<Bytes, ProtocolError> {
    match coding {
        ContentCoding::Identity => Ok(body.clone()),
        ContentCoding::Gzip => inflate(coding, MultiGzDecoder::new(&body[..]), limit_bytes, grow),
        ContentCoding::Deflate => inflate(coding, ZlibDecoder::new(&body[..]), limit_bytes, grow),
    }
}

fn inflate(
    coding: ContentCoding,
    mut decoder: impl Read,
    limit_bytes: usize,
    mut grow: impl FnMut(usize) -> Result<(), ProtocolError>,
) -> Result<Bytes, ProtocolError> {
    let mut plain = Vec::new();
    loop {
        let capacity = (2 * plain.len())
            .max(FIRST_BYTES)
            .min(limit_bytes.saturating_add(1));
        grow(capacity)?;
        plain.reserve_exact(capacity - plain.len());
        let room = capacity - plain.len();
        let read = decoder
            .by_ref()
            .take(room as u64)
            .read_to_end(&mut plain)
            .map_err(|error| {
                ProtocolError::malformed("body", format!("is not valid {}: {error}", coding.name()))
            })?;
        if plain.len() > limit_bytes {
            return Err(ProtocolError::BodyTooLarge {
                field: "Content-Encoding",
                found: format!("more than {limit_bytes} bytes once decompressed"),
                limit_bytes,
                scope: String::new(),
            });
        }
        if read < room {
            return Ok(plain.into());
        }
    }
}

/// Compresses an answer at the fastest level: answers are small, and the client waits.
///
/// # Errors
/// None in practice: the encoder writes to memory.
pub fn compress(coding: ContentCoding, plain: Vec<u8>) -> std::io::Result<Vec<u8>> {
    let level = Compression::fast();
    match coding {
        ContentCoding::Identity => Ok(plain),
        ContentCoding::Gzip => {
            let mut encoder = GzEncoder::new(Vec::with_capacity(plain.len() / 2), level);
            encoder.write_all(&plain)?;
            encoder.finish()
        }
        ContentCoding::Deflate => {
            let mut encoder = ZlibEncoder::new(Vec::with_capacity(plain.len() / 2), level);
            encoder.write_all(&plain)?;
            encoder.finish()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ContentCoding::{Deflate, Gzip, Identity};
    use super::*;

    #[test]
    fn a_compressed_body_comes_back() {
        let plain = b"abcabcabcabc".repeat(100);
        for coding in [Identity, Gzip, Deflate] {
            let packed = compress(coding, plain.clone()).unwrap().into();
            assert_eq!(
                decompress(coding, &packed, plain.len(), |_| Ok(())).unwrap(),
                plain
            );
        }
    }

    #[test]
    fn a_bomb_stops_at_the_limit() {
        let packed = Bytes::from(compress(Gzip, vec![0; 1 << 20]).unwrap());
        assert!(packed.len() < 1 << 13);
        assert_eq!(
            decompress(Gzip, &packed, 1000, |_| Ok(()))
                .unwrap_err()
                .to_string(),
            "Content-Encoding: the body has more than 1000 bytes once decompressed, \
             the limit is 1000 bytes"
        );
    }

    #[test]
    fn memory_is_asked_for_before_it_is_taken() {
        let plain = vec![7; 100_000];
        let packed = Bytes::from(compress(Gzip, plain.clone()).unwrap());
        let mut asked = Vec::new();
        let unpacked = decompress(Gzip, &packed, 1 << 20, |bytes| {
            asked.push(bytes);
            Ok(())
        });
        assert_eq!(unpacked.unwrap(), plain);
        assert_eq!(asked, [16 << 10, 32 << 10, 64 << 10, 128 << 10]);
        let full = ProtocolError::malformed("body", "no room");
        let refused = decompress(Gzip, &packed, 1 << 20, |bytes| {
            if bytes > 1 << 15 {
                Err(full.clone())
            } else {
                Ok(())
            }
        });
        assert_eq!(refused.unwrap_err(), full);
    }

    #[test]
    fn a_body_that_is_not_gzip_is_malformed() {
        let error = decompress(Gzip, &Bytes::from_static(b"{}"), 100, |_| Ok(())).unwrap_err();
        assert!(
            error.to_string().starts_with("body: is not valid gzip"),
            "{error}"
        );
    }

    #[test]
    fn the_client_decides_by_weight() {
        for (header, coding) in [
            ("", Identity),
            ("gzip", Gzip),
            ("GZIP, deflate, br", Gzip),
            ("gzip;q=0.2, deflate;q=0.5", Deflate),
            ("gzip;q=0, *", Deflate),
            ("*", Gzip),
            ("br, identity", Identity),
            ("gzip;q=0, deflate;q=0", Identity),
        ] {
            let chosen = ContentCoding::of_answer(Some(header.as_bytes()));
            assert_eq!(chosen, coding, "{header}");
        }
    }

    #[test]
    fn an_unknown_coding_is_refused() {
        assert_eq!(ContentCoding::of_request(Some(b" Gzip ")), Ok(Gzip));
        let error = ContentCoding::of_request(Some(b"br")).unwrap_err();
        assert_eq!(error.status(), 415);
    }
}
