//! Encoded images of a call become its tensors.

use switchyard_models::{ImageCard, ImageError};

use crate::ingress::{ProtocolError, Shape, Tensor, TensorData};

/// Decodes the inputs that have a card; `cards` and `inputs` are in the app's order. `grow` is called
/// with the bytes that are held after each allocation, and at the end with those that stay.
///
/// # Errors
/// The input and the row of the first image that is refused; any error of `grow`.
pub(super) fn decode(
    cards: &[Option<ImageCard>],
    names: &[impl AsRef<str>],
    inputs: &mut [Tensor],
    grow: &mut dyn FnMut(usize) -> Result<(), ProtocolError>,
) -> Result<(), ProtocolError> {
    let mut held: usize = inputs.iter().map(encoded_bytes).sum();
    for ((card, name), input) in cards.iter().zip(names).zip(inputs) {
        let (Some(card), TensorData::Bytes(images)) = (card, &input.data) else {
            continue;
        };
        let row_values: usize = card.shape().iter().product();
        let tensor_bytes = row_values * size_of::<f32>() * images.len();
        let mut values = Vec::new();
        let mut one = Vec::new();
        for (row, image) in images.iter().enumerate() {
            let refused = |error: ImageError| {
                let reason = format!("{:?}, row {row}: {error}", name.as_ref());
                ProtocolError::malformed("inputs", reason)
            };
            let peak = card.peak_bytes(image).map_err(refused)?;
            let peak = usize::try_from(peak).unwrap_or(usize::MAX);
            grow(held.saturating_add(tensor_bytes).saturating_add(peak))?;
            card.tensor(image, &mut one).map_err(refused)?;
            if images.len() == 1 {
                values = std::mem::take(&mut one);
            } else {
                // Reserved once there is room for it, and once an image is one.
                values.reserve_exact(tensor_bytes / size_of::<f32>() - values.len());
                values.extend_from_slice(&one);
            }
        }
        held = held - encoded_bytes(input) + tensor_bytes;
        let mut shape = Shape::from_slice(&[images.len()]);
        shape.extend(card.shape());
        *input = Tensor {
            shape,
            data: TensorData::F32(values),
        };
    }
    grow(held)
}

fn encoded_bytes(input: &Tensor) -> usize {
    match &input.data {
        TensorData::Bytes(elements) => elements.iter().map(Vec::len).sum(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use switchyard_models::Fit;

    use super::*;

    /// One white pixel as a PNG.
    const WHITE: &[u8] =
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x02\0\0\0\x90wS\xde\0\0\0\x0cI\
        DATx\x9cc\xf8\xff\xff?\0\x05\xfe\x02\xfe\r\xefF\xb8\0\0\0\0IEND\xaeB`\x82";

    fn card() -> Option<ImageCard> {
        Some(ImageCard {
            size: [2, 1],
            fit: Fit::Stretch,
            mean: vec![0.5],
            deviation: vec![0.5],
            ..ImageCard::default()
        })
    }

    fn images(images: &[&[u8]]) -> Tensor {
        Tensor {
            shape: Shape::from_slice(&[images.len(), 1]),
            data: TensorData::Bytes(images.iter().map(|image| image.to_vec()).collect()),
        }
    }

    #[test]
    fn images_become_tensors_and_other_inputs_stay() {
        let other = Tensor {
            shape: Shape::from_slice(&[2, 1]),
            data: TensorData::F32(vec![7.0, 8.0]),
        };
        let mut inputs = [images(&[WHITE, WHITE]), other.clone()];
        let mut held = Vec::new();
        decode(
            &[card(), None],
            &["photo", "age"],
            &mut inputs,
            &mut |bytes| {
                held.push(bytes);
                Ok(())
            },
        )
        .unwrap();
        assert_eq!(inputs[0].shape.as_slice(), [2, 3, 2, 1]);
        assert_eq!(inputs[0].data, TensorData::F32(vec![1.0; 12]));
        assert_eq!(inputs[1].data, other.data);
        // The peak of the first image and of the second, and then the tensor alone.
        assert_eq!(held.len(), 3);
        assert!(
            held[0] > 24 << 20 && held[1] == held[0] && held[2] == 48,
            "{held:?}"
        );
    }

    #[test]
    fn a_refusal_names_input_row_and_reason() {
        let mut inputs = [images(&[WHITE, &WHITE[..60]])];
        let error = decode(&[card()], &["photo"], &mut inputs, &mut |_| Ok(())).unwrap_err();
        assert_eq!(
            error.to_string(),
            "inputs: \"photo\", row 1: PNG image ends early: send the whole file"
        );
        let full = || ProtocolError::malformed("body", "no room");
        let error = decode(&[card()], &["photo"], &mut inputs, &mut |_| Err(full()));
        assert_eq!(error, Err(full()));
    }
}
