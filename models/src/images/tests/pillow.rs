//! Tensors are Pillow's.

use super::super::{Channels, Filter, Fit, ImageCard, Layout};
use super::bytes::{JPEG, JPEG_PIXELS, WEBP, oriented, pixels, png, rgb};
use super::{plain, tensor};

const BILINEAR: [u8; 36] = [
    35, 57, 115, 114, 68, 144, 193, 79, 158, 48, 119, 123, 127, 130, 152, 206, 141, 166, 60, 181,
    131, 139, 192, 160, 218, 203, 174, 73, 120, 139, 152, 62, 168, 163, 73, 114,
];
const BICUBIC: [u8; 36] = [
    29, 51, 118, 113, 62, 136, 197, 73, 160, 42, 116, 127, 126, 127, 145, 210, 138, 169, 56, 189,
    135, 140, 203, 153, 227, 214, 181, 69, 121, 144, 160, 46, 169, 158, 63, 107,
];
const LANCZOS: [u8; 36] = [
    25, 50, 122, 112, 62, 128, 199, 74, 162, 39, 113, 130, 126, 123, 137, 212, 135, 169, 53, 192,
    140, 139, 210, 145, 233, 221, 185, 63, 123, 145, 166, 44, 166, 159, 67, 107,
];
const NEAREST: [u8; 36] = [
    37, 45, 35, 111, 55, 217, 185, 65, 143, 48, 98, 42, 122, 108, 224, 196, 118, 150, 70, 204, 56,
    144, 214, 238, 218, 224, 164, 81, 1, 63, 155, 11, 245, 229, 21, 171,
];
const GREY: [u8; 12] = [57, 90, 122, 99, 132, 163, 139, 172, 204, 108, 101, 104];

fn floats(values: &[u8]) -> Vec<f32> {
    values.iter().map(|&value| f32::from(value)).collect()
}

#[test]
fn lossless_images_are_resized_to_pillows_values() {
    let filters = [
        (Filter::Bilinear, BILINEAR),
        (Filter::Bicubic, BICUBIC),
        (Filter::Lanczos, LANCZOS),
        (Filter::Nearest, NEAREST),
    ];
    for (filter, expected) in filters {
        let card = ImageCard {
            filter,
            ..plain(4, 3)
        };
        assert_eq!(tensor(&card, &rgb()), floats(&expected), "{filter:?}");
        assert_eq!(tensor(&card, &WEBP), floats(&expected), "{filter:?}");
    }
}

#[test]
fn a_jpeg_is_within_two_levels() {
    let got = tensor(&plain(8, 8), &JPEG);
    for (got, expected) in got.iter().zip(floats(&JPEG_PIXELS)) {
        assert!((got - expected).abs() <= 2.0, "{got} {expected}");
    }
}

#[test]
fn channels_and_layouts() {
    let mut card = plain(4, 3);
    card.channels = Channels::Grey;
    assert_eq!(tensor(&card, &rgb()), floats(&GREY));
    card.channels = Channels::Bgr;
    let swapped = floats(&BILINEAR);
    let swapped: Vec<f32> = swapped.chunks(3).flat_map(|p| [p[2], p[1], p[0]]).collect();
    assert_eq!(tensor(&card, &rgb()), swapped);
    card.layout = Layout::Chw;
    let planes = (0..3).flat_map(|c| swapped.iter().skip(c).step_by(3).copied());
    assert_eq!(tensor(&card, &rgb()), planes.collect::<Vec<f32>>());
}

#[test]
fn alpha_is_dropped_and_of_16_bits_the_high_byte_counts() {
    let card = plain(4, 3);
    let alpha: Vec<u8> = pixels()
        .chunks(3)
        .flat_map(|p| [p[0], p[1], p[2], p[0]])
        .collect();
    let deep: Vec<u8> = pixels().iter().flat_map(|&value| [value, 77]).collect();
    let eight = png::BitDepth::Eight;
    let rgba = png(png::ColorType::Rgba, eight, &alpha);
    assert_eq!(tensor(&card, &rgba), floats(&BILINEAR));
    let rgb16 = png(png::ColorType::Rgb, png::BitDepth::Sixteen, &deep);
    assert_eq!(tensor(&card, &rgb16), floats(&BILINEAR));
    let grey = png(png::ColorType::Grayscale, eight, &pixels()[..35]);
    let tripled = tensor(&card, &grey);
    assert!(tripled.chunks(3).all(|p| p[0] == p[1] && p[1] == p[2]));
}

#[test]
fn the_orientation_is_applied() {
    let card = plain(8, 8);
    let upright = tensor(&card, &JPEG);
    let at = |x: usize, y: usize| &upright[(y * 8 + x) * 3..(y * 8 + x) * 3 + 3];
    for orientation in 1..=8 {
        let turned = tensor(&card, &oriented(orientation));
        for (i, pixel) in turned.chunks(3).enumerate() {
            let (x, y) = (i % 8, i / 8);
            let expected = match orientation {
                1 => at(x, y),
                2 => at(7 - x, y),
                3 => at(7 - x, 7 - y),
                4 => at(x, 7 - y),
                5 => at(y, x),
                6 => at(y, 7 - x),
                7 => at(7 - y, 7 - x),
                _ => at(7 - y, x),
            };
            assert_eq!(pixel, expected, "orientation {orientation}, x {x}, y {y}");
        }
    }
}

#[test]
fn a_letterbox_is_padded_on_both_sides() {
    let card = ImageCard {
        fit: Fit::Pad,
        ..plain(9, 7)
    };
    let got = tensor(&card, &rgb());
    let row = 7 * 3;
    assert!(
        got[..2 * row]
            .iter()
            .chain(&got[7 * row..])
            .all(|&value| value == 114.0)
    );
    assert_eq!(got[2 * row..7 * row], floats(&pixels()));
}

#[test]
fn values_are_normalised_per_channel() {
    let card = ImageCard {
        size: [5, 7],
        ..ImageCard::default()
    };
    let got = tensor(&card, &rgb());
    assert_eq!(got[0], (0.0 - 0.485) / 0.229);
    assert_eq!(got[35], (40.0 / 255.0 - 0.456) / 0.224);
    assert_eq!(got[70], (200.0 / 255.0 - 0.406) / 0.225);
}
