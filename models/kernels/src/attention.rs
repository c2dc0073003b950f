//! Self-attention of whole texts (Vaswani et al., "Attention is all you need", 2017, section 3.2.1).
//!
//! Texts lie one after the other without padding. A head's keys and values are packed like the
//! weights of a convolution, and a few queries at a time are multiplied by them: the scores of those
//! queries stay in the first-level cache, and there is no matrix of all scores.

mod tiles;

use rayon::prelude::*;

use self::tiles::{MixTiles, ScoreTiles, soften};
use crate::convolution::panels::{compute, padded, panels};
use crate::memory::Buffer;
use crate::simd::dispatch;
use crate::simd::vectors::{Simd, Vectorized};

/// Queries that are computed together: each key and value is loaded once for some of them.
const QUERIES: usize = 24;

/// Multiply-adds below which texts are not shared among threads: waking one takes as long.
const SHARED_MIN: usize = 1 << 20;

/// Fewest queries of a thread that shares a text: each packs all keys and values.
const SHARE_MIN: usize = 4 * QUERIES;

/// Heads of a layer.
#[derive(Clone, Copy, Debug)]
pub struct Heads {
    /// Their number.
    pub count: usize,
    /// Values of a query, key or value.
    pub depth: usize,
}

/// Queries `from..` of one text.
#[derive(Clone, Copy)]
struct TextPart<'a> {
    heads: Heads,
    /// `[tokens, 3, heads, depth]`: queries, keys and values of the whole text.
    qkv: &'a [f32],
    from: usize,
}

struct Attention<'a, 'b> {
    part: TextPart<'a>,
    /// `[queries, heads, depth]`.
    out: &'b mut [f32],
}

/// Writes `softmax(Q K^T / sqrt(depth)) V` of each text and head to `out`, `[tokens, heads, depth]`.
///
/// `qkv` is `[tokens, 3, heads, depth]`, `lengths` are the tokens of each text. The threads of the
/// current pool share the queries if there is enough work; the result does not depend on them.
///
/// # Panics
/// The lengths do not fit.
pub fn attend(qkv: &[f32], lengths: &[usize], heads: Heads, out: &mut [f32]) {
    let width = heads.count * heads.depth;
    let tokens: usize = lengths.iter().sum();
    assert_eq!(qkv.len(), tokens * 3 * width, "queries, keys and values");
    assert_eq!(out.len(), tokens * width, "results");
    let work: usize = lengths
        .iter()
        .map(|tokens| 2 * tokens * tokens * width)
        .sum();
    let threads = match work < SHARED_MIN {
        true => 1,
        false => rayon::current_num_threads(),
    };
    let texts = texts(qkv, lengths, heads, out);
    if threads == 1 {
        for (text, out) in texts {
            dispatch(Attention { part: text, out });
        }
        return;
    }
    let parts: Vec<_> = texts
        .flat_map(|(text, out)| {
            let tokens = out.len() / width.max(1);
            let share = tokens.div_ceil(threads).max(SHARE_MIN);
            let parts = out.chunks_mut((share * width).max(1)).enumerate();
            parts.map(move |(i, out)| Attention {
                part: TextPart {
                    from: i * share,
                    ..text
                },
                out,
            })
        })
        .collect();
    parts.into_par_iter().for_each(dispatch);
}

/// Each text with its part of the result.
fn texts<'a, 'b>(
    mut qkv: &'a [f32],
    lengths: &[usize],
    heads: Heads,
    mut out: &'b mut [f32],
) -> impl Iterator<Item = (TextPart<'a>, &'b mut [f32])> {
    lengths.iter().map(move |tokens| {
        let len = tokens * heads.count * heads.depth;
        let (text, rest) = qkv.split_at(3 * len);
        let (of_text, rest_of_out) = std::mem::take(&mut out).split_at_mut(len);
        (qkv, out) = (rest, rest_of_out);
        let part = TextPart {
            heads,
            qkv: text,
            from: 0,
        };
        (part, of_text)
    })
}

// === impl TextPart ===

impl TextPart<'_> {
    fn tokens(&self) -> usize {
        self.qkv.len() / (3 * self.heads.count * self.heads.depth).max(1)
    }

    /// The query (0), key (1) or value (2) of a token and head.
    #[inline(always)]
    fn vector(&self, token: usize, kind: usize, head: usize) -> &[f32] {
        let Heads { count, depth } = self.heads;
        let from = ((token * 3 + kind) * count + head) * depth;
        &self.qkv[from..from + depth]
    }
}

// === impl Attention ===

impl Vectorized for Attention<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { part, out } = self;
        let (tokens, Heads { count, depth }) = (part.tokens(), part.heads);
        let vectors = [S::LANES, S::REGISTERS];
        let (wide, deep) = (padded(tokens, vectors), padded(depth, vectors));
        // Zeros behind the last key, and behind the last value of a token.
        let (mut keys, mut values) = (Buffer::take(depth * wide), Buffer::take(tokens * deep));
        keys.fill(0.0);
        values.fill(0.0);
        let mut queries = Buffer::take(QUERIES * depth);
        let mut scores = Buffer::take(QUERIES * wide);
        let scale = 1.0 / (depth as f32).sqrt();
        let width = count * depth;
        for head in 0..count {
            pack_keys(part, head, vectors, &mut keys);
            pack_values(part, head, vectors, &mut values);
            for (i, out) in out.chunks_mut(QUERIES * width).enumerate() {
                let block = out.len() / width;
                let queries = &mut queries[..block * depth];
                for (at, to) in queries.chunks_exact_mut(depth).enumerate() {
                    let query = part.vector(part.from + i * QUERIES + at, 0, head);
                    for (to, value) in to.iter_mut().zip(query) {
                        *to = value * scale;
                    }
                }
                let mut offsets = [0; QUERIES];
                for (at, offset) in offsets.iter_mut().enumerate() {
                    *offset = at * depth;
                }
                let mut tiles = ScoreTiles {
                    simd,
                    queries,
                    keys: &keys,
                    depth,
                    wide,
                    scores: &mut scores,
                };
                compute(&mut tiles, tokens, &offsets[..block]);
                let mut inverses = [0.0; QUERIES];
                let rows = scores.chunks_exact_mut(wide).zip(&mut inverses);
                for (row, inverse) in rows.take(block) {
                    *inverse = 1.0 / soften(simd, row, tokens);
                }
                for (at, offset) in offsets.iter_mut().enumerate() {
                    *offset = at * wide;
                }
                let mut tiles = MixTiles {
                    simd,
                    shares: &scores,
                    values: &values,
                    tokens,
                    inverses: &inverses,
                    width,
                    out: &mut out[head * depth..],
                };
                compute(&mut tiles, depth, &offsets[..block]);
            }
        }
    }
}

/// Packs the keys of a head, `[panel of keys][value][key of the panel]`.
#[inline(always)]
fn pack_keys(part: TextPart<'_>, head: usize, vectors: [usize; 2], to: &mut [f32]) {
    let depth = part.heads.depth;
    for panel in panels(part.tokens(), vectors) {
        let width = panel.vectors * vectors[0];
        let to = &mut to[panel.from * depth..][..width * depth];
        for at in 0..panel.channels {
            let key = part.vector(panel.from + at, 1, head);
            for (line, value) in to.chunks_exact_mut(width).zip(key) {
                line[at] = *value;
            }
        }
    }
}

/// Packs the values of a head, `[panel of values][token][value of the panel]`.
#[inline(always)]
fn pack_values(part: TextPart<'_>, head: usize, vectors: [usize; 2], to: &mut [f32]) {
    let tokens = part.tokens();
    for panel in panels(part.heads.depth, vectors) {
        let width = panel.vectors * vectors[0];
        let to = &mut to[panel.from * tokens..][..width * tokens];
        for (token, line) in to.chunks_exact_mut(width).enumerate() {
            let value = &part.vector(token, 2, head)[panel.from..][..panel.channels];
            line[..panel.channels].copy_from_slice(value);
        }
    }
}

#[cfg(test)]
mod tests;
