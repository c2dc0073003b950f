//! The elements of BYTES inputs: texts, and encoded images.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::app::{BytesContent, TensorSpec};
use crate::datatype::TEXT_BYTES_MAX;
use crate::tensor::TensorData;

/// Checks that every element of a BYTES tensor has the form of its input, and is not too long.
///
/// # Errors
/// The first wrong element; the text has no field name.
pub(crate) fn check(spec: &TensorSpec, data: &TensorData) -> Result<(), String> {
    let TensorData::Bytes(elements) = data else {
        return Ok(());
    };
    let (noun, bytes_max) = match spec.content {
        BytesContent::Text => ("text", TEXT_BYTES_MAX),
        BytesContent::Image { bytes_max } => ("image", bytes_max),
    };
    for (index, element) in elements.iter().enumerate() {
        if element.len() > bytes_max {
            return Err(format!(
                "element {index}: the {noun} has {} bytes, the limit is {bytes_max}",
                element.len()
            ));
        }
        if let (BytesContent::Text, Err(error)) = (spec.content, str::from_utf8(element)) {
            return Err(format!("element {index}: not UTF-8: {error}"));
        }
    }
    Ok(())
}

/// The elements of JSON as the bytes that they stand for: JSON has no bytes, so images are base64.
///
/// # Errors
/// The first element that is not base64; the text has no field name.
pub(super) fn of_json(spec: &TensorSpec, data: TensorData) -> Result<TensorData, String> {
    let (BytesContent::Image { .. }, TensorData::Bytes(elements)) = (spec.content, &data) else {
        return Ok(data);
    };
    let decoded = elements.iter().enumerate().map(|(index, text)| {
        STANDARD.decode(text).map_err(|error| {
            format!(
                "element {index}: an image in JSON is base64 with padding: {error}; or send it \
                 with parameters.binary_data_size"
            )
        })
    });
    decoded.collect::<Result<_, _>>().map(TensorData::Bytes)
}
