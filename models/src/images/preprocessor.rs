//! Cards from the `preprocessor_config.json` of a Hugging Face model.
//!
//! A processor's class decides how its fields are read, so only known classes are taken, and every
//! field must be understood.

use serde_json::{Map, Value};

use super::card::{Channels, Filter, Fit, ImageCard};
use super::error::FieldError;

/// Fields that do not change the tensor of an image with three channels.
const WITHOUT_EFFECT: [&str; 8] = [
    "processor_class",
    "_valid_processor_keys",
    "do_convert_rgb",
    "return_tensors",
    "input_data_format",
    "disable_grouping",
    "device",
    "model_input_names",
];

/// How a class reads `size` given as one number.
#[derive(Clone, Copy, PartialEq)]
enum Size {
    /// Height and width.
    Both,
    /// The shorter side.
    Shortest,
    /// The shorter side with a margin of `crop_pct` below 384, both sides from there on.
    ConvNext,
}

/// The fields that are not read yet.
struct Fields(Map<String, Value>);

impl ImageCard {
    /// Reads the text of a `preprocessor_config.json`. Null fields count as absent.
    ///
    /// # Errors
    /// The text is not JSON, the processor is of an unknown class, or a field is missing, unknown
    /// or asks for a step that a card cannot express.
    pub fn from_preprocessor(text: &str) -> Result<Self, FieldError> {
        let mut all: Map<String, Value> = serde_json::from_str(text)
            .map_err(|error| FieldError::new("preprocessor_config.json", error.to_string()))?;
        all.retain(|name, value| !value.is_null() && !WITHOUT_EFFECT.contains(&name.as_str()));
        let mut fields = Fields(all);
        let class = fields.class()?;
        let size_kind = size_kind(&class)?;
        let mut card = Self {
            filter: fields.filter()?,
            ..Self::default()
        };
        fields.geometry(size_kind, &mut card)?;
        fields.values(&class, &mut card)?;
        if fields.flag("do_flip_channel_order", class == "MobileViT")? {
            card.channels = Channels::Bgr;
        }
        fields.refuse_rest()?;
        card.check()?;
        Ok(card)
    }
}

/// How the processors of `class` read `size`.
fn size_kind(class: &str) -> Result<Size, FieldError> {
    match class {
        "ViT" | "DeiT" | "Beit" | "EfficientNet" | "Siglip" => Ok(Size::Both),
        "CLIP" | "Bit" | "MobileNetV1" | "MobileNetV2" | "MobileViT" => Ok(Size::Shortest),
        "ConvNext" => Ok(Size::ConvNext),
        _ => Err(FieldError::new(
            "image_processor_type",
            format!(
                "class `{class}` is unknown; known: ViT, DeiT, Beit, EfficientNet, Siglip, CLIP, \
                 Bit, MobileNetV1, MobileNetV2, MobileViT, ConvNext. Write [inputs.image] by hand"
            ),
        )),
    }
}

/// `value` as a length in pixels.
fn length(field: &str, value: &Value) -> Result<usize, FieldError> {
    let length = value.as_u64().and_then(|n| usize::try_from(n).ok());
    length.ok_or_else(|| FieldError::new(field, format!("{value} is not a number of pixels")))
}

/// The two sides of `{"height": H, "width": W}`, or `None` for another shape.
fn sides(field: &str, value: &Value) -> Result<Option<[usize; 2]>, FieldError> {
    match (value.as_object(), value.get("height"), value.get("width")) {
        (Some(object), Some(height), Some(width)) if object.len() == 2 => {
            Ok(Some([length(field, height)?, length(field, width)?]))
        }
        _ => Ok(None),
    }
}

// === impl Fields ===

impl Fields {
    /// The processor's class without its suffix.
    fn class(&mut self) -> Result<String, FieldError> {
        let new = self.0.remove("image_processor_type");
        let old = self.0.remove("feature_extractor_type");
        let Some(Value::String(name)) = new.or(old) else {
            let reason = "is missing, and it decides how the other fields are read: add it, for \
                          example \"ViTImageProcessor\"";
            return Err(FieldError::new("image_processor_type", reason));
        };
        let suffixes = [
            "ImageProcessorFast",
            "ImageProcessorPil",
            "ImageProcessor",
            "FeatureExtractor",
        ];
        let class = suffixes.iter().find_map(|suffix| name.strip_suffix(suffix));
        Ok(class.unwrap_or(&name).to_owned())
    }

    fn take(&mut self, name: &str) -> Result<Value, FieldError> {
        let missing = || FieldError::new(name, "is missing: state it, defaults differ by class");
        self.0.remove(name).ok_or_else(missing)
    }

    fn flag(&mut self, name: &str, default: bool) -> Result<bool, FieldError> {
        match self.0.remove(name) {
            None => Ok(default),
            Some(Value::Bool(flag)) => Ok(flag),
            Some(other) => Err(FieldError::new(
                name,
                format!("{other} is not true or false"),
            )),
        }
    }

    fn number(&mut self, name: &str, default: f64) -> Result<f64, FieldError> {
        match self.0.remove(name) {
            None => Ok(default),
            Some(value) => value
                .as_f64()
                .filter(|number| *number > 0.0)
                .ok_or_else(|| FieldError::new(name, format!("{value} is not a number above 0"))),
        }
    }

    /// One value or one per channel.
    fn numbers(&mut self, name: &str) -> Result<Vec<f32>, FieldError> {
        let value = self.take(name)?;
        let items = value
            .as_array()
            .map_or(std::slice::from_ref(&value), Vec::as_slice);
        let numbers = items
            .iter()
            .map(|item| item.as_f64().map(|number| number as f32));
        let numbers: Option<Vec<f32>> = numbers.collect();
        numbers.ok_or_else(|| FieldError::new(name, format!("{value} is not a list of numbers")))
    }

    /// The filter, by Pillow's number.
    fn filter(&mut self) -> Result<Filter, FieldError> {
        let value = self.take("resample")?;
        match value.as_u64() {
            Some(0) => Ok(Filter::Nearest),
            Some(1) => Ok(Filter::Lanczos),
            Some(2) => Ok(Filter::Bilinear),
            Some(3) => Ok(Filter::Bicubic),
            _ => Err(FieldError::new(
                "resample",
                format!("{value} is not 0 (nearest), 1 (lanczos), 2 (bilinear) or 3 (bicubic)"),
            )),
        }
    }

    /// Size, resize and crop.
    fn geometry(&mut self, kind: Size, card: &mut ImageCard) -> Result<(), FieldError> {
        if !self.flag("do_resize", true)? {
            let reason = "false leaves images of any size, and the model takes one: set it to true";
            return Err(FieldError::new("do_resize", reason));
        }
        let size = self.take("size")?;
        // ConvNeXT's own class crops by `crop_pct`, and old files state `crop_size` in vain.
        let crops = self.flag("do_center_crop", kind == Size::Shortest)?;
        let crop = match self.0.remove("crop_size") {
            Some(value) if crops => Some(match sides("crop_size", &value)? {
                Some(sides) => sides,
                None => [length("crop_size", &value)?; 2],
            }),
            None if crops => return Err(FieldError::new("crop_size", "is missing")),
            _ => None,
        };
        let margin = self.0.contains_key("crop_pct");
        let crop_pct = self.number("crop_pct", 224.0 / 256.0)?;
        if margin && kind != Size::ConvNext {
            return Err(FieldError::new("crop_pct", "is known for ConvNext alone"));
        }
        let shortest = match size.as_object() {
            Some(fields) if fields.len() == 1 => fields.get("shortest_edge"),
            None if kind != Size::Both => Some(&size),
            _ => None,
        };
        if let Some(shortest) = shortest {
            return Self::shortest(kind, length("size", shortest)?, crop, crop_pct, card);
        }
        let both = match sides("size", &size)? {
            Some(both) => both,
            None if size.is_u64() => [length("size", &size)?; 2],
            None => {
                let reason = format!("{size} is not a number, height and width, or shortest_edge");
                return Err(FieldError::new("size", reason));
            }
        };
        if kind == Size::ConvNext {
            return Err(FieldError::new("size", "ConvNext needs shortest_edge"));
        }
        card.fit = Fit::Stretch;
        card.size = crop.unwrap_or(both);
        if card.size != both {
            if both[0] != both[1] {
                let reason = "height and width differ before a crop: write [inputs.image] by hand";
                return Err(FieldError::new("size", reason));
            }
            card.resize = Some(both[0]);
        }
        Ok(())
    }

    /// Size, resize and crop if `size` is the shorter side.
    fn shortest(
        kind: Size,
        side: usize,
        crop: Option<[usize; 2]>,
        crop_pct: f64,
        card: &mut ImageCard,
    ) -> Result<(), FieldError> {
        match (kind, crop) {
            (Size::ConvNext, None) => {
                card.size = [side; 2];
                if side < 384 {
                    card.resize = Some((side as f64 / crop_pct) as usize);
                } else {
                    card.fit = Fit::Stretch;
                }
            }
            (Size::ConvNext, Some(_)) => {
                let reason = "ConvNext crops by crop_pct: set it to false";
                return Err(FieldError::new("do_center_crop", reason));
            }
            (_, Some(crop)) => {
                card.size = crop;
                card.resize = Some(side);
            }
            (_, None) => {
                let reason = "false leaves the longer side open, and the model takes one size";
                return Err(FieldError::new("do_center_crop", reason));
            }
        }
        Ok(())
    }

    /// Scale, mean and deviation.
    fn values(&mut self, class: &str, card: &mut ImageCard) -> Result<(), FieldError> {
        let factor = self.number("rescale_factor", 1.0 / 255.0)?;
        card.scale = match self.flag("do_rescale", true)? {
            true => (1.0 / factor) as f32,
            false => 1.0,
        };
        if self.flag("rescale_offset", false)? {
            let reason = "true is not known: write [inputs.image] by hand";
            return Err(FieldError::new("rescale_offset", reason));
        }
        let twice = class == "EfficientNet" && self.flag("include_top", true)?;
        if !self.flag("do_normalize", true)? {
            (card.mean, card.deviation) = (vec![0.0], vec![1.0]);
            self.0.remove("image_mean");
            self.0.remove("image_std");
            return Ok(());
        }
        card.mean = self.numbers("image_mean")?;
        card.deviation = self.numbers("image_std")?;
        if twice {
            // `include_top` divides by the deviation a second time.
            card.deviation
                .iter_mut()
                .for_each(|deviation| *deviation *= *deviation);
        }
        Ok(())
    }

    /// Refuses fields that are left.
    fn refuse_rest(mut self) -> Result<(), FieldError> {
        let padded = self.flag("do_pad", false)?;
        if !padded {
            self.0.remove("pad_size");
        }
        let first_channels = Some(&Value::from("channels_first"));
        if self.0.get("data_format") == first_channels {
            self.0.remove("data_format");
        }
        let left = self.0.keys().next().cloned();
        let left = left.or_else(|| padded.then(|| "do_pad".to_owned()));
        left.map_or(Ok(()), |field| {
            Err(FieldError::new(
                field,
                "is not understood: write [inputs.image] by hand",
            ))
        })
    }
}

#[cfg(test)]
mod tests;
