//! The version of glibc that a program needs.

/// X of the newest `GLIBC_2.X` among a program's symbol versions.
pub(crate) fn newest_glibc(program: &[u8]) -> Option<u32> {
    const MARK: &[u8] = b"GLIBC_2.";
    let starts = program.windows(MARK.len()).enumerate();
    let starts = starts.filter(|(_, bytes)| *bytes == MARK);
    let minors = starts.filter_map(|(at, _)| {
        let rest = &program[at + MARK.len()..];
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        std::str::from_utf8(&rest[..digits])
            .ok()?
            .parse::<u32>()
            .ok()
    });
    minors.max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_of_glibc_is_found() {
        let program = b"\0GLIBC_2.2.5\0GLIBC_2.34\0GLIBC_2.9\0GLIBC_PRIVATE\0";
        assert_eq!(newest_glibc(program), Some(34));
        assert_eq!(newest_glibc(b"static"), None);
    }
}
