//! The header `traceparent` of W3C Trace Context, in HTTP and as metadata of gRPC.

use http::HeaderMap;

/// The span of the client that a request belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceParent {
    /// Never 0.
    pub trace_id: u128,
    /// The client's span, never 0.
    pub span_id: u64,
    /// The client traces it.
    pub sampled: bool,
}

// === impl TraceParent ===

impl TraceParent {
    /// The header of a request. One that is missing or wrong starts a new trace, as the standard says.
    pub fn of(headers: &HeaderMap) -> Option<Self> {
        Self::parse(headers.get("traceparent")?.to_str().ok()?)
    }

    /// Parses `VERSION-TRACE-SPAN-FLAGS`. Versions after `00` may have more fields.
    fn parse(text: &str) -> Option<Self> {
        let mut fields = text.trim().split('-');
        let version = hex(fields.next()?, 2)?;
        let trace_id = hex(fields.next()?, 32)?;
        let span_id = u64::try_from(hex(fields.next()?, 16)?).ok()?;
        let flags = hex(fields.next()?, 2)?;
        let is_known = version != 0xff && (version != 0 || fields.next().is_none());
        (is_known && trace_id != 0 && span_id != 0).then_some(Self {
            trace_id,
            span_id,
            sampled: flags & 1 == 1,
        })
    }
}

fn hex(field: &str, digits: usize) -> Option<u128> {
    let is_digit = |c: char| matches!(c, '0'..='9' | 'a'..='f');
    let fits = field.len() == digits && field.chars().all(is_digit);
    u128::from_str_radix(field, 16).ok().filter(|_| fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: u128 = 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736;

    fn parse(text: &str) -> Option<(u128, u64, bool)> {
        let parsed = TraceParent::parse(text)?;
        Some((parsed.trace_id, parsed.span_id, parsed.sampled))
    }

    #[test]
    fn the_example_of_the_standard_is_read() {
        let fields = "4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7";
        let span = 0x00f0_67aa_0ba9_02b7;
        let read = |version, flags| parse(&format!("{version}-{fields}-{flags}"));
        assert_eq!(read("00", "01"), Some((TRACE, span, true)));
        assert_eq!(read("00", "00"), Some((TRACE, span, false)));
        assert_eq!(read("01", "03-more"), Some((TRACE, span, true)));
        for (version, flags) in [("ff", "01"), ("00", "01-more"), ("0", "01"), ("00", "1")] {
            assert_eq!(read(version, flags), None, "{version} {flags}");
        }
    }

    #[test]
    fn wrong_ids_are_no_parent() {
        let zeros = "0".repeat(32);
        for wrong in [
            "",
            "00",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            &format!("00-{zeros}-00f067aa0ba902b7-01"),
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-+bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        ] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
