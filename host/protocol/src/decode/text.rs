//! BYTES inputs are texts.

use crate::datatype::TEXT_BYTES_MAX;
use crate::tensor::TensorData;

/// Checks that every element of a BYTES tensor is UTF-8 and not too long.
///
/// # Errors
/// The first wrong element; the text has no field name.
pub(super) fn check(data: &TensorData) -> Result<(), String> {
    let TensorData::Bytes(elements) = data else {
        return Ok(());
    };
    for (index, element) in elements.iter().enumerate() {
        if element.len() > TEXT_BYTES_MAX {
            return Err(format!(
                "element {index}: the text has {} bytes, the limit is {TEXT_BYTES_MAX}",
                element.len()
            ));
        }
        if let Err(error) = str::from_utf8(element) {
            return Err(format!("element {index}: not UTF-8: {error}"));
        }
    }
    Ok(())
}
