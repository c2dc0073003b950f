//! The five bytes before each message of a body.

use crate::error::ProtocolError;

/// A flag and a length.
pub const PREFIX_BYTES: usize = 5;

/// The bytes before a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FramePrefix {
    /// Whether the message has the coding of the header `grpc-encoding`.
    pub compressed: bool,
    /// Bytes of the message.
    pub length: usize,
}

impl FramePrefix {
    /// Reads a prefix.
    ///
    /// # Errors
    /// The flag is neither 0 nor 1.
    pub fn parse(bytes: [u8; PREFIX_BYTES]) -> Result<Self, ProtocolError> {
        let [flag, length @ ..] = bytes;
        if flag > 1 {
            let reason = format!("begins with {flag}, expected 0 or 1, the flag of a gRPC message");
            return Err(ProtocolError::malformed("body", reason));
        }
        Ok(Self {
            compressed: flag == 1,
            length: u32::from_be_bytes(length) as usize,
        })
    }
}

/// A message that is not compressed, with its prefix. `None` if it is longer than a length can say.
pub fn frame(message: &impl prost::Message) -> Option<Vec<u8>> {
    let length = message.encoded_len();
    let mut bytes = Vec::with_capacity(PREFIX_BYTES + length);
    begin(&mut bytes, length)?;
    // Into a vector this does not fail.
    message.encode(&mut bytes).ok()?;
    Some(bytes)
}

/// The prefix of a message of this length that is not compressed.
pub(super) fn begin(bytes: &mut Vec<u8>, length: usize) -> Option<()> {
    bytes.push(0);
    bytes.extend_from_slice(&u32::try_from(length).ok()?.to_be_bytes());
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grpc::messages::inference::ModelReadyRequest;

    #[test]
    fn a_message_has_its_length_in_front() {
        let message = ModelReadyRequest {
            name: "heart".to_owned(),
            version: String::new(),
        };
        let bytes = frame(&message).unwrap();
        let (prefix, rest) = bytes.split_first_chunk::<PREFIX_BYTES>().unwrap();
        let prefix = FramePrefix::parse(*prefix).unwrap();
        assert_eq!((prefix.compressed, prefix.length), (false, rest.len()));
        let error = FramePrefix::parse([7, 0, 0, 0, 0]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "body: begins with 7, expected 0 or 1, the flag of a gRPC message"
        );
    }
}
