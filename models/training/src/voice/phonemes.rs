//! The keywords as sequences of articulatory targets.
//!
//! Formants are an adult man's: vowels from Peterson and Barney, "Control methods used in a study
//! of the vowels" (1952), consonants and diphthongs from the tables of Klatt (1980). A nasal is
//! three wide, low formants; the zero of the nasal tract is left out.

use super::keyword::Keyword;

/// A stretch of speech in which the tract moves towards one target.
#[derive(Clone, Copy, Debug)]
pub(super) struct SpeechSegment {
    /// At normal speaking rate.
    pub(super) duration_ms: f32,
    /// The lowest three resonances.
    pub(super) formants_hz: [f32; 3],
    /// Their bandwidths at half power.
    pub(super) bandwidths_hz: [f32; 3],
    /// Amplitude of the glottal pulses; an open vowel has 1.
    pub(super) voicing: f32,
    /// Amplitude of noise made at the glottis, which passes through the tract.
    pub(super) aspiration: f32,
    /// Amplitude of noise made at a constriction, which does not pass through it.
    pub(super) frication: f32,
    /// Centre and bandwidth of that noise.
    pub(super) frication_hz: [f32; 2],
    /// Left out by some speakers: the release of a final stop.
    pub(super) optional: bool,
}

const OPEN_HZ: [f32; 3] = [70.0, 90.0, 140.0];
const NASAL_HZ: [f32; 3] = [150.0, 280.0, 320.0];
const CLOSED_HZ: [f32; 3] = [120.0, 160.0, 220.0];
/// Frequency and bandwidth of frication noise in segments without frication.
const RESTING_HZ: [f32; 2] = [3000.0, 2000.0];

const fn vowel(duration_ms: f32, formants_hz: [f32; 3]) -> SpeechSegment {
    SpeechSegment {
        duration_ms,
        formants_hz,
        bandwidths_hz: OPEN_HZ,
        voicing: 1.0,
        aspiration: 0.0,
        frication: 0.0,
        frication_hz: RESTING_HZ,
        optional: false,
    }
}

const fn nasal(duration_ms: f32, formants_hz: [f32; 3]) -> SpeechSegment {
    let mut segment = vowel(duration_ms, formants_hz);
    segment.bandwidths_hz = NASAL_HZ;
    segment.voicing = 0.6;
    segment
}

/// The silence of a stop, or its muffled voicing, at the locus that the formants move towards.
const fn closure(duration_ms: f32, locus_hz: [f32; 3], voicing: f32) -> SpeechSegment {
    let mut segment = vowel(duration_ms, locus_hz);
    segment.bandwidths_hz = CLOSED_HZ;
    segment.voicing = voicing;
    segment
}

const fn noise(
    duration_ms: f32,
    locus_hz: [f32; 3],
    level: f32,
    noise_hz: [f32; 2],
) -> SpeechSegment {
    let mut segment = closure(duration_ms, locus_hz, 0.0);
    segment.frication = level;
    segment.frication_hz = noise_hz;
    segment
}

/// Breath after a release: the tract is open, the voice is silent.
const fn breath(duration_ms: f32, formants_hz: [f32; 3]) -> SpeechSegment {
    let mut segment = vowel(duration_ms, formants_hz);
    segment.voicing = 0.0;
    segment.aspiration = 0.5;
    segment
}

const fn optional(mut segment: SpeechSegment) -> SpeechSegment {
    segment.optional = true;
    segment
}

// Loci of consonants.
const ALVEOLAR: [f32; 3] = [250.0, 1650.0, 2650.0];
const LABIAL: [f32; 3] = [350.0, 900.0, 2150.0];
/// In front of a back vowel, where the second and third formant meet.
const VELAR: [f32; 3] = [230.0, 1350.0, 2050.0];

const HISS: [f32; 2] = [5600.0, 2200.0];
const ALVEOLAR_BURST: [f32; 2] = [3900.0, 2200.0];
const LABIAL_BURST: [f32; 2] = [900.0, 1400.0];
const VELAR_BURST: [f32; 2] = [1500.0, 500.0];

// Both halves of the diphthong that `no` and `go` share.
const OH: SpeechSegment = vowel(115.0, [540.0, 1100.0, 2300.0]);
const OO: SpeechSegment = vowel(105.0, [450.0, 900.0, 2300.0]);

static YES: [SpeechSegment; 3] = [
    vowel(75.0, [280.0, 2150.0, 3000.0]),
    vowel(150.0, [530.0, 1840.0, 2480.0]),
    noise(150.0, ALVEOLAR, 0.35, HISS),
];
static NO: [SpeechSegment; 3] = [nasal(80.0, [270.0, 1340.0, 2470.0]), OH, OO];
static GO: [SpeechSegment; 4] = [
    closure(60.0, VELAR, 0.25),
    noise(20.0, VELAR, 0.45, VELAR_BURST),
    OH,
    OO,
];
static STOP: [SpeechSegment; 7] = [
    noise(120.0, ALVEOLAR, 0.35, HISS),
    closure(55.0, ALVEOLAR, 0.0),
    noise(12.0, ALVEOLAR, 0.5, ALVEOLAR_BURST),
    vowel(140.0, [730.0, 1090.0, 2440.0]),
    closure(75.0, LABIAL, 0.0),
    optional(noise(12.0, LABIAL, 0.35, LABIAL_BURST)),
    optional(breath(30.0, LABIAL)),
];
static UP: [SpeechSegment; 4] = [
    vowel(140.0, [640.0, 1190.0, 2390.0]),
    closure(80.0, LABIAL, 0.0),
    optional(noise(12.0, LABIAL, 0.35, LABIAL_BURST)),
    optional(breath(35.0, LABIAL)),
];
static DOWN: [SpeechSegment; 5] = [
    closure(45.0, ALVEOLAR, 0.25),
    noise(12.0, ALVEOLAR, 0.35, ALVEOLAR_BURST),
    vowel(120.0, [680.0, 1230.0, 2550.0]),
    vowel(90.0, [450.0, 960.0, 2350.0]),
    nasal(110.0, [270.0, 1340.0, 2470.0]),
];

/// The segments of a keyword in order.
pub(super) fn script(keyword: Keyword) -> &'static [SpeechSegment] {
    match keyword {
        Keyword::Yes => &YES,
        Keyword::No => &NO,
        Keyword::Go => &GO,
        Keyword::Stop => &STOP,
        Keyword::Up => &UP,
        Keyword::Down => &DOWN,
    }
}

/// Syllables of other people's talk: a consonant and a vowel that is no keyword's.
pub(super) static CHATTER: [[SpeechSegment; 2]; 6] = [
    [
        nasal(70.0, [270.0, 1000.0, 2200.0]),
        vowel(130.0, [270.0, 2290.0, 3010.0]),
    ],
    [
        closure(60.0, LABIAL, 0.25),
        vowel(120.0, [390.0, 1990.0, 2550.0]),
    ],
    [
        noise(90.0, ALVEOLAR, 0.3, HISS),
        vowel(150.0, [660.0, 1720.0, 2410.0]),
    ],
    [
        closure(50.0, ALVEOLAR, 0.2),
        vowel(140.0, [300.0, 870.0, 2240.0]),
    ],
    [
        noise(20.0, VELAR, 0.4, VELAR_BURST),
        vowel(160.0, [570.0, 840.0, 2410.0]),
    ],
    [
        breath(60.0, [490.0, 1350.0, 1690.0]),
        vowel(110.0, [490.0, 1350.0, 1690.0]),
    ],
];
