//! The card of a tensor on the wire.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::ModelError;
use crate::images::ImageCard;
use crate::networks::datatype::Datatype;

/// A dimension that differs from request to request, in a [`TensorCard::shape`].
pub const OPEN: i64 = -1;

/// The largest size of an open dimension, in times of its typical size ...
const LARGEST_TIMES: usize = 8;

/// ... and without one.
const LARGEST: usize = 1_024;

/// One tensor of a request or an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TensorCard {
    /// Name on the wire.
    pub name: String,
    /// Element type.
    pub datatype: Datatype,
    /// Shape without the batch dimension; [`OPEN`] for a dimension that differs from request to
    /// request.
    pub shape: Vec<i64>,
    /// A common shape of an input with open dimensions, at which latencies are measured; 1 for each
    /// of them by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub typical: Option<Vec<usize>>,
    /// The largest shape of an input with open dimensions; by default 8 times `typical`, or 1024
    /// without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub largest: Option<Vec<usize>>,
    /// The way from an encoded image to this tensor: clients send JPEG, PNG or WebP as BYTES, one
    /// per row. Without it they send the tensor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<ImageCard>,
}

// === impl TensorCard ===

impl TensorCard {
    /// A tensor of fixed dimensions.
    pub fn fixed(name: impl Into<String>, datatype: Datatype, shape: &[usize]) -> Self {
        let size = |&size: &usize| i64::try_from(size).unwrap_or(i64::MAX);
        Self {
            name: name.into(),
            datatype,
            shape: shape.iter().map(size).collect(),
            typical: None,
            largest: None,
            image: None,
        }
    }

    /// The tensor that a model takes of encoded images.
    pub fn image(name: impl Into<String>, image: ImageCard) -> Self {
        Self {
            image: Some(image.clone()),
            ..Self::fixed(name, Datatype::Fp32, &image.shape())
        }
    }

    /// Values in one tensor; 1 for an open dimension. Saturates.
    pub fn width(&self) -> usize {
        let sizes = self.typical_shape().into_iter();
        sizes.fold(1, usize::saturating_mul)
    }

    /// Its shape, if no dimension is open.
    pub fn fixed_shape(&self) -> Option<Vec<usize>> {
        let sizes = self.shape.iter().map(|&size| usize::try_from(size).ok());
        sizes.collect()
    }

    /// A shape of a request.
    pub fn typical_shape(&self) -> Vec<usize> {
        let sizes = self
            .shape
            .iter()
            .map(|&size| usize::try_from(size).unwrap_or(1));
        self.typical.clone().unwrap_or_else(|| sizes.collect())
    }

    /// The largest sizes of the dimensions of a row.
    pub fn largest_shape(&self) -> Vec<usize> {
        let sizes = self.shape.iter().enumerate().map(|(axis, &size)| {
            let typical = self.typical.as_ref().and_then(|typical| typical.get(axis));
            let open = typical.map_or(LARGEST, |typical| typical.saturating_mul(LARGEST_TIMES));
            usize::try_from(size).unwrap_or(open)
        });
        self.largest.clone().unwrap_or_else(|| sizes.collect())
    }

    /// The open dimensions of a row, each with its largest size.
    pub fn open_dimensions(&self) -> impl Iterator<Item = (usize, usize)> {
        let sizes = self.shape.iter().zip(self.largest_shape()).enumerate();
        sizes.filter_map(|(axis, (&size, largest))| (size == OPEN).then_some((axis, largest)))
    }

    /// Whether its values alone say all: other tensors keep their shape with them.
    pub fn is_flat(&self) -> bool {
        let is_plain = match self.datatype {
            Datatype::Fp32 | Datatype::Int64 | Datatype::Uint8 => true,
            Datatype::Bytes => self.shape == [1],
            _ => false,
        };
        is_plain && self.fixed_shape().is_some()
    }

    pub(super) fn check(&self, file: &Path, at: &str) -> Result<(), ModelError> {
        let is_size = |&size: &i64| size >= 1 || size == OPEN;
        if !self.shape.iter().all(is_size) {
            let reason = format!(
                "{:?}, must be sizes of at least 1, or -1 for a dimension that differs from \
                 request to request",
                self.shape
            );
            return Err(ModelError::field(file, format!("{at}.shape"), reason));
        }
        for (field, stated) in [("typical", &self.typical), ("largest", &self.largest)] {
            if let Some(stated) = stated.as_ref().filter(|stated| !self.fits(stated)) {
                let reason = format!("{stated:?}, must be a shape of {:?}", self.shape);
                return Err(ModelError::field(file, format!("{at}.{field}"), reason));
            }
        }
        let (typical, largest) = (self.typical_shape(), self.largest_shape());
        if typical
            .iter()
            .zip(&largest)
            .any(|(typical, largest)| typical > largest)
        {
            let reason = format!("{largest:?}, must be at least `typical`, {typical:?}");
            return Err(ModelError::field(file, format!("{at}.largest"), reason));
        }
        Ok(())
    }

    /// Checks the way from an image to this tensor.
    pub(super) fn check_image(
        &self,
        file: &Path,
        at: &str,
        is_input: bool,
    ) -> Result<(), ModelError> {
        let Some(image) = &self.image else {
            return Ok(());
        };
        if !is_input {
            let reason = "an answer has no images: leave the table out";
            return Err(ModelError::field(file, at, reason));
        }
        image.check().map_err(|error| {
            ModelError::field(file, format!("{at}.{}", error.field), error.reason)
        })?;
        if self.datatype != Datatype::Fp32 || self.fixed_shape() != Some(image.shape().to_vec()) {
            let reason = format!(
                "makes FP32 {:?}, the input is {} {:?}: give both the same",
                image.shape(),
                self.datatype.name(),
                self.shape
            );
            return Err(ModelError::field(file, at, reason));
        }
        Ok(())
    }

    /// Whether a row may have this shape.
    fn fits(&self, row: &[usize]) -> bool {
        row.len() == self.shape.len()
            && row.iter().zip(&self.shape).all(|(&of, &size)| {
                of >= 1 && usize::try_from(size).map_or(true, |size| size == of)
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_makes_the_tensor_of_its_input() {
        let file = Path::new("app.toml");
        let card = TensorCard::image("photo", ImageCard::default());
        assert_eq!(card.shape, [3, 224, 224]);
        card.check_image(file, "inputs[0].image", true).unwrap();
        let refused = |card: &TensorCard, is_input| {
            let error = card.check_image(file, "inputs[0].image", is_input);
            error.unwrap_err().to_string()
        };
        assert!(refused(&card, false).contains("an answer has no images"));
        let mut other = card.clone();
        other.shape = vec![224, 224, 3];
        let text = refused(&other, true);
        assert!(
            text.contains("inputs[0].image") && text.contains("makes FP32 [3, 224, 224]"),
            "{text}"
        );
        let mut wrong = card;
        wrong.image = Some(ImageCard {
            deviation: vec![0.0],
            ..ImageCard::default()
        });
        let text = refused(&wrong, true);
        assert!(text.contains("inputs[0].image.deviation"), "{text}");
    }
}
