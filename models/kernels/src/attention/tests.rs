use super::*;
use crate::testing::{pool, random};

/// The definition of one text, in f64.
fn plain(qkv: &[f32], heads: Heads) -> Vec<f64> {
    let text = TextPart {
        heads,
        qkv,
        from: 0,
    };
    let mut out = Vec::new();
    for query in 0..text.tokens() {
        for head in 0..heads.count {
            let vector = |token, kind| text.vector(token, kind, head).iter();
            let shares: Vec<f64> = (0..text.tokens())
                .map(|key| {
                    let pairs = vector(query, 0).zip(vector(key, 1));
                    let score: f64 = pairs.map(|(q, k)| f64::from(*q) * f64::from(*k)).sum();
                    (score / (heads.depth as f64).sqrt()).exp()
                })
                .collect();
            let sum: f64 = shares.iter().sum();
            let mut mixed = vec![0.0; heads.depth];
            for (key, share) in shares.iter().enumerate() {
                for (to, value) in mixed.iter_mut().zip(vector(key, 2)) {
                    *to += share / sum * f64::from(*value);
                }
            }
            out.extend(mixed);
        }
    }
    out
}

fn attended(qkv: &[f32], lengths: &[usize], heads: Heads) -> Vec<f32> {
    let tokens: usize = lengths.iter().sum();
    let mut out = vec![f32::NAN; tokens * heads.count * heads.depth];
    attend(qkv, lengths, heads, &mut out);
    out
}

#[test]
fn texts_attend_as_defined() {
    for (lengths, count, depth) in [
        (&[1][..], 1, 1),
        (&[5, 0, 7], 2, 3),
        (&[37], 3, 32),
        (&[64, 1], 1, 64),
        (&[150, 9], 2, 20),
        (&[QUERIES, QUERIES + 1], 1, 80),
    ] {
        let heads = Heads { count, depth };
        let each = 3 * count * depth;
        let qkv = random(lengths.iter().sum::<usize>() * each, 1.0);
        let ours = attended(&qkv, lengths, heads);
        let mut from = 0;
        let mut want = Vec::new();
        for length in lengths {
            want.extend(plain(&qkv[from * each..][..length * each], heads));
            from += length;
        }
        assert_eq!(ours.len(), want.len());
        for (ours, want) in ours.iter().zip(want) {
            assert!((f64::from(*ours) - want).abs() < 1e-5, "{ours} {want}");
        }
    }
}

/// Bit for bit: alone, next to others, on one thread or three.
#[test]
fn a_text_does_not_depend_on_its_batch() {
    let heads = Heads {
        count: 4,
        depth: 16,
    };
    let lengths = [300, 13, 200];
    let qkv = random(513 * 3 * 64, 1.0);
    let together = pool(1).install(|| attended(&qkv, &lengths, heads));
    let shared = pool(3).install(|| attended(&qkv, &lengths, heads));
    assert_eq!(together, shared);
    let second = &qkv[300 * 3 * 64..][..13 * 3 * 64];
    let alone = attended(second, &[13], heads);
    assert_eq!(alone, together[300 * 64..][..13 * 64]);
}

#[test]
fn a_large_score_takes_all_and_nothing_overflows() {
    let heads = Heads { count: 1, depth: 2 };
    // Scores of 4e4 and -4e4: their exponentials are no f32.
    let mut qkv = vec![0.0; 3 * 6];
    for (token, (sign, value)) in [(1.0, 5.0), (-1.0, 7.0), (-1.0, 9.0)]
        .into_iter()
        .enumerate()
    {
        qkv[token * 6..][..6].copy_from_slice(&[
            200.0,
            200.0,
            sign * 141.0,
            sign * 141.0,
            value,
            value,
        ]);
    }
    let out = attended(&qkv, &[3], heads);
    assert!(out.iter().all(|x| (x - 5.0).abs() < 1e-6), "{out:?}");
}

#[test]
fn nan_in_a_query_reaches_its_results_only() {
    let mut qkv = random(6 * 3 * 8, 1.0);
    qkv[3] = f32::NAN;
    let heads = Heads { count: 1, depth: 8 };
    let out = attended(&qkv, &[6], heads);
    assert!(out[..8].iter().all(|x| x.is_nan()), "{out:?}");
    assert!(out[8..].iter().all(|x| x.is_finite()));
}
