//! The card of an image.

use serde::{Deserialize, Serialize};

/// Mean of ImageNet per channel, red first.
const IMAGENET_MEAN: [f32; 3] = [0.485, 0.456, 0.406];

/// Standard deviation of ImageNet per channel, red first.
const IMAGENET_DEVIATION: [f32; 3] = [0.229, 0.224, 0.225];

/// The table `[inputs.image]` of an input: the way from an encoded image to the model's tensor.
///
/// The defaults are those of torchvision's classifiers, without the margin of `resize = 256`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ImageCard {
    /// Height and width of the model's input, in pixels.
    pub size: [usize; 2],
    /// Length to which an image is resized before the centre crop to `size`: of the shorter side
    /// with `fit = "cover"`, of both sides with `fit = "stretch"`. By default `size` alone decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resize: Option<usize>,
    /// The way in which an image of another aspect ratio gets to `size`.
    pub fit: Fit,
    /// Resampling filter, with antialiasing as in Pillow.
    pub filter: Filter,
    /// Channels of the tensor and their order.
    pub channels: Channels,
    /// Order of the tensor's dimensions.
    pub layout: Layout,
    /// Divisor of the values 0 to 255; 1 leaves them as they are.
    pub scale: f32,
    /// Mean per channel, subtracted after `scale`, in the order of `channels`. One value serves all
    /// channels. ImageNet's by default; required with `channels = "grey"`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mean: Vec<f32>,
    /// Standard deviation per channel, the last divisor. Its length and default follow `mean`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deviation: Vec<f32>,
    /// Value from 0 to 255 of the border with `fit = "pad"`, before `scale`.
    pub pad_value: u8,
    /// Largest number of pixels of an image, by its header. Bounds memory and time of one decode.
    pub max_pixels: u64,
}

/// The way in which an image of another aspect ratio gets to [`ImageCard::size`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fit {
    /// Resized until it covers the size, then centre-cropped.
    #[default]
    Cover,
    /// Resized to the size, whatever its aspect ratio.
    Stretch,
    /// Resized until it fits into the size, then padded on both sides (letterbox).
    Pad,
}

/// Resampling filter, as Pillow's `Image.resize` has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Filter {
    /// Nearest neighbour, without antialiasing.
    Nearest,
    /// Triangle, antialiased.
    #[default]
    Bilinear,
    /// Cubic with a = -0.5, antialiased.
    Bicubic,
    /// Lanczos with three lobes, antialiased.
    Lanczos,
}

/// Channels of the tensor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Channels {
    /// Red, green, blue.
    #[default]
    Rgb,
    /// Blue, green, red.
    Bgr,
    /// Luma of ITU-R 601, one channel.
    Grey,
}

/// Order of the tensor's dimensions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Layout {
    /// Channel, height, width.
    #[default]
    Chw,
    /// Height, width, channel.
    Hwc,
}

impl Default for ImageCard {
    fn default() -> Self {
        Self {
            size: [224, 224],
            resize: None,
            fit: Fit::default(),
            filter: Filter::default(),
            channels: Channels::default(),
            layout: Layout::default(),
            scale: 255.0,
            mean: Vec::new(),
            deviation: Vec::new(),
            pad_value: 114,
            max_pixels: 25_000_000,
        }
    }
}

// === impl ImageCard ===

impl ImageCard {
    /// Shape of the tensor, without the batch dimension.
    pub fn shape(&self) -> [usize; 3] {
        let [height, width] = self.size;
        match self.layout {
            Layout::Chw => [self.channels.count(), height, width],
            Layout::Hwc => [height, width, self.channels.count()],
        }
    }

    /// Normalised value of each of the 256 levels, per channel of the tensor.
    pub(super) fn levels(&self) -> Vec<[f32; 256]> {
        let mean = self.per_channel(&self.mean, IMAGENET_MEAN);
        let deviation = self.per_channel(&self.deviation, IMAGENET_DEVIATION);
        let channel = |(mean, deviation): (f32, f32)| {
            // In the order and precision of torchvision, so that results are equal to the last bit.
            std::array::from_fn(|level| (level as f32 / self.scale - mean) / deviation)
        };
        mean.into_iter().zip(deviation).map(channel).collect()
    }

    /// `stated` for each channel, or else `imagenet`.
    fn per_channel(&self, stated: &[f32], imagenet: [f32; 3]) -> Vec<f32> {
        match (stated, self.channels) {
            (&[one], channels) => vec![one; channels.count()],
            (&[], Channels::Bgr) => imagenet.into_iter().rev().collect(),
            (&[], _) => imagenet[..self.channels.count()].to_vec(),
            (several, _) => several.to_vec(),
        }
    }
}

// === impl Channels ===

impl Channels {
    /// Number of channels.
    pub fn count(self) -> usize {
        match self {
            Self::Rgb | Self::Bgr => 3,
            Self::Grey => 1,
        }
    }

    /// Name in a card.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Rgb => "rgb",
            Self::Bgr => "bgr",
            Self::Grey => "grey",
        }
    }
}
