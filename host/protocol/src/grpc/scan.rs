//! The fields of an inference, looked at before they are decoded.
//!
//! A field of two bytes becomes a struct of a hundred, and an element of one byte a number of eight. So
//! the lists are bounded before the decoder allocates them, and the caller can reserve the memory.

use bytes::Bytes;
use prost::Message as _;
use prost::encoding::{WireType, decode_key, decode_varint};

use super::messages::inference::ModelInferRequest;
use crate::error::ProtocolError;

/// Most inputs, outputs, raw tensors and parameters, as of a JSON request.
const ENTRIES_MAX: usize = 256;

/// Most bytes of a shape: 32 dimensions of the longest number.
const SHAPE_BYTES_MAX: usize = 32 * 10;

/// Memory of one element of `bytes_contents`: as the decoder's and as the tensor's.
const ELEMENT_BYTES: usize = 64;

/// The bytes of a `ModelInferRequest` with lists of bounded lengths.
#[derive(Debug)]
pub struct InferMessage {
    bytes: Bytes,
    decoded_bytes: usize,
}

/// The name of the app if the message begins with it, as clients write it; the rest may not have arrived.
pub fn first_model_name(begin: &[u8]) -> Option<&str> {
    match Fields(begin).next()? {
        Ok((1, name)) => str::from_utf8(name?).ok(),
        _ => None,
    }
}

/// The fields of a message, and their content if it has a length.
struct Fields<'a>(&'a [u8]);

/// The lengths of a message's lists.
#[derive(Default)]
struct Lists {
    inputs: usize,
    outputs: usize,
    raw: usize,
    parameters: usize,
}

// === impl InferMessage ===

impl InferMessage {
    /// Scans a message, without the tensors that are raw.
    ///
    /// # Errors
    /// It is no protobuf message, or has a longer list than any model.
    pub fn scan(bytes: Bytes) -> Result<Self, ProtocolError> {
        let decoded_bytes = scan_request(&bytes)?;
        Ok(Self {
            bytes,
            decoded_bytes,
        })
    }

    /// The name of the app; `None` if it is no text.
    pub fn model_name(&self) -> Option<&str> {
        let fields = Fields(&self.bytes).filter_map(Result::ok);
        let names = fields.filter(|(number, _)| *number == 1);
        // Of a field that comes twice the last one counts.
        let name = names.last().and_then(|(_, content)| content);
        str::from_utf8(name.unwrap_or_default()).ok()
    }

    /// Bytes of the message.
    pub const fn length(&self) -> usize {
        self.bytes.len()
    }

    /// Most bytes that its fields take once they are decoded, without the message itself.
    pub const fn decoded_bytes(&self) -> usize {
        self.decoded_bytes
    }

    /// Reads the message. Raw tensors stay in it.
    ///
    /// # Errors
    /// It is no `ModelInferRequest`.
    pub fn read(self) -> Result<ModelInferRequest, ProtocolError> {
        ModelInferRequest::decode(self.bytes)
            .map_err(|error| ProtocolError::malformed("body", error.to_string()))
    }
}

// === impl Fields ===

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u32, Option<&'a [u8]>), ProtocolError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_none() {
            self.0 = &[];
        }
        let error = || ProtocolError::malformed("body", "is no protobuf message");
        Some(field.ok_or_else(error))
    }
}

impl<'a> Fields<'a> {
    fn field(&mut self) -> Option<(u32, Option<&'a [u8]>)> {
        let (number, wire_type) = decode_key(&mut self.0).ok()?;
        let content = match wire_type {
            WireType::Varint => {
                decode_varint(&mut self.0).ok()?;
                None
            }
            WireType::SixtyFourBit => self.skip(8)?,
            WireType::ThirtyTwoBit => self.skip(4)?,
            WireType::LengthDelimited => {
                let length = usize::try_from(decode_varint(&mut self.0).ok()?).ok()?;
                let (content, rest) = self.0.split_at_checked(length)?;
                self.0 = rest;
                Some(content)
            }
            // The messages have no groups, and a nested one takes the stack.
            WireType::StartGroup | WireType::EndGroup => return None,
        };
        Some((number, content))
    }

    fn skip(&mut self, bytes: usize) -> Option<Option<&'a [u8]>> {
        self.0 = self.0.get(bytes..)?;
        Some(None)
    }
}

/// The memory of a request's fields without raw tensors.
fn scan_request(message: &[u8]) -> Result<usize, ProtocolError> {
    let mut lists = Lists::default();
    let mut bytes = 0;
    for field in Fields(message) {
        let (number, content) = field?;
        let content = content.unwrap_or_default();
        match number {
            4 => count(&mut lists.parameters, "parameters")?,
            5 => {
                let index = lists.inputs;
                count(&mut lists.inputs, "inputs")?;
                bytes += scan_input(content, index)?;
            }
            6 => {
                let index = lists.outputs;
                count(&mut lists.outputs, "outputs")?;
                scan_parameters(content, 2, || format!("outputs[{index}].parameters"))?;
            }
            7 => {
                count(&mut lists.raw, "raw_input_contents")?;
                continue;
            }
            _ => {}
        }
        bytes += content.len();
    }
    Ok(bytes)
}

/// The memory of the typed elements of an input.
fn scan_input(message: &[u8], index: usize) -> Result<usize, ProtocolError> {
    let (mut shape_bytes, mut bytes) = (0, 0);
    for field in Fields(message) {
        match field? {
            (3, content) => shape_bytes += content.map_or(1, <[u8]>::len),
            (5, Some(contents)) => bytes += scan_contents(contents)?,
            _ => {}
        }
    }
    if shape_bytes > SHAPE_BYTES_MAX {
        let field = format!("inputs[{index}].shape");
        return Err(ProtocolError::malformed(field, "more than 32 dimensions"));
    }
    scan_parameters(message, 4, || format!("inputs[{index}].parameters"))?;
    Ok(bytes)
}

fn scan_parameters(
    message: &[u8],
    number: u32,
    name: impl Fn() -> String,
) -> Result<(), ProtocolError> {
    let mut parameters = 0;
    for field in Fields(message) {
        if field?.0 == number {
            count(&mut parameters, &name())?;
        }
    }
    Ok(())
}

/// Vectors double as they grow, and a number that varies in length has at least one byte.
fn scan_contents(message: &[u8]) -> Result<usize, ProtocolError> {
    let mut bytes = 0_usize;
    for field in Fields(message) {
        let (number, content) = field?;
        let length = content.map_or(8, <[u8]>::len);
        let decoded = match number {
            2 | 4 => length.saturating_mul(8),
            3 | 5 => length.saturating_mul(16),
            8 => length.saturating_add(ELEMENT_BYTES),
            _ => length.saturating_mul(2),
        };
        bytes = bytes.saturating_add(decoded);
    }
    Ok(bytes)
}

fn count(entries: &mut usize, list: &str) -> Result<(), ProtocolError> {
    *entries += 1;
    if *entries > ENTRIES_MAX {
        let reason = format!("more than {ENTRIES_MAX} entries");
        return Err(ProtocolError::malformed(list, reason));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grpc::messages::inference::InferTensorContents;
    use crate::grpc::messages::inference::model_infer_request::InferInputTensor;
    use proptest::prelude::*;

    fn refusal(message: impl Into<Bytes>) -> String {
        InferMessage::scan(message.into()).unwrap_err().to_string()
    }

    #[test]
    fn lists_of_millions_are_refused_before_they_are_decoded() {
        for (tag, list) in [
            (0x22, "parameters"),
            (0x2a, "inputs"),
            (0x32, "outputs"),
            (0x3a, "raw_input_contents"),
        ] {
            let expected = format!("{list}: more than 256 entries");
            assert_eq!(refusal([tag, 0].repeat(1 << 20)), expected);
        }
        let shape = [0x1a, 1, 1].repeat(321);
        let mut input = vec![0x2a];
        prost::encoding::encode_varint(shape.len() as u64, &mut input);
        input.extend(shape);
        assert_eq!(refusal(input), "inputs[0].shape: more than 32 dimensions");
    }

    #[test]
    fn the_memory_of_typed_elements_is_known_and_raw_ones_are_free() {
        let tensor = |contents| ModelInferRequest {
            inputs: vec![InferInputTensor {
                contents: Some(contents),
                ..InferInputTensor::default()
            }],
            ..ModelInferRequest::default()
        };
        let scan = |request: &ModelInferRequest| {
            InferMessage::scan(request.encode_to_vec().into()).unwrap()
        };
        let small = scan(&tensor(InferTensorContents {
            uint64_contents: vec![1; 1_000],
            ..InferTensorContents::default()
        }));
        assert!(small.decoded_bytes() >= 8_000, "{small:?}");
        let empty = scan(&tensor(InferTensorContents {
            bytes_contents: vec![Bytes::new(); 1_000],
            ..InferTensorContents::default()
        }));
        assert!(empty.decoded_bytes() >= 32_000, "{empty:?}");
        let raw = scan(&ModelInferRequest {
            raw_input_contents: vec![Bytes::from(vec![0; 1 << 20])],
            ..ModelInferRequest::default()
        });
        assert!(raw.decoded_bytes() < 100, "{raw:?}");
    }

    #[test]
    fn the_name_is_known_before_the_message_is_read() {
        let named = |name: &str| {
            let request = ModelInferRequest {
                model_name: name.to_owned(),
                ..ModelInferRequest::default()
            };
            InferMessage::scan(request.encode_to_vec().into()).unwrap()
        };
        assert_eq!(named("heart").model_name(), Some("heart"));
        assert_eq!(named("").model_name(), Some(""));
    }

    #[test]
    fn the_name_at_the_begin_is_known_before_the_rest() {
        let message = ModelInferRequest {
            model_name: "heart".to_owned(),
            raw_input_contents: vec![Bytes::from(vec![0; 1_000])],
            ..ModelInferRequest::default()
        };
        let bytes = message.encode_to_vec();
        assert_eq!(first_model_name(&bytes), Some("heart"));
        assert_eq!(first_model_name(&bytes[..7]), Some("heart"));
        for cut in 0..7 {
            assert_eq!(first_model_name(&bytes[..cut]), None);
        }
        // Another field comes first.
        assert_eq!(first_model_name(&[0x12, 0, 0x0a, 1, b'a']), None);
    }

    #[test]
    fn bytes_that_are_no_message_are_refused() {
        for bytes in [&[0xff_u8; 20][..], &[0x2a, 9, 0], &[0x0b, 0x0c], &[0x0d, 1]] {
            assert_eq!(refusal(bytes.to_vec()), "body: is no protobuf message");
        }
    }

    proptest! {
        /// Every message that prost can read has passed the scan, and none makes either panic.
        #[test]
        fn any_bytes_are_scanned(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(message) = InferMessage::scan(bytes.into()) {
                let _ = message.read();
            }
        }
    }
}
