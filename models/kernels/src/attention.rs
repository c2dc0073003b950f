//! Self-attention of one head (Vaswani et al., "Attention is all you need", 2017, section 3.2.1), in
//! one pass over the queries: no matrix of all scores, and nothing transposed but the keys.

use crate::gates::exp;
use crate::memory::Buffer;
use crate::simd::dispatch;
use crate::simd::vectors::{Simd, Vectorized};

/// Queries whose scores are computed together, so that each key is loaded once for all.
const QUERIES: usize = 4;

/// Vectors of scores, or of values, that are summed at once.
const VECTORS: usize = 2;

/// The most lanes of a vector.
const LANES_MAX: usize = 16;

/// Added to the scores of tokens that are no part of a text.
const MASKED: f32 = -1e9;

/// One head of a text.
#[derive(Clone, Copy, Debug)]
pub struct Head<'a> {
    /// `[tokens, 3, heads, depth]`: queries, keys and values.
    pub qkv: &'a [f32],
    /// 1 for a token of the text, 0 for padding.
    pub mask: &'a [f32],
    /// Number of heads.
    pub heads: usize,
    /// Values of a query, key or value.
    pub depth: usize,
    /// Its position among the heads.
    pub head: usize,
}

/// Writes `softmax(Q K^T / sqrt(depth)) V` of a head to `out`, `[tokens, depth]`; the mean of the values
/// if a text has only padding.
///
/// # Panics
/// The lengths do not fit.
pub fn attend(head: Head<'_>, out: &mut [f32]) {
    let tokens = head.mask.len();
    assert_eq!(
        head.qkv.len(),
        tokens * 3 * head.heads * head.depth,
        "queries, keys and values"
    );
    assert_eq!(out.len(), tokens * head.depth, "results");
    dispatch(Attention { head, out });
}

struct Attention<'a, 'b> {
    head: Head<'a>,
    out: &'b mut [f32],
}

// === impl Head ===

impl Head<'_> {
    /// The query (0), key (1) or value (2) of a token.
    #[inline(always)]
    fn part(&self, token: usize, part: usize) -> &[f32] {
        let from = ((token * 3 + part) * self.heads + self.head) * self.depth;
        &self.qkv[from..from + self.depth]
    }
}

// === impl Attention ===

impl Vectorized for Attention<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { head, out } = self;
        let (tokens, depth) = (head.mask.len(), head.depth);
        let block = VECTORS * S::LANES;
        let (wide, deep) = (
            tokens.next_multiple_of(block),
            depth.next_multiple_of(block),
        );
        // [depth][keys], [keys][depth]; zeros behind the last one.
        let (mut keys, mut values) = (Buffer::take(depth * wide), Buffer::take(wide * deep));
        let (mut bias, mut scores) = (Buffer::take(wide), Buffer::take(QUERIES * wide));
        keys.fill(0.0);
        values.fill(0.0);
        for token in 0..tokens {
            for (d, key) in head.part(token, 1).iter().enumerate() {
                keys[d * wide + token] = *key;
            }
            values[token * deep..][..depth].copy_from_slice(head.part(token, 2));
        }
        let is_empty = head.mask.iter().all(|&mask| mask == 0.0);
        bias.fill(MASKED);
        for (bias, mask) in bias.iter_mut().zip(head.mask) {
            *bias = if is_empty || *mask != 0.0 {
                0.0
            } else {
                MASKED
            };
        }
        let scale = if is_empty {
            0.0
        } else {
            1.0 / (depth as f32).sqrt()
        };
        let mut scaled = Buffer::take(QUERIES * depth);
        for from in (0..tokens).step_by(QUERIES) {
            let count = QUERIES.min(tokens - from);
            scaled.fill(0.0);
            for q in 0..count {
                let query = head.part(from + q, 0).iter();
                for (to, value) in scaled[q * depth..].iter_mut().zip(query) {
                    *to = value * scale;
                }
            }
            for at in (0..wide).step_by(block) {
                score_block(simd, &scaled, &keys, &bias, (depth, wide, at), &mut scores);
            }
            for q in 0..count {
                let row = &mut scores[q * wide..(q + 1) * wide];
                let inverse = soften(row, &bias);
                let to = &mut out[(from + q) * depth..(from + q + 1) * depth];
                mix(simd, &row[..tokens], &values, deep, inverse, to);
            }
        }
    }
}

/// Scores of [`QUERIES`] queries for a block of keys: `bias + q k`.
#[inline(always)]
fn score_block<S: Simd>(
    simd: S,
    queries: &[f32],
    keys: &[f32],
    bias: &[f32],
    (depth, wide, at): (usize, usize, usize),
    scores: &mut [f32],
) {
    let lanes = S::LANES;
    let mut start = [simd.splat(0.0); VECTORS];
    for (v, start) in start.iter_mut().enumerate() {
        *start = simd.load(&bias[at + v * lanes..][..lanes]);
    }
    let mut sums = [start; QUERIES];
    for d in 0..depth {
        let line = &keys[d * wide + at..][..VECTORS * lanes];
        for (q, sums) in sums.iter_mut().enumerate() {
            add_share(simd, queries[q * depth + d], line, sums);
        }
    }
    for (q, sums) in sums.into_iter().enumerate() {
        for (v, sum) in sums.into_iter().enumerate() {
            simd.store(&mut scores[q * wide + at + v * lanes..][..lanes], sum);
        }
    }
}

/// Makes `exp(score - largest)` of a row of scores, exactly 0 for padding. Returns the inverse of
/// their sum.
#[inline(always)]
fn soften(row: &mut [f32], bias: &[f32]) -> f32 {
    let mut largest = [f32::MIN; LANES_MAX];
    for part in row.chunks_exact(LANES_MAX) {
        for (largest, score) in largest.iter_mut().zip(part) {
            *largest = if *score > *largest { *score } else { *largest };
        }
    }
    for score in row.chunks_exact(LANES_MAX).remainder() {
        largest[0] = if *score > largest[0] {
            *score
        } else {
            largest[0]
        };
    }
    let largest = largest
        .into_iter()
        .fold(f32::MIN, |a, b| if b > a { b } else { a });
    for (score, bias) in row.iter_mut().zip(bias) {
        let share = exp(*score - largest);
        *score = if *bias < 0.0 { 0.0 } else { share };
    }
    let mut sums = [0.0; LANES_MAX];
    for part in row.chunks_exact(LANES_MAX) {
        for (sum, share) in sums.iter_mut().zip(part) {
            *sum += share;
        }
    }
    let rest: f32 = row.chunks_exact(LANES_MAX).remainder().iter().sum();
    1.0 / (sums.iter().sum::<f32>() + rest)
}

/// `to = inverse * shares V`.
#[inline(always)]
fn mix<S: Simd>(
    simd: S,
    shares: &[f32],
    values: &[f32],
    deep: usize,
    inverse: f32,
    to: &mut [f32],
) {
    let block = VECTORS * S::LANES;
    let (inverse, zero) = (simd.splat(inverse), simd.splat(0.0));
    for (at, to) in to.chunks_mut(block).enumerate() {
        // Two chains of sums: one alone waits for each addition.
        let mut sums = [[zero; VECTORS]; 2];
        let lines = values.chunks_exact(deep);
        for (token, (share, line)) in shares.iter().zip(lines).enumerate() {
            add_share(
                simd,
                *share,
                &line[at * block..][..block],
                &mut sums[token % 2],
            );
        }
        let [first, second] = sums;
        for (v, to) in to.chunks_mut(S::LANES).enumerate() {
            let sum = simd.add(first[v], second[v]);
            simd.store(to, simd.mul_add(sum, inverse, zero));
        }
    }
}

/// `sums += share * line`.
#[inline(always)]
fn add_share<S: Simd>(simd: S, share: f32, line: &[f32], sums: &mut [S::Vector; VECTORS]) {
    let share = simd.splat(share);
    for (v, sum) in sums.iter_mut().enumerate() {
        *sum = simd.mul_add(share, simd.load(&line[v * S::LANES..][..S::LANES]), *sum);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::random;

    /// The definition, in f64.
    fn plain(head: Head<'_>) -> Vec<f64> {
        let tokens = head.mask.len();
        let part = |token, part| head.part(token, part).iter().map(|&x| f64::from(x));
        let is_empty = head.mask.iter().all(|mask| *mask == 0.0);
        let mut out = Vec::new();
        for query in 0..tokens {
            let scores: Vec<f64> = (0..tokens)
                .map(|key| {
                    part(query, 0)
                        .zip(part(key, 1))
                        .map(|(q, k)| q * k)
                        .sum::<f64>()
                })
                .map(|score| {
                    if is_empty {
                        1.0
                    } else {
                        (score / (head.depth as f64).sqrt()).exp()
                    }
                })
                .enumerate()
                .map(|(key, share)| {
                    if is_empty || head.mask[key] != 0.0 {
                        share
                    } else {
                        0.0
                    }
                })
                .collect();
            let sum: f64 = scores.iter().sum();
            let mut mixed = vec![0.0; head.depth];
            for (key, share) in scores.iter().enumerate() {
                for (to, value) in mixed.iter_mut().zip(part(key, 2)) {
                    *to += share / sum * value;
                }
            }
            out.extend(mixed);
        }
        out
    }

    #[test]
    fn a_head_attends_as_defined() {
        for (tokens, heads, depth) in [(1, 1, 1), (5, 2, 3), (37, 3, 32), (64, 1, 64), (9, 2, 20)] {
            let qkv = random(tokens * 3 * heads * depth, 1.0);
            let ends = [tokens, tokens.div_ceil(2), 0];
            for end in ends {
                let mask: Vec<f32> = (0..tokens).map(|t| f32::from(u8::from(t < end))).collect();
                for head in 0..heads {
                    let head = Head {
                        qkv: &qkv,
                        mask: &mask,
                        heads,
                        depth,
                        head,
                    };
                    let mut out = vec![f32::NAN; tokens * depth];
                    attend(head, &mut out);
                    for (ours, want) in out.iter().zip(plain(head)) {
                        assert!((f64::from(*ours) - want).abs() < 1e-5, "{ours} {want}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_value_that_is_no_number_reaches_the_results() {
        let mut qkv = random(6 * 3 * 8, 1.0);
        qkv[3] = f32::NAN;
        let head = Head {
            qkv: &qkv,
            mask: &[1.0; 6],
            heads: 1,
            depth: 8,
            head: 0,
        };
        let mut out = vec![0.0; 6 * 8];
        attend(head, &mut out);
        assert!(out[..8].iter().all(|x| x.is_nan()), "{out:?}");
        assert!(out[8..].iter().all(|x| x.is_finite()));
    }
}
