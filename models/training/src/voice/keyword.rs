//! The keywords.

/// Number of keywords.
pub const CLASSES: usize = 6;

/// A keyword. Its discriminant is the label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keyword {
    /// /jɛs/.
    Yes,
    /// /noʊ/.
    No,
    /// /ɡoʊ/.
    Go,
    /// /stɑp/.
    Stop,
    /// /ʌp/.
    Up,
    /// /daʊn/.
    Down,
}

// === impl Keyword ===

impl Keyword {
    /// Every keyword, in order of label.
    pub const ALL: [Self; CLASSES] = [
        Self::Yes,
        Self::No,
        Self::Go,
        Self::Stop,
        Self::Up,
        Self::Down,
    ];

    /// As it is spelled.
    pub fn word(self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::No => "no",
            Self::Go => "go",
            Self::Stop => "stop",
            Self::Up => "up",
            Self::Down => "down",
        }
    }
}
