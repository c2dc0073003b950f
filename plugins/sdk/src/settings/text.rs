//! JSON strings.

/// A string, borrowed if it has no escapes.
#[derive(Debug, PartialEq)]
pub(super) enum Text<'de> {
    Borrowed(&'de str),
    Owned(String),
}

// === impl Text ===

impl Text<'_> {
    pub(super) fn as_str(&self) -> &str {
        match self {
            Self::Borrowed(text) => text,
            Self::Owned(text) => text,
        }
    }

    pub(super) fn into_owned(self) -> String {
        match self {
            Self::Borrowed(text) => text.to_owned(),
            Self::Owned(text) => text,
        }
    }
}

/// Reads the string whose first quote lies before `at`, and moves `at` past its last. None: it does not
/// end, or has a control character or an unknown escape.
#[inline(never)]
pub(super) fn read<'de>(json: &'de str, at: &mut usize) -> Option<Text<'de>> {
    let mut unescaped: Option<String> = None;
    let mut from = *at;
    loop {
        let byte = *json.as_bytes().get(*at)?;
        match byte {
            b'"' | b'\\' => {
                let piece = json.get(from..*at)?;
                *at += 1;
                if byte == b'"' {
                    return Some(match unescaped {
                        None => Text::Borrowed(piece),
                        Some(text) => Text::Owned(text + piece),
                    });
                }
                let text = unescaped.get_or_insert_default();
                text.push_str(piece);
                text.push(escape(json.as_bytes(), at)?);
                from = *at;
            }
            0..=0x1f => return None,
            _ => *at += 1,
        }
    }
}

fn escape(json: &[u8], at: &mut usize) -> Option<char> {
    let byte = *json.get(*at)?;
    *at += 1;
    Some(match byte {
        b'"' | b'\\' | b'/' => byte as char,
        b'b' => '\x08',
        b'f' => '\x0c',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'u' => return unicode(json, at),
        _ => return None,
    })
}

/// Four digits, or eight of a pair of surrogates.
fn unicode(json: &[u8], at: &mut usize) -> Option<char> {
    let high = hex(json, at)?;
    let code = match high {
        0xd800..=0xdbff => {
            let is_pair = json.get(*at..*at + 2) == Some(br"\u");
            *at += 2;
            let low = hex(json, at).filter(|low| is_pair && (0xdc00..=0xdfff).contains(low))?;
            0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00)
        }
        code => code,
    };
    char::from_u32(code)
}

fn hex(json: &[u8], at: &mut usize) -> Option<u32> {
    let mut code = 0;
    for digit in json.get(*at..*at + 4)? {
        code = code << 4 | (*digit as char).to_digit(16)?;
    }
    *at += 4;
    Some(code)
}
