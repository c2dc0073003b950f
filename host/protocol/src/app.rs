//! The apps that a server offers: names, inputs, outputs, and typed indices into them.

use crate::datatype::{Datatype, TEXT_BYTES_MAX};

/// Position of an app among all apps of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AppIndex(pub usize);

/// Position of a variant in [`AppInfo::variants`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VariantIndex(pub usize);

/// Position of an output in [`AppInfo::outputs`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OutputIndex(pub usize);

/// The inputs, outputs and variants of an app. An *app* is the protocol's model, a *variant* its
/// version.
#[derive(Clone, Debug)]
pub struct AppInfo {
    /// Name in the URL.
    pub name: String,
    /// Variant names, by [`VariantIndex`].
    pub variants: Vec<String>,
    /// Platform in the metadata, such as `candle`.
    pub platform: String,
    /// Inputs, in the order of [`InferCall::inputs`](crate::InferCall::inputs).
    pub inputs: Vec<TensorSpec>,
    /// Outputs, by [`OutputIndex`].
    pub outputs: Vec<TensorSpec>,
    /// Most rows in one request.
    pub max_batch_rows: usize,
    /// Longest timeout that a client may name, in microseconds.
    pub max_timeout_us: u64,
    /// Whether inputs may hold NaN and infinite numbers.
    pub non_finite: bool,
    /// The highest accuracy that an answer can have.
    pub accuracy_max: f32,
    /// The same for each variant, by [`VariantIndex`]; `None` for one whose quality is unknown.
    pub accuracies: Vec<Option<f32>>,
    /// Names of the classes, by label; empty for an app without classes.
    pub classes: Vec<String>,
}

/// Sizes of the largest legal bodies of an app, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodySizes {
    /// A body with a JSON part.
    pub json: usize,
    /// A raw request, which has no JSON.
    pub raw: usize,
    /// A message of gRPC.
    pub grpc: usize,
}

/// Bytes of JSON per number: 25 are the longest number with its comma; the rest is room for
/// brackets and for the line break and indentation of formatted JSON.
const NUMBER_BYTES_MAX: usize = 64;

/// Bytes of a text in JSON per byte of its UTF-8: an escape.
const ESCAPE_BYTES: usize = 6;

/// Bytes of a message of gRPC per number: a tag and the longest number of variable length.
const VARINT_BYTES_MAX: usize = 12;

/// Bytes before a text or an image in a message of gRPC: a tag and a length.
const FIELD_HEAD_BYTES: usize = 8;

/// Bytes of JSON or of a message of gRPC that are no elements: names, id, parameters, unknown fields.
const ENVELOPE_BYTES_MAX: usize = 64 << 10;

// === impl AppInfo ===

impl AppInfo {
    /// Whether clients send encoded images.
    pub fn takes_images(&self) -> bool {
        let is_image = |input: &TensorSpec| matches!(input.content, BytesContent::Image { .. });
        self.inputs.iter().any(is_image)
    }

    /// The sizes of the largest bodies that can be valid; `None` if an input may have any size.
    pub fn body_sizes(&self) -> Option<BodySizes> {
        let mut sizes = BodySizes {
            json: ENVELOPE_BYTES_MAX,
            raw: 0,
            grpc: ENVELOPE_BYTES_MAX,
        };
        for input in &self.inputs {
            let mut elements = self.max_batch_rows;
            for (axis, &dim) in input.shape.iter().enumerate() {
                let largest = input.largest.get(axis).copied();
                let dim = usize::try_from(dim).ok().or(largest)?;
                elements = elements.checked_mul(dim)?;
            }
            // Quotes, comma and line break, or a length.
            let (json, raw, grpc) = match (input.datatype.size(), input.content) {
                (Some(size), _) => (NUMBER_BYTES_MAX, size, VARINT_BYTES_MAX),
                (None, BytesContent::Text) => (
                    ESCAPE_BYTES * TEXT_BYTES_MAX + NUMBER_BYTES_MAX,
                    TEXT_BYTES_MAX + 4,
                    TEXT_BYTES_MAX + FIELD_HEAD_BYTES,
                ),
                (None, BytesContent::Image { bytes_max }) => (
                    base64_bytes_max(bytes_max)?.checked_add(NUMBER_BYTES_MAX)?,
                    bytes_max.checked_add(4)?,
                    bytes_max.checked_add(FIELD_HEAD_BYTES)?,
                ),
            };
            sizes.json = elements.checked_mul(json)?.checked_add(sizes.json)?;
            sizes.raw = elements.checked_mul(raw)?.checked_add(sizes.raw)?;
            sizes.grpc = elements.checked_mul(grpc)?.checked_add(sizes.grpc)?;
        }
        Some(sizes)
    }

    /// Size of the longest image in JSON; 0 without images.
    pub(crate) fn image_json_bytes_max(&self) -> usize {
        let images = self.inputs.iter().map(|input| match input.content {
            BytesContent::Text => 0,
            BytesContent::Image { bytes_max } => base64_bytes_max(bytes_max).unwrap_or(usize::MAX),
        });
        images.max().unwrap_or_default()
    }
}

/// Most bytes of an image in JSON: four characters for three bytes, and a `/` may be escaped.
fn base64_bytes_max(image_bytes: usize) -> Option<usize> {
    image_bytes.checked_mul(2)
}

/// Name, datatype and shape of one input or output.
#[derive(Clone, Debug)]
pub struct TensorSpec {
    /// Name on the wire.
    pub name: String,
    /// Element type.
    pub datatype: Datatype,
    /// Dimensions of one row, without the batch dimension; -1 is variable.
    pub shape: Vec<i64>,
    /// The largest sizes of these dimensions; empty: any.
    pub largest: Vec<usize>,
    /// The elements of a `BYTES` tensor.
    pub content: BytesContent,
}

/// The elements of a `BYTES` tensor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BytesContent {
    /// UTF-8, in JSON as it is.
    #[default]
    Text,
    /// An encoded image, in JSON as base64 with padding (RFC 4648, section 4).
    Image {
        /// Size of the longest.
        bytes_max: usize,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    fn app(datatype: Datatype, shape: &[i64]) -> AppInfo {
        let input = TensorSpec {
            name: "x".to_owned(),
            datatype,
            shape: shape.to_vec(),
            largest: Vec::new(),
            content: BytesContent::Text,
        };
        AppInfo {
            name: "heart".to_owned(),
            variants: Vec::new(),
            platform: "test".to_owned(),
            inputs: vec![input],
            outputs: Vec::new(),
            max_batch_rows: 8,
            max_timeout_us: 1,
            non_finite: false,
            accuracy_max: 1.0,
            accuracies: Vec::new(),
            classes: Vec::new(),
        }
    }

    #[test]
    fn the_largest_body_follows_from_rows_and_inputs() {
        let sizes = app(Datatype::F32, &[187]).body_sizes().unwrap();
        assert_eq!(sizes.raw, 8 * 187 * 4);
        assert_eq!(sizes.json, 65_536 + 8 * 187 * 64);
        assert_eq!(sizes.grpc, 65_536 + 8 * 187 * 12);
        let texts = app(Datatype::Bytes, &[1]).body_sizes().unwrap();
        assert!(texts.raw > 8 * TEXT_BYTES_MAX && texts.json > 6 * texts.raw - 1_000);
        let mut images = app(Datatype::Bytes, &[1]);
        assert!(!images.takes_images());
        images.inputs[0].content = BytesContent::Image { bytes_max: 1 << 20 };
        assert!(images.takes_images());
        assert_eq!(images.body_sizes().unwrap().raw, 8 * ((1 << 20) + 4));
        images.inputs[0].content = BytesContent::Image {
            bytes_max: usize::MAX,
        };
        assert_eq!(images.body_sizes(), None);
        let mut open = app(Datatype::F32, &[3, -1]);
        assert_eq!(open.body_sizes(), None);
        open.inputs[0].largest = vec![3, 100];
        assert_eq!(open.body_sizes().unwrap().raw, 8 * 3 * 100 * 4);
        assert_eq!(app(Datatype::F32, &[i64::MAX, 8]).body_sizes(), None);
    }
}
