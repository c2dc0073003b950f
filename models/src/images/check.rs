//! The check of a card, and the bound on memory that follows from it.

use super::card::{Channels, Fit, ImageCard};
use super::error::FieldError;
use super::pixels::{LONGEST_SIDE, MOST_PIXELS};

/// Longest side of a model's input and of `resize`.
const LARGEST_SIZE: usize = 4_096;

/// Bytes per pixel of the largest decode: three for the pixels, two per coefficient of each of the
/// three components of a progressive JPEG, and its padding to whole blocks.
const BYTES_PER_PIXEL: u64 = 10;

/// Bytes of one decode that depend on no size: windows, code tables, rows.
const FIXED_BYTES: u64 = 24 << 20;

impl ImageCard {
    /// Checks every field.
    ///
    /// # Errors
    /// A field is out of range, or does not go with another one.
    pub fn check(&self) -> Result<(), FieldError> {
        self.check_size()?;
        if !(self.scale.is_finite() && self.scale > 0.0) {
            let reason = format!("{} is not a divisor above 0: use 255 or 1", self.scale);
            return Err(FieldError::new("scale", reason));
        }
        self.check_values("mean", &self.mean)?;
        self.check_values("deviation", &self.deviation)?;
        if let Some(value) = self.deviation.iter().find(|value| **value <= 0.0) {
            let reason = format!("{value} is not above 0: use 1 to leave values as they are");
            return Err(FieldError::new("deviation", reason));
        }
        if !(1..=MOST_PIXELS).contains(&self.max_pixels) {
            let reason = format!(
                "{} is not in 1 to {MOST_PIXELS}; default: 25000000",
                self.max_pixels
            );
            return Err(FieldError::new("max_pixels", reason));
        }
        Ok(())
    }

    fn check_size(&self) -> Result<(), FieldError> {
        let allowed = 1..=LARGEST_SIZE;
        if let Some(side) = self.size.iter().find(|side| !allowed.contains(side)) {
            let reason = format!(
                "{side} is not in 1 to {LARGEST_SIZE}: state [height, width] of the model's input"
            );
            return Err(FieldError::new("size", reason));
        }
        let Some(resize) = self.resize else {
            return Ok(());
        };
        let [height, width] = self.size;
        if self.fit == Fit::Pad {
            let reason = "does not go with fit = \"pad\", which fits the image into `size`: \
                          leave out `resize`";
            return Err(FieldError::new("resize", reason));
        }
        if !(height.max(width)..=LARGEST_SIZE).contains(&resize) {
            let reason = format!(
                "{resize} is not in {} to {LARGEST_SIZE}: the crop of {height} x {width} needs that \
                 many pixels",
                height.max(width)
            );
            return Err(FieldError::new("resize", reason));
        }
        Ok(())
    }

    /// Checks that `values` are finite, and one, one per channel, or none where a default exists.
    fn check_values(&self, field: &str, values: &[f32]) -> Result<(), FieldError> {
        let (channels, name) = (self.channels.count(), self.channels.name());
        if values.is_empty() && self.channels == Channels::Grey {
            let reason = "has no default with channels = \"grey\": state one value, for example \
                          [0.5]";
            return Err(FieldError::new(field, reason));
        }
        if !values.is_empty() && values.len() != 1 && values.len() != channels {
            let reason = format!(
                "{} values for channels = \"{name}\": state 1 or {channels}",
                values.len()
            );
            return Err(FieldError::new(field, reason));
        }
        match values.iter().find(|value| !value.is_finite()) {
            Some(value) => {
                let reason = format!("{value} is not a finite number");
                Err(FieldError::new(field, reason))
            }
            None => Ok(()),
        }
    }

    /// Upper bound of the bytes of an encoded image that the card allows: those of its pixels without
    /// compression, of four channels of 16 bits, and of the metadata around them. Saturates.
    pub fn encoded_bytes_max(&self) -> usize {
        let pixels = usize::try_from(self.max_pixels).unwrap_or(usize::MAX);
        pixels.saturating_mul(8).saturating_add(1 << 20)
    }

    /// Upper bound of the bytes that a decode allocates at once for `pixels` pixels, or for
    /// `max_pixels` if that is less, code tables that depend on the file left out. Saturates.
    pub(super) fn bytes_of_pixels(&self, pixels: u64) -> u64 {
        let pixels = pixels.min(self.max_pixels);
        let [height, width] = self.size.map(|side| side as u64);
        // Rows resized along one axis, before the other one follows.
        let side = height.max(width);
        let rows = pixels.min(u64::from(LONGEST_SIDE)).saturating_mul(side * 3);
        let tensor = self.channels.count() as u64 * 4 * height.saturating_mul(width);
        pixels
            .saturating_mul(BYTES_PER_PIXEL)
            .saturating_add(rows)
            .saturating_add(tensor)
            .saturating_add(FIXED_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<(), String> {
        let card: ImageCard = toml::from_str(text).map_err(|error| error.to_string())?;
        card.check().map_err(|error| error.to_string())
    }

    #[test]
    fn an_empty_table_is_a_card() {
        assert_eq!(read(""), Ok(()));
        let card = ImageCard::default();
        assert_eq!(card.shape(), [3, 224, 224]);
        assert_eq!(
            card.bytes_of_pixels(u64::MAX),
            card.bytes_of_pixels(25_000_000)
        );
        let text = toml::to_string(&card).expect("a table");
        assert_eq!(toml::from_str::<ImageCard>(&text), Ok(card));
    }

    #[test]
    fn errors_name_field_value_and_range() {
        let refusals = [
            ("size = [0, 9]", "field `size`: 0 is not in 1 to 4096"),
            ("size = [9, 5000]", "5000 is not in 1 to 4096"),
            ("resize = 200", "field `resize`: 200 is not in 224 to 4096"),
            ("resize = 256\nfit = \"pad\"", "leave out `resize`"),
            ("scale = 0.0", "field `scale`: 0 is not a divisor"),
            (
                "mean = [1.0, 2.0]",
                "field `mean`: 2 values for channels = \"rgb\": state 1 or 3",
            ),
            ("deviation = [0.0]", "field `deviation`: 0 is not above 0"),
            ("mean = [nan]", "field `mean`: NaN is not a finite number"),
            ("channels = \"grey\"", "field `mean`: has no default"),
            (
                "max_pixels = 0",
                "field `max_pixels`: 0 is not in 1 to 1000000000",
            ),
            ("sice = 3", "unknown field `sice`"),
            ("fit = \"crop\"", "unknown variant `crop`"),
        ];
        for (text, error) in refusals {
            let got = read(text).expect_err(text);
            assert!(got.contains(error), "{got}");
        }
    }
}
