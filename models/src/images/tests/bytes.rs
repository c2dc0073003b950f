//! Encoded images.

/// A chunk of a PNG.
pub(super) fn chunk(name: &[u8; 4], content: &[u8]) -> Vec<u8> {
    let named = [name.as_slice(), content].concat();
    let crc = !named.iter().fold(!0u32, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| {
            (crc >> 1) ^ if crc & 1 == 1 { 0xEDB8_8320 } else { 0 }
        })
    });
    let length = (content.len() as u32).to_be_bytes();
    [length.as_slice(), &named, &crc.to_be_bytes()].concat()
}

/// Signature and header of a PNG in RGB.
pub(super) fn png_header(width: u32, height: u32) -> Vec<u8> {
    let sides = [width.to_be_bytes(), height.to_be_bytes()].concat();
    let header = chunk(b"IHDR", &[&sides, &[8, 2, 0, 0, 0][..]].concat());
    [b"\x89PNG\r\n\x1a\n".as_slice(), &header].concat()
}

/// Pixels of the test image, 7 by 5.
pub(super) fn pixels() -> Vec<u8> {
    let pixel =
        |(x, y): (usize, usize)| [x * 37 + y * 11, x * 5 + y * 53 + 40, x * 91 + y * 7 + 200];
    let places = (0..5).flat_map(|y| (0..7).map(move |x| (x, y)));
    places.flat_map(pixel).map(|value| value as u8).collect()
}

/// `pixels` as a PNG of `kind`.
pub(super) fn png(kind: png::ColorType, depth: png::BitDepth, pixels: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, 7, 5);
    encoder.set_color(kind);
    encoder.set_depth(depth);
    let mut writer = encoder.write_header().expect("a header");
    writer.write_image_data(pixels).expect("pixels");
    writer.finish().expect("an end");
    bytes
}

/// The test image as a PNG.
pub(super) fn rgb() -> Vec<u8> {
    png(png::ColorType::Rgb, png::BitDepth::Eight, &pixels())
}

/// The test image as a lossless WebP.
pub(super) const WEBP: [u8; 68] = [
    82, 73, 70, 70, 60, 0, 0, 0, 87, 69, 66, 80, 86, 80, 56, 76, 47, 0, 0, 0, 47, 6, 0, 1, 0, 185,
    140, 232, 127, 236, 34, 162, 255, 1, 197, 140, 36, 65, 175, 113, 25, 129, 241, 151, 187, 118,
    13, 196, 130, 41, 222, 31, 71, 98, 193, 228, 28, 100, 194, 97, 197, 4, 208, 56, 171, 188, 0, 0,
];

/// 8 by 8 pixels as a JPEG.
pub(super) const JPEG: [u8; 311] = [
    255, 216, 255, 224, 0, 16, 74, 70, 73, 70, 0, 1, 1, 0, 0, 1, 0, 1, 0, 0, 255, 219, 0, 67, 0,
    10, 7, 7, 8, 7, 6, 10, 8, 8, 8, 11, 10, 10, 11, 14, 24, 16, 14, 13, 13, 14, 29, 21, 22, 17, 24,
    35, 31, 37, 36, 34, 31, 34, 33, 38, 43, 55, 47, 38, 41, 52, 41, 33, 34, 48, 65, 49, 52, 57, 59,
    62, 62, 62, 37, 46, 68, 73, 67, 60, 72, 55, 61, 62, 59, 255, 219, 0, 67, 1, 10, 11, 11, 14, 13,
    14, 28, 16, 16, 28, 59, 40, 34, 40, 59, 59, 59, 59, 59, 59, 59, 59, 59, 59, 59, 59, 59, 59, 59,
    59, 59, 59, 59, 59, 59, 59, 59, 59, 59, 59, 59, 59, 59, 59, 59, 59, 59, 59, 59, 59, 59, 59, 59,
    59, 59, 59, 59, 59, 59, 59, 59, 59, 59, 59, 255, 192, 0, 17, 8, 0, 8, 0, 8, 3, 1, 17, 0, 2, 17,
    1, 3, 17, 1, 255, 196, 0, 20, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 255, 196,
    0, 27, 16, 0, 3, 0, 2, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 17, 0, 3, 4, 49, 193, 255,
    196, 0, 21, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 255, 196, 0, 26, 17, 0, 2,
    2, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 33, 0, 2, 3, 49, 81, 255, 218, 0, 12, 3, 1, 0, 2,
    17, 3, 17, 0, 63, 0, 5, 1, 53, 180, 227, 222, 192, 173, 60, 202, 177, 123, 236, 2, 198, 204,
    255, 217,
];

/// The pixels of [`JPEG`] as libjpeg-turbo decodes them.
pub(super) const JPEG_PIXELS: [u8; 192] = [
    86, 96, 132, 96, 100, 103, 117, 101, 130, 129, 98, 140, 125, 100, 103, 127, 111, 122, 121, 115,
    149, 100, 110, 109, 92, 117, 139, 98, 118, 106, 119, 117, 130, 130, 114, 140, 131, 117, 104,
    131, 126, 123, 125, 127, 148, 103, 121, 107, 88, 126, 135, 91, 123, 99, 111, 121, 122, 129,
    123, 137, 134, 130, 105, 139, 139, 127, 131, 141, 151, 109, 133, 107, 110, 146, 158, 109, 138,
    116, 126, 134, 137, 146, 135, 152, 151, 143, 122, 153, 149, 140, 143, 146, 161, 121, 138, 119,
    98, 119, 146, 94, 107, 100, 107, 98, 117, 123, 98, 130, 123, 100, 94, 116, 99, 105, 102, 93,
    122, 79, 86, 79, 111, 120, 153, 105, 109, 108, 120, 104, 130, 139, 109, 145, 137, 111, 110,
    128, 111, 119, 116, 109, 140, 98, 107, 102, 105, 115, 140, 102, 108, 98, 120, 108, 122, 139,
    116, 142, 134, 121, 105, 125, 122, 117, 116, 125, 142, 101, 128, 109, 119, 137, 147, 115, 129,
    104, 130, 128, 129, 145, 133, 145, 134, 133, 103, 117, 129, 107, 106, 132, 131, 93, 137, 101,
];

/// [`JPEG`] with the orientation tag.
pub(super) fn oriented(orientation: u8) -> Vec<u8> {
    let entry = [0x01, 0x12, 0, 3, 0, 0, 0, 1, 0, orientation, 0, 0];
    let tiff = [b"MM\0*\0\0\0\x08\0\x01".as_slice(), &entry, &[0; 4]].concat();
    let segment = [b"\xFF\xE1\0\x22Exif\0\0".as_slice(), &tiff].concat();
    [&JPEG[..2], &segment, &JPEG[2..]].concat()
}
