//! BYTES inputs are texts.

use crate::ingress::tensor::TensorData;

/// Longest text, in bytes. Some ten times what the longest encoders read: what is beyond their
/// last token would be tokenised for nothing, on a thread that computes.
pub(super) const TEXT_BYTES_MAX: usize = 64 << 10;

/// Checks that every element of a BYTES tensor is UTF-8 and not too long. The error says which is
/// not.
pub(super) fn check(data: &TensorData) -> Result<(), String> {
    let TensorData::Bytes(elements) = data else {
        return Ok(());
    };
    for (index, element) in elements.iter().enumerate() {
        if element.len() > TEXT_BYTES_MAX {
            return Err(format!(
                "element {index}: a text of {} bytes, the limit is {TEXT_BYTES_MAX}",
                element.len()
            ));
        }
        if let Err(error) = str::from_utf8(element) {
            return Err(format!("element {index}: no UTF-8 text: {error}"));
        }
    }
    Ok(())
}
