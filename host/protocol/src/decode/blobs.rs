//! The blobs after the JSON part, taken one by one.

use bytes::Bytes;

use crate::error::ProtocolError;
use crate::framing::JSON_LENGTH_FIELD;

/// The blobs that no input has taken yet.
pub(super) struct Blobs<'a> {
    pub(super) body: &'a Bytes,
    /// `None` for a body without a binary part.
    rest: Option<&'a [u8]>,
}

impl<'a> Blobs<'a> {
    pub(super) const fn new(body: &'a Bytes, rest: Option<&'a [u8]>) -> Self {
        Self { body, rest }
    }

    /// Takes the blob of the input at `index`.
    pub(super) fn take(&mut self, index: usize, size: usize) -> Result<&'a [u8], ProtocolError> {
        let field = || format!("inputs[{index}].parameters.binary_data_size");
        let Some(rest) = self.rest else {
            let reason = format!("is set, but the header {JSON_LENGTH_FIELD} is missing");
            return Err(ProtocolError::malformed(field(), reason));
        };
        let Some((blob, rest)) = rest.split_at_checked(size) else {
            let reason = format!("is {size}, the body has {} bytes left", rest.len());
            return Err(ProtocolError::malformed(field(), reason));
        };
        self.rest = Some(rest);
        Ok(blob)
    }

    /// Checks that the inputs have taken every byte.
    pub(super) fn finish(self) -> Result<(), ProtocolError> {
        match self.rest {
            None | Some([]) => Ok(()),
            Some(rest) => Err(ProtocolError::malformed(
                "body",
                format!("{} bytes follow the last binary tensor", rest.len()),
            )),
        }
    }
}
