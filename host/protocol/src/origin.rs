//! Requests that a web page of another origin makes a browser send.
//!
//! A page may also point a name of its own at this server (DNS rebinding): then its origin is the
//! server's. So a page is believed only if the server was asked by its address, or as localhost.

use std::net::IpAddr;

use http::header::{CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue, ORIGIN};
use http::uri::Authority;

use crate::error::ProtocolError;
use crate::excerpt::excerpt;

/// How a browser describes the page that sends a request.
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Checks a request that changes the server. A browser sends requests of any page with the methods
/// and content types of a form, and says which page it was. Other programs send none of these
/// headers, and may leave out the content type.
///
/// # Errors
/// 403 for a page of another origin, or for a body that is declared as something else than JSON.
pub fn check_origin(headers: &HeaderMap, has_body: bool) -> Result<(), ProtocolError> {
    let host = headers.get(HOST).map(HeaderValue::as_bytes);
    for origin in headers.get_all(ORIGIN) {
        let why = if !is_same(origin.as_bytes(), host) {
            "is not the origin of this server; web pages of other origins may not change it"
        } else if !is_address(host) {
            "is a name, and any web page can point a name at this server; open the page with the \
             server's address, or use a program"
        } else {
            continue;
        };
        let origin = String::from_utf8_lossy(origin.as_bytes());
        return Err(ProtocolError::Forbidden {
            field: "Origin",
            reason: format!("{:?} {why}", excerpt(&origin)),
        });
    }
    let site = headers.get(FETCH_SITE).map(HeaderValue::as_bytes);
    if site.is_some_and(|site| site != b"same-origin" && site != b"none") {
        return Err(ProtocolError::Forbidden {
            field: "Sec-Fetch-Site",
            reason: "web pages of other origins may not change this server".to_owned(),
        });
    }
    let content_type = headers.get(CONTENT_TYPE).filter(|_| has_body);
    if content_type.is_some_and(|value| !is_json(value.as_bytes())) {
        return Err(ProtocolError::Forbidden {
            field: "Content-Type",
            reason: "must be application/json".to_owned(),
        });
    }
    Ok(())
}

/// `http://host:port` or `https://host:port` with the value of `Host`.
fn is_same(origin: &[u8], host: Option<&[u8]>) -> bool {
    let lower = origin.to_ascii_lowercase();
    let authority = lower
        .strip_prefix(b"http://")
        .or_else(|| lower.strip_prefix(b"https://"));
    match (authority, host) {
        (Some(authority), Some(host)) => authority.eq_ignore_ascii_case(host),
        _ => false,
    }
}

/// An IP address or localhost, with or without a port.
fn is_address(host: Option<&[u8]>) -> bool {
    let authority = host.and_then(|host| Authority::try_from(host).ok());
    authority.is_some_and(|authority| {
        let host = authority.host();
        let bare = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'));
        host.eq_ignore_ascii_case("localhost") || bare.unwrap_or(host).parse::<IpAddr>().is_ok()
    })
}

/// `application/json`, also with parameters.
fn is_json(value: &[u8]) -> bool {
    let end = value.iter().position(|byte| *byte == b';');
    let name = value[..end.unwrap_or(value.len())].trim_ascii();
    name.eq_ignore_ascii_case(b"application/json")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(headers: &[(HeaderName, &str)], has_body: bool) -> Result<(), String> {
        let headers = headers.iter().map(|(name, value)| {
            let value = HeaderValue::from_str(value).unwrap();
            (name.clone(), value)
        });
        check_origin(&headers.collect(), has_body).map_err(|error| error.to_string())
    }

    #[test]
    fn a_foreign_page_is_refused() {
        let host = (HOST, "localhost:8000");
        let from = |origin| check(&[host.clone(), (ORIGIN, origin)], false);
        assert_eq!(from("http://Localhost:8000"), Ok(()));
        assert_eq!(from("https://localhost:8000"), Ok(()));
        for foreign in ["http://evil.example", "http://localhost:9000", "null", ""] {
            let refused = from(foreign).unwrap_err();
            assert!(refused.starts_with("Origin: "), "{refused}");
        }
        assert!(check(&[(ORIGIN, "http://x")], false).is_err());
        let site = |site| check(&[host.clone(), (FETCH_SITE, site)], false);
        assert!(site("cross-site").is_err() && site("same-site").is_err());
        assert_eq!((site("none"), site("same-origin")), (Ok(()), Ok(())));
    }

    #[test]
    fn a_page_under_a_name_is_refused_because_names_are_rebound() {
        let page = |host| check(&[(HOST, host), (ORIGIN, &format!("http://{host}"))], false);
        for rebound in [
            "evil.example:8000",
            "127.0.0.1.evil.example",
            "localhost.evil",
        ] {
            let refused = page(rebound).unwrap_err();
            assert!(refused.contains("is a name"), "{refused}");
        }
        for own in ["127.0.0.1:8000", "[::1]:8000", "192.0.2.7", "localhost"] {
            assert_eq!(page(own), Ok(()), "{own}");
        }
        // A program sends no Origin.
        assert_eq!(check(&[(HOST, "switchyard:8000")], false), Ok(()));
    }

    #[test]
    fn a_body_is_json() {
        let typed = |value| check(&[(CONTENT_TYPE, value)], true);
        assert_eq!(typed("Application/JSON; charset=utf-8"), Ok(()));
        assert_eq!(
            typed("text/plain").unwrap_err(),
            "Content-Type: must be application/json"
        );
        assert!(typed("application/jsonp").is_err());
        assert_eq!(check(&[(CONTENT_TYPE, "text/plain")], false), Ok(()));
        // As Triton's client sends it.
        assert_eq!(check(&[], true), Ok(()));
    }
}
