//! Pages of documentation with a part between two marks that a command writes.

use std::io::ErrorKind;
use std::path::Path;

use super::draft::write_file;

const END: &str = "<!-- end -->";

/// The first mark of a part; it names the command that writes the part.
pub(super) fn begin(command: &str) -> String {
    format!("<!-- begin: written by `{command}`, do not edit -->")
}

/// Writes a section between the marks of a page and leaves the rest as it is. A new page begins with
/// `title`.
pub(super) fn write(page: &Path, title: &str, begin: &str, section: &str) -> Result<(), String> {
    let named = |error: std::io::Error| format!("{}: {error}", page.display());
    let old = match std::fs::read_to_string(page) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => format!("{title}\n{begin}\n{END}\n"),
        Err(error) => return Err(named(error)),
    };
    let new = replaced(&old, begin, section).ok_or_else(|| {
        format!(
            "{}: has no line `{begin}` followed by a line `{END}`",
            page.display()
        )
    })?;
    if let Some(folder) = page.parent() {
        std::fs::create_dir_all(folder).map_err(named)?;
    }
    write_file(page, new).map_err(named)
}

/// The page with the part between its marks replaced.
fn replaced(page: &str, begin: &str, section: &str) -> Option<String> {
    let (before, rest) = page.split_once(begin)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{begin}\n\n{section}\n{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_around_the_marks_stays() {
        let begin = begin("a command");
        let page = format!("# Mine\n\nBefore.\n\n{begin}\nold\n{END}\n\nAfter.\n");
        let once = replaced(&page, &begin, "new\n");
        let expected = format!("# Mine\n\nBefore.\n\n{begin}\n\nnew\n\n{END}\n\nAfter.\n");
        assert_eq!(once.as_deref(), Some(&*expected));
        let twice = once.and_then(|once| replaced(&once, &begin, "new\n"));
        assert_eq!(
            twice.as_deref(),
            Some(&*expected),
            "writing it again changes nothing"
        );
        assert_eq!(replaced("no marks", &begin, "new"), None);
        assert_eq!(replaced(&format!("{END}{begin}"), &begin, "new"), None);
    }
}
