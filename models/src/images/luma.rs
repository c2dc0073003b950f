//! Conversion to one grey channel.

use super::pixels::Pixels;

/// Converts pixels to luma in place, in the integers of Pillow's `convert("L")`.
pub(super) fn convert(pixels: &mut Pixels) {
    let stride = pixels.stride;
    if stride < 3 {
        return;
    }
    let count = pixels.width * pixels.height;
    for i in 0..count {
        let at = i * stride;
        let channel = |c: usize| u32::from(pixels.data[at + c]);
        let sum = channel(0) * 19_595 + channel(1) * 38_470 + channel(2) * 7_471 + 0x8000;
        // The weights sum to 65536.
        pixels.data[i] = (sum >> 16) as u8;
    }
    pixels.data.truncate(count);
    pixels.stride = 1;
}
