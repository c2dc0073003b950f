//! The classes of heartbeats, and the layout of one.

/// Samples of one beat.
pub const SAMPLES: usize = 187;

/// Samples per second.
pub const SAMPLE_RATE_HZ: f64 = 125.0;

/// Number of beat classes.
pub const CLASSES: usize = 7;

/// A beat class. Its discriminant is the label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BeatClass {
    /// Normal.
    Normal,
    /// Left bundle branch block.
    LeftBlock,
    /// Right bundle branch block.
    RightBlock,
    /// Atrial premature.
    Atrial,
    /// Ventricular premature.
    Ventricular,
    /// Fusion of a normal and a ventricular beat.
    Fusion,
    /// Paced.
    Paced,
}

// === impl BeatClass ===

impl BeatClass {
    /// Every class, in order of label.
    pub const ALL: [Self; CLASSES] = [
        Self::Normal,
        Self::LeftBlock,
        Self::RightBlock,
        Self::Atrial,
        Self::Ventricular,
        Self::Fusion,
        Self::Paced,
    ];

    /// The annotation letter of MIT-BIH.
    pub fn letter(self) -> &'static str {
        match self {
            Self::Normal => "N",
            Self::LeftBlock => "L",
            Self::RightBlock => "R",
            Self::Atrial => "A",
            Self::Ventricular => "V",
            Self::Fusion => "F",
            Self::Paced => "P",
        }
    }
}
