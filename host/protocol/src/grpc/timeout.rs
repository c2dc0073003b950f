//! The header `grpc-timeout`: how long the client waits for the end of its call.

use std::time::Duration;

use http::header::{HeaderMap, HeaderName};

use crate::error::{InferError, ProtocolError};
use crate::excerpt::excerpt;

/// The header.
pub static TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");

/// Most digits of its number.
const DIGITS_MAX: usize = 8;

/// The time that a client gives a call, from its headers on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientTimeout(pub Option<Duration>);

impl ClientTimeout {
    /// Reads the header: up to eight digits and a unit of `H`, `M`, `S`, `m`, `u` or `n`.
    ///
    /// # Errors
    /// The header has another form.
    pub fn of(headers: &HeaderMap) -> Result<Self, ProtocolError> {
        let Some(value) = headers.get(&TIMEOUT) else {
            return Ok(Self(None));
        };
        let parsed = parse(value.as_bytes()).ok_or_else(|| {
            let found = String::from_utf8_lossy(value.as_bytes());
            let reason = format!(
                "expected up to {DIGITS_MAX} digits and a unit of H, M, S, m, u or n, got {:?}",
                excerpt(&found)
            );
            ProtocolError::malformed(TIMEOUT.as_str(), reason)
        })?;
        Ok(Self(Some(parsed)))
    }
}

impl ClientTimeout {
    /// The timeout of a call from now on, in microseconds: the smaller one of the client's time and its
    /// parameter `timeout`. A client may wait for longer than the server lets it.
    ///
    /// # Errors
    /// The client's time has passed.
    pub fn bound(
        self,
        elapsed: Duration,
        timeout_us: Option<u64>,
        max_us: u64,
    ) -> Result<Option<u64>, InferError> {
        let Some(whole) = self.0 else {
            return Ok(timeout_us);
        };
        let left = whole.saturating_sub(elapsed).as_micros();
        if left == 0 {
            let waited_us = elapsed.as_micros() as u64;
            return Err(InferError::DeadlineDropped { waited_us });
        }
        let left = u64::try_from(left).unwrap_or(u64::MAX).min(max_us);
        Ok(Some(timeout_us.map_or(left, |timeout| timeout.min(left))))
    }
}

fn parse(value: &[u8]) -> Option<Duration> {
    let (unit, digits) = value.split_last()?;
    let is_number =
        (1..=DIGITS_MAX).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit);
    let number: u64 = str::from_utf8(digits)
        .ok()
        .filter(|_| is_number)?
        .parse()
        .ok()?;
    Some(match unit {
        b'H' => Duration::from_secs(number * 3_600),
        b'M' => Duration::from_secs(number * 60),
        b'S' => Duration::from_secs(number),
        b'm' => Duration::from_millis(number),
        b'u' => Duration::from_micros(number),
        b'n' => Duration::from_nanos(number),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smaller_of_two_timeouts_holds() {
        let client = ClientTimeout(Some(Duration::from_millis(100)));
        let bound = |elapsed_ms, timeout_us| {
            client.bound(Duration::from_millis(elapsed_ms), timeout_us, 90_000)
        };
        assert_eq!(bound(30, None), Ok(Some(70_000)));
        assert_eq!(bound(30, Some(5_000)), Ok(Some(5_000)));
        assert_eq!(bound(30, Some(80_000)), Ok(Some(70_000)));
        assert_eq!(bound(0, None), Ok(Some(90_000)), "at most the server's");
        let waited_us = 100_000;
        assert_eq!(
            bound(100, None),
            Err(InferError::DeadlineDropped { waited_us })
        );
        let none = ClientTimeout(None).bound(Duration::from_secs(9), Some(3), 90_000);
        assert_eq!(none, Ok(Some(3)));
    }

    #[test]
    fn every_unit_is_read() {
        for (text, expected) in [
            ("2H", Some(Duration::from_secs(7_200))),
            ("3M", Some(Duration::from_secs(180))),
            ("4S", Some(Duration::from_secs(4))),
            ("100m", Some(Duration::from_millis(100))),
            ("99999999u", Some(Duration::from_micros(99_999_999))),
            ("0n", Some(Duration::ZERO)),
            ("", None),
            ("m", None),
            ("1", None),
            ("-1m", None),
            ("+1m", None),
            ("1.5S", None),
            ("123456789n", None),
        ] {
            assert_eq!(parse(text.as_bytes()), expected, "{text:?}");
        }
        let mut headers = HeaderMap::new();
        assert_eq!(ClientTimeout::of(&headers), Ok(ClientTimeout(None)));
        headers.insert(&TIMEOUT, "soon".parse().unwrap());
        let error = ClientTimeout::of(&headers).unwrap_err().to_string();
        assert!(
            error.starts_with("grpc-timeout: expected up to 8 digits"),
            "{error}"
        );
    }
}
