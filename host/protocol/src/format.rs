//! How the headers of an inference say that its bodies are written.

use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, HeaderMap};

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
        let (mut length, mut request, mut answer) = (None, None, None);
        // One pass: each look-up would hash its name. The first of several values counts.
        for (name, value) in headers {
            let field = if *name == CONTENT_ENCODING {
                &mut request
            } else if *name == ACCEPT_ENCODING {
                &mut answer
            } else if *name == JSON_LENGTH {
                &mut length
            } else {
                continue;
            };
            field.get_or_insert(value.as_bytes());
        }
        Ok(Self {
            framing: BodyFraming::of_header(length)?,
            request: ContentCoding::of_request(request)?,
            answer: ContentCoding::of_answer(answer),
        })
    }
}
