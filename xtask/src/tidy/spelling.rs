//! Spelling of code, comments and pages: common misspellings, found with typos' dictionary.

use std::borrow::Cow;

use typos::tokens::{Identifier, Tokenizer, Word};
use typos::{Dictionary, Status, check_str};
use unicase::UniCase;

use super::source::Sources;

/// Words that are right here: crates, functions of NumPy, sounds, and misspellings that tests
/// make on purpose.
const KNOWN: [&str; 8] = [
    "flate", "arange", "formant", "formants", "polcy", "conifg", "policys", "numbe",
];

/// Shorter ones are names of variables.
const LETTERS_MIN: usize = 5;

struct Misspellings;

impl Dictionary for Misspellings {
    fn correct_ident<'s>(&'s self, _: Identifier<'_>) -> Option<Status<'s>> {
        None
    }

    fn correct_word<'s>(&'s self, word: Word<'_>) -> Option<Status<'s>> {
        let word = word.token();
        if word.len() < LETTERS_MIN || KNOWN.contains(&word.to_lowercase().as_str()) {
            return None;
        }
        let corrections = typos_dict::WORD.find(&UniCase::new(word))?;
        Some(Status::Corrections(
            corrections
                .iter()
                .map(|word| Cow::Borrowed(*word))
                .collect(),
        ))
    }
}

/// Every misspelling as `path:line: word: corrections`.
pub(super) fn breaches(sources: &Sources) -> Vec<String> {
    sources
        .all()
        .flat_map(|file| misspelt(&file.path, &file.text))
        .collect()
}

fn misspelt(path: &str, text: &str) -> Vec<String> {
    let tokenizer = Tokenizer::new();
    let found = check_str(text, &tokenizer, &Misspellings).map(|typo| {
        let line = 1 + text[..typo.byte_offset].matches('\n').count();
        let Status::Corrections(corrections) = &typo.corrections else {
            return format!("{path}:{line}: `{}`", typo.typo);
        };
        format!(
            "{path}:{line}: `{}`: {}",
            typo.typo,
            corrections.join(" or ")
        )
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelling_is_named_with_its_correction() {
        // Put together here, so that this file passes.
        let text = format!("fine\n// {}", concat!("rec", "ieve"));
        assert_eq!(
            misspelt("a.rs", &text),
            [concat!("a.rs:2: `rec", "ieve`: receive")]
        );
        assert!(misspelt("a.rs", "use flate2; let colour = serialise();").is_empty());
    }
}
