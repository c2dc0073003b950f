//! The number of bits of a weight.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use switchyard_kernels::bf16;

/// How many bits a weight of a product has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// 32, as trained.
    #[default]
    F32,
    /// 16: IEEE half precision.
    F16,
    /// 16: the upper half of 32 bits, with their range. On a CPU activations are rounded to bf16
    /// too.
    Bf16,
    /// 8 bits. On a CPU with a scale per output, activations in 8 bits too; on other devices with a
    /// 16-bit scale per 32 weights (ggml's Q8_0).
    Int8,
}

/// The largest value of half precision, in which scales of 8 bits are kept as well.
const LARGEST_HALF: f32 = 65504.0;

// === impl Precision ===

impl Precision {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::F32, Self::F16, Self::Bf16, Self::Int8];

    /// Separates a variant's name from its precision: `cnn@int8`.
    pub const MARK: char = '@';

    /// Whether weights lose bits.
    pub fn is_reduced(self) -> bool {
        self != Self::F32
    }

    /// As in a variant's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::Int8 => "int8",
        }
    }

    /// The largest value that rounds to a finite one.
    pub(crate) fn largest(self) -> f32 {
        match self {
            Self::F32 => f32::MAX,
            Self::F16 | Self::Int8 => LARGEST_HALF,
            Self::Bf16 => bf16::LARGEST,
        }
    }

    /// The variant's name in this precision: `cnn`, `cnn@int8`.
    pub fn of_variant(self, variant: &str) -> String {
        match self {
            Self::F32 => variant.to_owned(),
            _ => format!("{variant}{}{self}", Self::MARK),
        }
    }

    /// The variant and the precision of a name.
    ///
    /// # Errors
    /// There is no such precision; the text lists the known ones.
    pub fn split(name: &str) -> Result<(&str, Self), String> {
        match name.rsplit_once(Self::MARK) {
            Some((variant, precision)) => Ok((variant, precision.parse()?)),
            None => Ok((name, Self::F32)),
        }
    }
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Precision {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|one| one.name() == text);
        found.ok_or_else(|| {
            let known = Self::ALL.map(Self::name).join(", ");
            format!("no precision is called `{text}`; there are {known}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_apart_and_put_together() {
        for precision in Precision::ALL {
            let name = precision.of_variant("cnn");
            assert_eq!(Precision::split(&name), Ok(("cnn", precision)));
        }
        assert_eq!(
            Precision::split("cnn@int4"),
            Err("no precision is called `int4`; there are f32, f16, bf16, int8".to_owned())
        );
    }
}
