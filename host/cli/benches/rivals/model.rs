//! The models of the race, their requests, and the deadlines of these.

use std::time::Duration;

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;

use super::text_zoo::MINILM;

/// One of the race's models.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Model {
    /// Images of 224 x 224.
    Resnet50,
    /// Texts of a size of MiniLM: most have some ten words, one in [`LONG_EVERY`] has up to 200.
    Minilm,
    /// A perceptron of 187-128-7, as of a heart beat.
    Mlp,
}

/// A request's numbers.
#[derive(Clone, Debug)]
pub(crate) enum Input {
    Numbers(Vec<f32>),
    /// Token ids, with those that begin and end a text.
    Ids(Vec<i64>),
}

pub(crate) const SIDE: usize = 224;
pub(crate) const SAMPLES: usize = 187;
pub(crate) const SHORT_WORDS: [usize; 2] = [8, 15];
pub(crate) const LONG_WORDS: [usize; 2] = [100, 200];
const LONG_EVERY: u32 = 8;

/// Ids that begin and end a text, and the first of a word.
const AROUND: [i64; 2] = [2, 3];
const FIRST_WORD: i64 = 4;

// === impl Model ===

impl Model {
    pub(crate) const ALL: [Self; 3] = [Self::Resnet50, Self::Minilm, Self::Mlp];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Resnet50 => "resnet50",
            Self::Minilm => "minilm",
            Self::Mlp => "mlp",
        }
    }

    /// From the arrival to the last byte of the answer.
    pub(crate) fn deadline(self) -> Duration {
        Duration::from_millis(match self {
            Self::Resnet50 => 500,
            Self::Minilm => 150,
            Self::Mlp => 100,
        })
    }

    /// Different requests that a client sends in turn.
    pub(crate) fn drawn(self) -> Vec<Input> {
        let count = match self {
            Self::Resnet50 => 2,
            Self::Minilm => 64,
            Self::Mlp => 8,
        };
        let mut rng = Pcg64::seed_from_u64(50);
        (0..count).map(|at| self.draw(at, &mut rng)).collect()
    }

    fn draw(self, at: u32, rng: &mut Pcg64) -> Input {
        let mut numbers = |count| (0..count).map(|_| rng.random_range(-1.0..1.0)).collect();
        match self {
            Self::Resnet50 => Input::Numbers(numbers(3 * SIDE * SIDE)),
            Self::Mlp => Input::Numbers(numbers(SAMPLES)),
            Self::Minilm => {
                let [fewest, most] = match at % LONG_EVERY {
                    0 => LONG_WORDS,
                    _ => SHORT_WORDS,
                };
                let words = rng.random_range(fewest..=most);
                let last = i64::try_from(MINILM.vocabulary).unwrap();
                let words = (0..words).map(|_| rng.random_range(FIRST_WORD..last));
                let words: Vec<i64> = words.collect();
                Input::Ids([&AROUND[..1], &words, &AROUND[1..]].concat())
            }
        }
    }
}

// === impl Input ===

impl Input {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Numbers(numbers) => numbers.iter().flat_map(|n| n.to_le_bytes()).collect(),
            Self::Ids(ids) => ids.iter().flat_map(|id| id.to_le_bytes()).collect(),
        }
    }

    /// The text of these ids.
    pub(crate) fn text(&self) -> String {
        let Self::Ids(ids) = self else {
            unreachable!("only texts have words");
        };
        let words = ids.iter().filter(|id| **id >= FIRST_WORD);
        let words: Vec<String> = words.map(|id| format!("w{id}")).collect();
        words.join(" ")
    }
}
