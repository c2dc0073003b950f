//! The messages of `policy check` for common mistakes: the window, the field, the change that
//! helps.

use std::fs;
use std::path::Path;

use insta::assert_snapshot;

use super::binary::{Ran, guest, root};
use super::policy::{PATIENT, check, redacted};

/// The mistakes of `tests/guests/mistakes`, each with words that its advice must have.
const MISTAKES: [(&str, &str); 25] = [
    ("answers-without-evidence", "`evidence.index`"),
    ("batch-too-large", "`max-batch`"),
    ("counts-workers-from-one", "counted from 0"),
    ("fills-one-queue", "`queue-max`"),
    ("first-variant-for-all", "by the request's own app"),
    ("forgets-requests", "`Events::WORKER_IDLE`"),
    ("grows", "reuse buffers"),
    ("hides-state", "returns nothing"),
    ("indexes-empty-window", "there is no first request"),
    ("keeps-its-plan", "decide anew"),
    ("keeps-the-first-catalog", "sized for the first catalog"),
    ("logs-every-request", "not for each request"),
    ("loops", "bound every loop"),
    ("members-without-dispatch", "must add up"),
    ("needs-a-setting", "needs a default"),
    ("plans-a-request-twice", "into one dispatch"),
    ("plans-an-unknown-request", "ids and not positions"),
    ("refuses-its-settings", "NAME.toml"),
    ("refuses-its-state", "`restore` must accept"),
    ("restarts-half-run", "`stages-run`"),
    ("saves-half-its-state", "`save` omits state"),
    ("subtracts-times", "`saturating_sub`"),
    ("unknown-exit", "counted from 0"),
    ("unknown-variant", "over all apps"),
    ("weights-are-shares", "sum to 1"),
];

fn told(mistake: Option<&str>, more: &str) -> Ran {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mistakes.wasm");
    fs::copy(guest("mistakes"), &file).unwrap();
    if let Some(mistake) = mistake {
        let settings = format!("mistake = \"{mistake}\"\n{more}");
        fs::write(folder.path().join("mistakes.toml"), settings).unwrap();
    }
    check(&file, &PATIENT)
}

/// From the notes and the verdict on, as people read it.
fn verdict(ran: &Ran) -> String {
    let from = ["note: ", "fails:", "passes"];
    let lines = ran.stdout.lines();
    let mut lines = lines.skip_while(|line| !from.iter().any(|word| line.starts_with(word)));
    let text: Vec<&str> = lines.by_ref().collect();
    redacted(&text.join("\n"))
}

#[test]
fn without_a_mistake_it_passes() {
    let ran = told(None, "");
    assert_eq!(ran.code, Some(0), "{}", ran.stdout);
    assert_eq!(verdict(&ran), "passes");
}

#[test]
fn every_mistake_gets_advice() {
    let mut all = String::new();
    for (mistake, words) in MISTAKES {
        let more = match mistake {
            "refuses-its-settings" => "tau = 4\n",
            _ => "",
        };
        let ran = told(Some(mistake), more);
        // Memory of its own is allowed, and may not be meant.
        let is_allowed = mistake == "hides-state";
        let expected = if is_allowed { Some(0) } else { Some(1) };
        assert_eq!(ran.code, expected, "{mistake}: {}", ran.stdout);
        let said = verdict(&ran);
        assert!(said.contains(words), "{mistake}: {said}");
        all += &format!("{mistake}\n{said}\n\n");
    }
    assert_snapshot!("mistakes", all);
}

#[test]
fn the_book_has_every_mistake() {
    let page = fs::read_to_string(root().join("docs/mistakes.md")).unwrap();
    for (mistake, _) in MISTAKES {
        assert!(page.contains(&format!("\n| `{mistake}`: ")), "{mistake}");
    }
    assert_eq!(
        page.matches("\n| `").count(),
        MISTAKES.len(),
        "rows of mistakes that nobody makes"
    );
}

#[test]
fn an_unknown_import_is_refused_with_advice() {
    let ran = check(Path::new(&guest("imports-other")), &PATIENT);
    assert_eq!(ran.code, Some(1), "{}", ran.stdout);
    assert_snapshot!("imports", verdict(&ran));
}
