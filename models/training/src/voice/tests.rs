#![allow(clippy::unwrap_used)]
use rand::SeedableRng;

use super::phonemes::SpeechSegment;
use super::sound::white;
use super::*;

fn rng(seed: u64) -> Pcg64 {
    Pcg64::seed_from_u64(seed)
}

/// A man with a plain voice.
fn plain_speaker() -> Speaker {
    Speaker {
        pitch_hz: 100.0,
        intonation: 0.0,
        jitter: 0.0,
        shimmer: 0.0,
        open_quotient: 0.6,
        breathiness: 0.02,
        tract: 1.0,
        slowness: 1.0,
        glide_ms: 50.0,
        accent: 0.0,
        releases: true,
    }
}

fn word(keyword: Keyword, speaker: &Speaker) -> Vec<f32> {
    let mut rng = rng(3);
    let track = SpeechTrack::draw(phonemes::script(keyword), speaker, &mut rng);
    synth::speak(&track, speaker, &mut rng)
}

/// Power of `samples` at one frequency.
fn power_at(samples: &[f32], hz: f32) -> f32 {
    let (mut re, mut im) = (0.0f32, 0.0f32);
    for (i, sample) in samples.iter().enumerate() {
        let (sine, cosine) = (std::f32::consts::TAU * hz * i as f32 / SAMPLE_RATE_HZ).sin_cos();
        re += sample * cosine;
        im += sample * sine;
    }
    (re * re + im * im) / samples.len() as f32
}

/// Power between two frequencies, sampled every 50 Hz.
fn band_power(samples: &[f32], from_hz: usize, to_hz: usize) -> f32 {
    let bins = (from_hz..to_hz).step_by(50);
    bins.map(|hz| power_at(samples, hz as f32)).sum()
}

#[test]
fn the_same_stream_gives_the_same_clip() {
    for keyword in Keyword::ALL {
        assert_eq!(clip(keyword, &mut rng(5)), clip(keyword, &mut rng(5)));
        assert_ne!(clip(keyword, &mut rng(5)), clip(keyword, &mut rng(6)));
    }
}

#[test]
fn clips_are_a_second_of_sound_in_range() {
    for seed in 0..60 {
        for keyword in Keyword::ALL {
            let clip = clip(keyword, &mut rng(seed));
            assert_eq!(clip.len(), SAMPLES);
            assert!(clip.iter().all(|sample| (-1.0..=1.0).contains(sample)));
            let level_db = 20.0 * rms(&clip).log10();
            assert!((-37.0..=-17.0).contains(&level_db), "{level_db} dB");
            let mean = clip.iter().sum::<f32>() / SAMPLES as f32;
            assert!(mean.abs() < rms(&clip), "mostly a constant");
        }
    }
}

#[test]
fn words_last_as_long_as_words_do() {
    for keyword in Keyword::ALL {
        let script = phonemes::script(keyword);
        let planned_ms: f32 = script.iter().map(|segment| segment.duration_ms).sum();
        for slowness in [0.7, 1.0, 1.3] {
            let speaker = Speaker {
                slowness,
                ..plain_speaker()
            };
            let ms = word(keyword, &speaker).len() as f32 / SAMPLE_RATE_HZ * 1000.0;
            let ratio = ms / (planned_ms * slowness);
            assert!((0.75..1.3).contains(&ratio), "{keyword:?}: {ms} ms");
            assert!((120.0..900.0).contains(&ms), "{keyword:?}: {ms} ms");
        }
    }
}

#[test]
fn a_vowel_has_its_formants() {
    // The second segment of `yes`, held for half a second.
    let vowel = SpeechSegment {
        duration_ms: 500.0,
        ..phonemes::script(Keyword::Yes)[1]
    };
    let speaker = plain_speaker();
    let mut rng = rng(1);
    let track = SpeechTrack::draw(&[vowel], &speaker, &mut rng);
    let samples = synth::speak(&track, &speaker, &mut rng);
    let middle = &samples[samples.len() / 2 - 1600..samples.len() / 2 + 1600];
    let ranges = [200..1000, 1300..2200, 2200..2900];
    for (target_hz, range) in vowel.formants_hz.into_iter().zip(ranges) {
        let strongest = range
            .step_by(100)
            .max_by(|&a, &b| power_at(middle, a as f32).total_cmp(&power_at(middle, b as f32)))
            .unwrap();
        assert!(
            (strongest as f32 - target_hz).abs() <= 100.0,
            "harmonic {strongest} Hz for a formant at {target_hz} Hz"
        );
    }
}

#[test]
fn hiss_is_high_and_voice_is_low() {
    let yes = word(Keyword::Yes, &plain_speaker());
    let (voice, hiss) = (&yes[2400..4000], &yes[yes.len() - 1600..yes.len() - 400]);
    assert!(band_power(voice, 100, 3000) > 20.0 * band_power(voice, 4000, 7000));
    assert!(band_power(hiss, 4000, 7000) > 20.0 * band_power(hiss, 100, 3000));
    // As in speech, the vowel is louder, but not by more than 25 dB.
    let ratio_db = 20.0 * (rms(voice) / rms(hiss)).log10();
    assert!((3.0..25.0).contains(&ratio_db), "{ratio_db} dB");
}

#[test]
fn a_stop_is_silent_before_its_burst() {
    // `stop`: 120 ms of hiss, then 55 ms of closure; timing varies by a fifth.
    let stop = word(Keyword::Stop, &plain_speaker());
    let quietest = stop[1600..3600]
        .chunks(160)
        .map(rms)
        .min_by(f32::total_cmp)
        .unwrap();
    assert!(quietest < 0.02, "{quietest} of a mean of 1");
}

#[test]
fn energy_lies_where_the_word_is() {
    // Despite noise and reflections, the loud half-second of most clips is the word.
    let mut found = 0;
    for seed in 0..40 {
        let loud = |samples: &[f32]| samples.chunks(800).map(rms).fold(0.0, f32::max);
        let clip = clip(Keyword::Go, &mut rng(seed));
        let frames: Vec<f32> = clip.chunks(800).map(rms).collect();
        let mut sorted = frames.clone();
        sorted.sort_by(f32::total_cmp);
        if loud(&clip) > 2.0 * sorted[frames.len() / 4] {
            found += 1;
        }
    }
    assert!((20..40).contains(&found), "{found} of 40 words stand out");
}

#[test]
fn a_room_adds_weaker_copies_and_noise_is_not_silence() {
    let mut dry = vec![0.0; SAMPLES];
    dry[100] = 1.0;
    for seed in 0..20 {
        let wet = room::reflect(&dry, &mut rng(seed));
        assert_eq!(wet[100], 1.0);
        let copies = || wet.iter().skip(101).filter(|sample| **sample != 0.0);
        assert!((1..=6).contains(&copies().count()));
        assert!(copies().all(|sample| sample.abs() < 0.61));
        let mut noisy = dry.clone();
        noise::add(&mut noisy, &mut rng(seed));
        let changed = noisy.iter().zip(&dry).filter(|(a, b)| a != b).count();
        assert!(changed > SAMPLES / 2, "seed {seed}: {changed}");
    }
}

#[test]
fn white_noise_has_unit_variance_and_no_mean() {
    let mut rng = rng(2);
    let noise: Vec<f32> = (0..40_000).map(|_| white(&mut rng)).collect();
    assert!((rms(&noise) - 1.0).abs() < 0.01);
    assert!((noise.iter().sum::<f32>() / 40_000.0).abs() < 0.02);
}
