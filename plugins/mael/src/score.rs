//! What a candidate mapping is worth (Algorithms 1 and 2).

/// How expected latencies are summed up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// MAEL: the sum of 1 / expected latency.
    Latency,
    /// SLO-MAEL: tasks that are expected to miss their SLOs count first, by how much.
    Slo,
}

/// The two sums of a candidate. Times are microseconds, as elsewhere; a factor common to all
/// candidates changes nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Score {
    /// `score_slo`: minus the sum of expected latency / SLO over tasks that miss it.
    pub(crate) slo: f64,
    /// `score_ael`: the sum of 1 / expected latency over the others.
    pub(crate) ael: f64,
}

// === impl Rule ===

impl Rule {
    /// Adds one task (Algorithm 2, lines 10 to 13; without its condition, Algorithm 1, line 9).
    #[inline]
    pub(crate) fn add(self, score: Score, expected_us: f64, slo_us: f64) -> Score {
        match self {
            Self::Slo if expected_us > slo_us => Score {
                slo: score.slo - expected_us / slo_us,
                ..score
            },
            _ => Score {
                ael: score.ael + 1.0 / expected_us,
                ..score
            },
        }
    }
}

// === impl Score ===

impl Score {
    /// Algorithm 2, line 14: any candidate without a violation is above every one with some.
    #[inline]
    pub(crate) fn value(self) -> f64 {
        if self.slo == 0.0 { self.ael } else { self.slo }
    }

    /// Candidates of one value, which only those with violations can sensibly have, differ in
    /// what the other tasks get.
    #[inline]
    pub(crate) fn is_above(self, other: Self) -> bool {
        let (mine, its) = (self.value(), other.value());
        mine > its || mine == its && self.ael > other.ael
    }
}
