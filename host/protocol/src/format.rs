//! How the headers of an inference say that its bodies are written.

use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, HeaderMap, HeaderName, HeaderValue};

use crate::coding::ContentCoding;
use crate::error::ProtocolError;
use crate::framing::{BodyFraming, JSON_LENGTH};

/// Layout and codings of a request and its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyFormat {
    /// Layout of the request's body, once decompressed.
    pub framing: BodyFraming,
    /// Coding of the request.
    pub request: ContentCoding,
    /// Coding that the client prefers for the answer.
    pub answer: ContentCoding,
}

impl BodyFormat {
    /// Reads the headers of a request.
    ///
    /// # Errors
    /// A malformed length of the JSON part, or a coding that is not supported.
    pub fn of(headers: &HeaderMap) -> Result<Self, ProtocolError> {
        let bytes = |name: &HeaderName| headers.get(name).map(HeaderValue::as_bytes);
        Ok(Self {
            framing: BodyFraming::of_header(bytes(&JSON_LENGTH))?,
            request: ContentCoding::of_request(bytes(&CONTENT_ENCODING))?,
            answer: ContentCoding::of_answer(bytes(&ACCEPT_ENCODING)),
        })
    }
}
