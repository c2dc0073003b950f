//! From a real file to a damaged one that is still close to it.

use rand::Rng;
use rand_pcg::Pcg64;

/// The form of a target's files.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Numbers, names and quotes: mutations replace whole ones.
    Text,
    /// Bytes, with lengths and offsets of 1 to 8 bytes.
    Binary,
}

/// Longest input, so that repeated pieces stay affordable.
const BYTES_MAX: usize = 4 << 20;

/// Numbers at the ends of ranges.
const NUMBERS: [&str; 18] = [
    "0",
    "-1",
    "1",
    "2",
    "0.5",
    "65536",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "18446744073709551615",
    "18446744073709551616",
    "1e308",
    "1e400",
    "-1e308",
    "1e-320",
    "-0",
    "nan",
    "00",
];

/// Pieces that parsers treat in a special way.
const PIECES: [&str; 18] = [
    "null",
    "true",
    "{}",
    "[]",
    "\"\"",
    "\"\\u0000\"",
    "\"\\ud800\"",
    "\u{feff}",
    "\u{1b}[31m",
    "\r\n",
    "\0",
    "..",
    "/",
    ":",
    ",",
    "=",
    "@",
    "\u{10ffff}",
];

/// The input of an execution: a seed with one to a few changes.
pub(crate) fn mutated(random: &mut Pcg64, seeds: &[Vec<u8>], form: Form) -> Vec<u8> {
    let mut bytes = seeds[random.random_range(0..seeds.len())].clone();
    loop {
        let other = &seeds[random.random_range(0..seeds.len())];
        match form {
            Form::Text if random.random_bool(0.8) => change_text(random, &mut bytes, other),
            Form::Text | Form::Binary => change_bytes(random, &mut bytes, other),
        }
        bytes.truncate(BYTES_MAX);
        if random.random_bool(0.5) {
            return bytes;
        }
    }
}

fn place(random: &mut Pcg64, bytes: &[u8]) -> usize {
    // The begin of a file holds most of its structure.
    let end = match random.random_range(0..4) {
        0 => bytes.len().min(64),
        1 => bytes.len().min(1_024),
        _ => bytes.len(),
    };
    random.random_range(0..=end)
}

fn range(random: &mut Pcg64, bytes: &[u8], longest: usize) -> std::ops::Range<usize> {
    let from = place(random, bytes);
    let length = random.random_range(0..=longest.min(bytes.len() - from));
    from..from + length
}

fn change_bytes(random: &mut Pcg64, bytes: &mut Vec<u8>, other: &[u8]) {
    match random.random_range(0..10) {
        0..3 => {
            let at = place(random, bytes);
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << random.random_range(0..8);
            }
        }
        3 => {
            let at = place(random, bytes);
            if let Some(byte) = bytes.get_mut(at) {
                *byte = [0, 1, 0x7f, 0x80, 0xff][random.random_range(0..5)];
            }
        }
        4 => {
            let number: u64 = [
                0,
                1,
                1 << 31,
                u64::from(u32::MAX),
                1 << 63,
                u64::MAX,
                1 << 20,
            ][random.random_range(0..7)];
            let width = [1, 2, 4, 8][random.random_range(0..4)];
            let at = place(random, bytes);
            let end = (at + width).min(bytes.len());
            bytes[at..end].copy_from_slice(&number.to_le_bytes()[..end - at]);
        }
        5 => {
            let gone = range(random, bytes, 64);
            bytes.drain(gone);
        }
        6 => {
            let at = place(random, bytes);
            let fresh: Vec<u8> = (0..random.random_range(1..16))
                .map(|_| random.random())
                .collect();
            bytes.splice(at..at, fresh);
        }
        7 => {
            let copied = range(random, bytes, 256);
            let copied = bytes[copied].to_vec();
            let at = place(random, bytes);
            bytes.splice(at..at, copied);
        }
        8 => {
            let from_other = range(random, other, 256);
            let replaced = range(random, bytes, 256);
            bytes.splice(replaced, other[from_other].iter().copied());
        }
        _ => bytes.truncate(place(random, bytes)),
    }
}

fn change_text(random: &mut Pcg64, bytes: &mut Vec<u8>, other: &[u8]) {
    match random.random_range(0..12) {
        0..4 => {
            let number = NUMBERS[random.random_range(0..NUMBERS.len())];
            replace_run(random, bytes, is_of_number, number.as_bytes());
        }
        4 | 5 => {
            let at = place(random, other);
            let word = run_at(other, at, is_of_word);
            replace_run(random, bytes, is_of_word, &other[word]);
        }
        6 => {
            let piece = PIECES[random.random_range(0..PIECES.len())];
            let at = place(random, bytes);
            bytes.splice(at..at, piece.bytes());
        }
        7 => {
            let piece = PIECES[random.random_range(0..PIECES.len())];
            replace_run(random, bytes, is_of_word, piece.as_bytes());
        }
        8 => {
            let line = line_of(random, bytes);
            bytes.drain(line);
        }
        9 => {
            let line = line_of(random, bytes);
            let copied = bytes[line.clone()].to_vec();
            bytes.splice(line.start..line.start, copied);
        }
        10 => {
            let theirs = line_of(random, other);
            let at = line_of(random, bytes).start;
            bytes.splice(at..at, other[theirs].iter().copied());
        }
        _ => {
            // Nesting, or a long list or name.
            let piece = ["[", "{\"a\":", "0,", "a", "[[a]]\n", "\"\","][random.random_range(0..6)];
            let times = [2, 200, 20_000][random.random_range(0..3)];
            let at = place(random, bytes);
            bytes.splice(at..at, piece.repeat(times).bytes());
        }
    }
}

fn is_of_number(byte: u8) -> bool {
    byte.is_ascii_digit() || matches!(byte, b'.' | b'-')
}

fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')
}

/// The bytes around the next place of a kind.
fn run_at(bytes: &[u8], at: usize, kind: fn(u8) -> bool) -> std::ops::Range<usize> {
    let Some(inside) = (at..bytes.len()).find(|&at| kind(bytes[at])) else {
        return bytes.len()..bytes.len();
    };
    let from = (0..inside).rev().find(|&at| !kind(bytes[at]));
    let to = (inside..bytes.len()).find(|&at| !kind(bytes[at]));
    from.map_or(0, |at| at + 1)..to.unwrap_or(bytes.len())
}

fn replace_run(random: &mut Pcg64, bytes: &mut Vec<u8>, kind: fn(u8) -> bool, with: &[u8]) {
    let at = random.random_range(0..=bytes.len());
    let run = run_at(bytes, at, kind);
    bytes.splice(run, with.iter().copied());
}

fn line_of(random: &mut Pcg64, bytes: &[u8]) -> std::ops::Range<usize> {
    let at = random.random_range(0..=bytes.len());
    let from = bytes[..at].iter().rposition(|&byte| byte == b'\n');
    let to = bytes[at..].iter().position(|&byte| byte == b'\n');
    from.map_or(0, |from| from + 1)..to.map_or(bytes.len(), |to| at + to + 1)
}
