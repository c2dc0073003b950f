//! The score of a mapping (Algorithms 1 and 2).

/// How a score sums expected latencies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScoreRule {
    /// MAEL: the sum of 1 / expected latency.
    Latency,
    /// SLO-MAEL: the degrees of expected SLO violations count first.
    Slo,
}

/// The two sums of a mapping, in 1/us; a factor common to all mappings changes nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct MappingScore {
    /// `score_slo`: minus the sum of expected latency / SLO over tasks that miss it.
    pub(crate) slo: f64,
    /// `score_ael`: the sum of 1 / expected latency over the others.
    pub(crate) ael: f64,
}

// === impl ScoreRule ===

impl ScoreRule {
    /// Adds one task (Algorithm 2, lines 10 to 13; without its condition, Algorithm 1, line 9).
    #[inline]
    pub(crate) fn add(self, score: MappingScore, expected_us: f64, slo_us: f64) -> MappingScore {
        match self {
            Self::Slo if expected_us > slo_us => MappingScore {
                slo: score.slo - expected_us / slo_us,
                ..score
            },
            _ => MappingScore {
                ael: score.ael + 1.0 / expected_us,
                ..score
            },
        }
    }
}

// === impl MappingScore ===

impl MappingScore {
    /// Algorithm 2, line 14: a mapping without violations is above every mapping with some.
    #[inline]
    pub(crate) fn value(self) -> f64 {
        if self.slo == 0.0 { self.ael } else { self.slo }
    }

    /// Between mappings of equal violations, `score_ael` decides.
    #[inline]
    pub(crate) fn is_above(self, other: Self) -> bool {
        let (mine, its) = (self.value(), other.value());
        mine > its || mine == its && self.ael > other.ael
    }
}
