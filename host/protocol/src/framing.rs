//! Where a body's JSON ends and its blobs begin: Triton's extension `binary_tensor_data`.

use http::header::HeaderName;

use crate::error::ProtocolError;
use crate::excerpt::excerpt;

/// The header with the length of the JSON part, in both directions. With a content coding it
/// counts the uncompressed JSON.
pub static JSON_LENGTH: HeaderName = HeaderName::from_static("inference-header-content-length");

/// The same header as the clients' documentation spells it, for messages.
pub(crate) const JSON_LENGTH_FIELD: &str = "Inference-Header-Content-Length";

/// The layout of a request's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyFraming {
    /// Without the header: JSON only.
    Json,
    /// JSON of this many bytes, then blobs.
    JsonThenBlobs(usize),
    /// Header value 0: the body is the blob of the only input.
    Raw,
}

impl BodyFraming {
    /// The layout for the header's number.
    pub const fn of_length(json_bytes: Option<usize>) -> Self {
        match json_bytes {
            None => Self::Json,
            Some(0) => Self::Raw,
            Some(length) => Self::JsonThenBlobs(length),
        }
    }

    /// Reads the value of [`JSON_LENGTH`].
    ///
    /// # Errors
    /// The value is not a number of bytes.
    pub fn of_header(value: Option<&[u8]>) -> Result<Self, ProtocolError> {
        let Some(value) = value else {
            return Ok(Self::Json);
        };
        let length = str::from_utf8(value)
            .ok()
            .and_then(|text| text.trim().parse().ok());
        if length.is_some() {
            return Ok(Self::of_length(length));
        }
        let found = String::from_utf8_lossy(value);
        Err(ProtocolError::malformed(
            JSON_LENGTH_FIELD,
            format!("expected a number of bytes, got {:?}", excerpt(&found)),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_is_a_number() {
        for (header, framing) in [
            (None, BodyFraming::Json),
            (Some(&b"0"[..]), BodyFraming::Raw),
            (Some(b" 12 "), BodyFraming::JsonThenBlobs(12)),
        ] {
            assert_eq!(BodyFraming::of_header(header), Ok(framing));
        }
        assert_eq!(
            BodyFraming::of_header(Some(b"-1")).unwrap_err().to_string(),
            "Inference-Header-Content-Length: expected a number of bytes, got \"-1\""
        );
    }
}
