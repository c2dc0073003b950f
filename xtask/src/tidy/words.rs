//! Plain words: how often comments and pages use words that say nothing at first sight.
//!
//! The limits are densities of the projects that this one learns from, counted the same way:
//! spin for `what`, quinn and linkerd2-proxy for the others.

use std::fmt;

use super::source::{SourceFile, Sources};

/// Most words that README, book and READMEs may have together, as `wc -w` counts, without the tables that
/// commands write.
const PAGES_MAX: usize = 22_230;

/// The marks around tables that commands write: settings, and results of benches.
const TABLES: [(&str, &str); 3] = [
    ("<!-- settings:", "<!-- /settings"),
    ("<!-- policy-settings:", "<!-- /policy-settings"),
    ("<!-- begin:", "<!-- end:"),
];

/// Words with a noun or a name that reads better, and how many may stand in 10,000 words.
const LISTED: [Listed; 4] = [
    Listed {
        label: "what",
        words: &["what", "whatever"],
        per_10_000_max: 5.3,
    },
    Listed {
        label: "nobody, somebody, whoever",
        words: &[
            "nobody",
            "somebody",
            "whoever",
            "anybody",
            "anyone",
            "everybody",
            "someone",
        ],
        per_10_000_max: 0.4,
    },
    Listed {
        label: "beside",
        words: &["beside", "besides"],
        per_10_000_max: 0.0,
    },
    Listed {
        label: "so many, in the place of, said to be",
        words: &["so many", "in the place of", "said to be"],
        per_10_000_max: 0.0,
    },
];

struct Listed {
    label: &'static str,
    words: &'static [&'static str],
    per_10_000_max: f64,
}

/// Words of comments and of pages, and the listed ones among them.
pub(super) struct Counted {
    comments: Density,
    pages: Density,
    /// Words of all pages as `wc -w` counts them.
    pages_words: usize,
}

/// The listed words in one kind of text.
#[derive(Default)]
struct Density {
    words: usize,
    listed: [usize; LISTED.len()],
    /// Lines with a listed word, as `path:line`, by position in the list.
    at: [Vec<String>; LISTED.len()],
}

/// Counts comments of Rust and WIT, and Markdown without its code blocks.
pub(super) fn count(sources: &Sources) -> Counted {
    let mut counted = Counted {
        comments: Density::default(),
        pages: Density::default(),
        pages_words: 0,
    };
    for file in sources.all() {
        if file.is("md") {
            counted.pages_words += handwritten(&file.text).map(words).sum::<usize>();
            counted.pages.add(file, prose(&file.text));
        } else if file.is("rs") || file.is("wit") {
            counted.comments.add(file, comments(&file.text));
        }
    }
    counted
}

/// Lines of a page outside of its tables.
fn handwritten(text: &str) -> impl Iterator<Item = &str> {
    let mut in_table = false;
    text.lines().filter(move |line| {
        in_table |= TABLES.iter().any(|(begin, _)| line.starts_with(begin));
        let is_own = !in_table;
        in_table &= !TABLES.iter().any(|(_, end)| line.starts_with(end));
        is_own
    })
}

fn words(line: &str) -> usize {
    line.split_whitespace().count()
}

/// Lines of a page outside of code blocks, by number.
fn prose(text: &str) -> Vec<(usize, &str)> {
    let mut in_code = false;
    let lines = (1..).zip(text.lines()).filter(|(_, line)| {
        let fence = line.trim_start().starts_with("```");
        in_code ^= fence;
        !in_code && !fence
    });
    lines.collect()
}

/// Comments of a file of Rust, by line.
fn comments(text: &str) -> Vec<(usize, &str)> {
    (1..)
        .zip(text.lines())
        .filter_map(|(number, line)| Some((number, comment_of(line)?)))
        .collect()
}

/// The comment in a line: the whole line, or its end behind code.
fn comment_of(line: &str) -> Option<&str> {
    let trimmed = line.trim_start();
    if let Some(comment) = trimmed.strip_prefix("//") {
        return Some(comment.trim_start_matches(['/', '!']));
    }
    // Behind an odd number of quotes it is inside of a string.
    line.match_indices(" // ").find_map(|(at, _)| {
        let (code, comment) = line.split_at(at);
        let quotes = code.matches('"').count() - code.matches("\\\"").count();
        quotes.is_multiple_of(2).then(|| &comment[4..])
    })
}

// === impl Density ===

impl Density {
    fn add(&mut self, file: &SourceFile, lines: Vec<(usize, &str)>) {
        // A phrase may be broken over two lines.
        let mut last = "";
        for (number, line) in lines {
            let words = words_of(line);
            self.words += words.len();
            for (i, listed) in LISTED.iter().enumerate() {
                let found = listed.count(last, &words);
                self.listed[i] += found;
                if found > 0 {
                    self.at[i].push(format!("{}:{number}", file.path));
                }
            }
            last = line;
        }
    }

    fn per_10_000(&self, listed: usize) -> f64 {
        1e4 * self.listed[listed] as f64 / self.words.max(1) as f64
    }

    fn breaches(&self, kind: &str) -> Vec<String> {
        let over = LISTED
            .iter()
            .enumerate()
            .filter(|(i, listed)| self.per_10_000(*i) > listed.per_10_000_max);
        over.map(|(i, listed)| {
            let places = self.at[i].iter().take(20).map(String::as_str);
            format!(
                "{kind}: {:.1} of `{}` in 10,000 words, at most {:.1}; a noun reads better: {}",
                self.per_10_000(i),
                listed.label,
                listed.per_10_000_max,
                places.collect::<Vec<_>>().join(", ")
            )
        })
        .collect()
    }
}

/// Words in lower case; code in backticks is no prose.
fn words_of(line: &str) -> Vec<String> {
    let prose: String = line.split('`').step_by(2).collect::<Vec<_>>().join(" ");
    prose
        .split(|c: char| !c.is_alphanumeric() && !matches!(c, '\'' | '-'))
        .filter(|word| word.chars().any(char::is_alphabetic))
        .map(str::to_lowercase)
        .collect()
}

// === impl Listed ===

impl Listed {
    /// Occurrences that end in this line; `last` is the line before.
    fn count(&self, last: &str, words: &[String]) -> usize {
        let count = |phrase: &&str| {
            let phrase: Vec<&str> = phrase.split(' ').collect();
            let before = words_of(last);
            let carried = before.len().min(phrase.len() - 1);
            let text: Vec<&str> = before[before.len() - carried..]
                .iter()
                .chain(words)
                .map(String::as_str)
                .collect();
            text.windows(phrase.len())
                .filter(|found| *found == phrase)
                .count()
        };
        self.words.iter().map(count).sum()
    }
}

// === impl Counted ===

impl Counted {
    pub(super) fn breaches(&self) -> Vec<String> {
        let mut found = self.comments.breaches("comments");
        found.extend(self.pages.breaches("pages"));
        if self.pages_words > PAGES_MAX {
            found.push(format!(
                "pages: {} words, at most {PAGES_MAX}; shorten another page",
                self.pages_words
            ));
        }
        found
    }
}

impl fmt::Display for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "pages: {} words, at most {PAGES_MAX}", self.pages_words)?;
        writeln!(
            f,
            "per 10,000 words: {:>40} {:>9} {:>9}",
            "comments", "pages", "at most"
        )?;
        for (i, listed) in LISTED.iter().enumerate() {
            writeln!(
                f,
                "  {:<46} {:>9.1} {:>9.1} {:>9.1}",
                listed.label,
                self.comments.per_10_000(i),
                self.pages.per_10_000(i),
                listed.per_10_000_max
            )?;
        }
        write!(
            f,
            "  {:<46} {:>9} {:>9}",
            "words", self.comments.words, self.pages.words
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn density(path: &str, text: &str) -> Density {
        let file = SourceFile {
            path: path.to_owned(),
            text: text.to_owned(),
        };
        let mut density = Density::default();
        match file.is("md") {
            true => density.add(&file, prose(text)),
            false => density.add(&file, comments(text)),
        }
        density
    }

    #[test]
    fn comments_count_and_code_does_not() {
        let text =
            "//! What it does.\nlet what = \"a // what\"; // what else\n/// `what`, beside it";
        let found = density("a.rs", text);
        assert_eq!(found.listed, [2, 0, 1, 0]);
        assert_eq!(found.at[0], ["a.rs:1", "a.rs:2"]);
    }

    #[test]
    fn tables_of_settings_do_not_lengthen_a_page() {
        let page = "one two\n<!-- settings: a.rs A -->\n| three |\n<!-- /settings -->\nfour";
        assert_eq!(handwritten(page).collect::<Vec<_>>(), ["one two", "four"]);
    }

    #[test]
    fn phrases_are_found_over_a_line_end() {
        let found = density("a.md", "It runs so\nmany times in the place\nof another.");
        assert_eq!(found.listed[3], 2);
    }

    #[test]
    fn code_blocks_of_pages_do_not_count() {
        let found = density("a.md", "one\n```\nwhat\n```\nwhat");
        assert_eq!((found.words, found.listed[0]), (2, 1));
        assert_eq!(found.at[0], ["a.md:5"]);
    }

    #[test]
    fn a_breach_names_the_places() {
        let found = density("a.md", "what");
        let breach = found.breaches("pages").remove(0);
        assert!(
            breach.contains("10000.0 of `what`") && breach.ends_with("a.md:1"),
            "{breach}"
        );
    }
}
