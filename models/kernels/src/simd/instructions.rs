//! The instruction sets of the kernels, and the one that the process has chosen.

use std::sync::OnceLock;

/// Instruction sets that the kernels are written for, from the least to the most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Instructions {
    /// The instructions of every machine of the target.
    Portable,
    /// AVX2 and FMA.
    Avx2,
    /// Also AVX-VNNI: products of bytes in vectors of 256 bits.
    AvxVnni,
    /// AVX-512 F and BW, AVX2 and FMA.
    Avx512,
    /// Also AVX-512 VNNI: products of bytes in vectors of 512 bits.
    Avx512Vnni,
    /// Also AVX-512 BF16: products of pairs of bf16.
    Avx512Bf16,
}

static CHOSEN: OnceLock<Instructions> = OnceLock::new();

// === impl Instructions ===

impl Instructions {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Portable,
        Self::Avx2,
        Self::AvxVnni,
        Self::Avx512,
        Self::Avx512Vnni,
        Self::Avx512Bf16,
    ];

    /// Name in benchmark figures and on command lines.
    pub fn name(self) -> &'static str {
        match self {
            Self::Portable => "portable",
            Self::Avx2 => "avx2",
            Self::AvxVnni => "avx-vnni",
            Self::Avx512 => "avx512",
            Self::Avx512Vnni => "avx512-vnni",
            Self::Avx512Bf16 => "avx512-bf16",
        }
    }

    /// The sets that this machine has, from the least to the most; the first one is everywhere.
    pub fn available() -> Vec<Self> {
        let all = Self::ALL.into_iter();
        all.filter(|instructions| instructions.is_available())
            .collect()
    }

    /// The set that this process computes with: the fastest of the machine, unless
    /// [`limit`](Self::limit) chose another one.
    pub fn chosen() -> Self {
        *CHOSEN.get_or_init(Self::most)
    }

    /// Makes this process compute with `limit`, for tests and comparisons. Weights are packed for
    /// the set in use, so this must be called at the start of a process.
    ///
    /// # Errors
    /// The machine lacks `limit`, or another set is in use already; returns the set in use.
    pub fn limit(limit: Self) -> Result<(), Self> {
        if !limit.is_available() {
            return Err(Self::chosen());
        }
        match *CHOSEN.get_or_init(|| limit) {
            chosen if chosen == limit => Ok(()),
            chosen => Err(chosen),
        }
    }

    #[cfg(not(test))]
    fn most() -> Self {
        Self::fastest(&Self::available(), is_intel())
    }

    /// The last of some sets, from the least to the most, but for BF16 on processors by Intel: a product of pairs
    /// takes them longer than two products of single numbers.
    fn fastest(available: &[Self], is_intel: bool) -> Self {
        let fast = |set: &&Self| !(is_intel && **set == Self::Avx512Bf16);
        let fastest = available.iter().rfind(fast);
        fastest.copied().unwrap_or(Self::Portable)
    }

    #[cfg(target_arch = "x86_64")]
    fn is_available(self) -> bool {
        use std::arch::is_x86_feature_detected as has;
        match self {
            Self::Portable => true,
            Self::Avx2 => has!("avx2") && has!("fma"),
            Self::AvxVnni => Self::Avx2.is_available() && has!("avxvnni"),
            Self::Avx512 => Self::Avx2.is_available() && has!("avx512f") && has!("avx512bw"),
            Self::Avx512Vnni => Self::Avx512.is_available() && has!("avx512vnni"),
            Self::Avx512Bf16 => Self::Avx512Vnni.is_available() && has!("avx512bf16"),
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn is_available(self) -> bool {
        self == Self::Portable
    }
}

#[cfg(all(not(test), target_arch = "x86_64"))]
fn is_intel() -> bool {
    let vendor = std::arch::x86_64::__cpuid(0);
    let [first, second, third] = [vendor.ebx, vendor.edx, vendor.ecx].map(u32::to_le_bytes);
    [first, second, third].concat() == b"GenuineIntel"
}

#[cfg(all(not(test), not(target_arch = "x86_64")))]
fn is_intel() -> bool {
    false
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::process::Command;

    use super::*;

    /// The instruction set of a process of these tests.
    const ASKED: &str = "SWITCHYARD_TEST_INSTRUCTIONS";

    impl Instructions {
        pub(super) fn most() -> Self {
            let asked = std::env::var(ASKED).ok();
            let mut available = Self::available();
            match asked {
                Some(asked) => available.into_iter().find(|one| one.name() == asked),
                None => available.pop(),
            }
            .expect("instructions that this machine has")
        }
    }

    #[test]
    fn intel_multiplies_no_pairs_of_bf16() {
        use Instructions::{Avx2, Avx512Bf16, Avx512Vnni, Portable};
        let all = Instructions::ALL;
        assert_eq!(Instructions::fastest(&all, false), Avx512Bf16);
        assert_eq!(Instructions::fastest(&all, true), Avx512Vnni);
        assert_eq!(Instructions::fastest(&[Portable, Avx2], true), Avx2);
        assert_eq!(Instructions::fastest(&[], false), Portable);
    }

    /// All tests of this crate, in a process for each set.
    #[test]
    fn kernels_pass_their_tests_with_all_instructions_of_the_machine() {
        if std::env::var_os(ASKED).is_some() {
            return;
        }
        for instructions in Instructions::available() {
            let output = Command::new(std::env::current_exe().unwrap())
                .args(["--test-threads=2"])
                .env(ASKED, instructions.name())
                .output()
                .unwrap();
            let printed = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success(), "{instructions:?}: {printed}");
            assert!(printed.contains("convolution::dense::tests::"), "{printed}");
        }
    }

    #[test]
    fn the_set_in_use_stays() {
        let chosen = Instructions::chosen();
        assert_eq!(Instructions::limit(chosen), Ok(()));
        for other in Instructions::ALL {
            let expected = if other == chosen { Ok(()) } else { Err(chosen) };
            assert_eq!(Instructions::limit(other), expected);
        }
    }
}
