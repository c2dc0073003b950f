//! Requests that a web page sends are refused.
//!
//! A page may point a name of its own at 127.0.0.1 (DNS rebinding): then the browser takes this port
//! for the page's server, and the page reads the answers. The `Host` of such a request is the page's
//! name. A page of another port has its own address in `Origin`.
//!
//! No page reaches a Unix socket, but `ssh -L` forwards a port of another machine to it, which pages reach.
//! Its clients ask for `localhost` too.

use std::net::IpAddr;
use std::str::FromStr;

use axum::http::header::{HOST, ORIGIN};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri};
use thiserror::Error;

/// Why a request is refused.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub(super) enum Refused {
    /// HTTP/1.1 requires the header.
    #[error("the header Host is missing")]
    NoHost,
    /// The request is for another host.
    #[error(
        "Host `{0}` is not this machine: ask for localhost, 127.0.0.1, [::1], the address of server.admin \
         or a name in server.admin_hosts"
    )]
    Host(String),
    /// A page of another origin sent the request.
    #[error("Origin `{0}` is not this port: web pages of other origins get no answer")]
    Origin(String),
}

// === impl Refused ===

impl Refused {
    /// The status of the answer.
    pub(super) fn status(&self) -> StatusCode {
        match self {
            Self::NoHost => StatusCode::BAD_REQUEST,
            Self::Host(_) => StatusCode::MISDIRECTED_REQUEST,
            Self::Origin(_) => StatusCode::FORBIDDEN,
        }
    }
}

/// The names of the port, next to those of this machine.
#[derive(Clone, Debug, Default)]
pub(super) struct PortNames {
    /// Names that a request may ask for.
    pub(super) hosts: Vec<String>,
    /// Whether it serves TLS.
    pub(super) is_tls: bool,
}

/// The address at which a connection reached the port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReachedAt(pub(super) IpAddr);

// === impl PortNames ===

impl PortNames {
    fn has(&self, host: &str) -> bool {
        self.hosts
            .iter()
            .any(|name| name.eq_ignore_ascii_case(host))
    }
}

/// Refuses a request unless it is for this machine, and not from a page of another origin. `own` is
/// the address at which its connection arrived.
pub(super) fn check(
    uri: &Uri,
    headers: &HeaderMap,
    own: Option<ReachedAt>,
    names: &PortNames,
) -> Result<(), Refused> {
    let is_own = |host: &str| is_local(host, own) || names.has(host);
    let host = headers.get(HOST).ok_or(Refused::NoHost)?;
    let authority = authority(host).filter(|authority| is_own(authority.host()));
    let authority = authority.ok_or_else(|| Refused::Host(shown(host)))?;
    // The target may name a host as well: `GET http://name/metrics`.
    if let Some(target) = uri.host()
        && !is_own(target)
    {
        return Err(Refused::Host(target.to_owned()));
    }
    match headers.get(ORIGIN) {
        Some(origin) if !is_same(origin, &authority, names.is_tls) => {
            Err(Refused::Origin(shown(origin)))
        }
        _ => Ok(()),
    }
}

fn authority(host: &HeaderValue) -> Option<Authority> {
    let authority = Authority::from_str(host.to_str().ok()?).ok()?;
    // An authority may hold a user's name, a host may not.
    (!authority.as_str().contains('@')).then_some(authority)
}

fn is_local(host: &str, own: Option<ReachedAt>) -> bool {
    let bare = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    match bare.unwrap_or(host).parse::<IpAddr>() {
        Ok(address) => address.to_canonical().is_loopback() || own == Some(ReachedAt(address)),
        Err(_) => host.eq_ignore_ascii_case("localhost"),
    }
}

/// Whether an origin is the port that was asked.
fn is_same(origin: &HeaderValue, asked: &Authority, is_tls: bool) -> bool {
    let scheme = if is_tls { "https://" } else { "http://" };
    let origin = origin.to_str().ok();
    let origin = origin.and_then(|origin| origin.strip_prefix(scheme));
    origin.is_some_and(|origin| origin.eq_ignore_ascii_case(asked.as_str()))
}

fn shown(value: &HeaderValue) -> String {
    String::from_utf8_lossy(value.as_bytes()).into_owned()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn checked(host: &str, origin: Option<&str>) -> Result<(), StatusCode> {
        checked_as(&PortNames::default(), host, origin)
    }

    fn checked_as(names: &PortNames, host: &str, origin: Option<&str>) -> Result<(), StatusCode> {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, host.parse().unwrap());
        if let Some(origin) = origin {
            headers.insert(ORIGIN, origin.parse().unwrap());
        }
        let own = Some(ReachedAt("10.0.0.7".parse().unwrap()));
        let target = "/metrics".parse().unwrap();
        check(&target, &headers, own, names).map_err(|refused| refused.status())
    }

    #[test]
    fn only_this_machine_is_answered() {
        let local = "localhost LOCALHOST:8002 127.0.0.1 127.0.0.1:8002 127.9.9.9 [::1] [::1]:8002 \
                     [::ffff:127.0.0.1] 10.0.0.7 10.0.0.7:8002";
        for host in local.split(' ') {
            assert_eq!(checked(host, None), Ok(()), "{host}");
        }
        let foreign = "evil.example evil.example:8002 localhost.evil.example 127.0.0.1.evil.example \
                       10.0.0.8 [::2] evil@localhost 0.0.0.0 2130706433";
        for host in foreign.split(' ') {
            let refused = Err(StatusCode::MISDIRECTED_REQUEST);
            assert_eq!(checked(host, None), refused, "{host}");
        }
        let target = "/metrics".parse().unwrap();
        let without = check(&target, &HeaderMap::new(), None, &PortNames::default());
        assert_eq!(without, Err(Refused::NoHost));
    }

    #[test]
    fn a_target_with_another_host_is_refused() {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, "localhost".parse().unwrap());
        let names = PortNames::default();
        let target = |uri: &str| check(&uri.parse().unwrap(), &headers, None, &names);
        assert_eq!(target("http://127.0.0.1:8002/metrics"), Ok(()));
        let refused = Err(Refused::Host("evil.example".to_owned()));
        assert_eq!(target("http://evil.example/metrics"), refused);
    }

    #[test]
    fn a_configured_name_is_answered_and_its_own_pages() {
        let names = PortNames {
            hosts: vec!["admin.example.org".to_owned()],
            is_tls: true,
        };
        let host = "admin.example.org:8002";
        for origin in [None, Some("https://admin.example.org:8002")] {
            assert_eq!(checked_as(&names, host, origin), Ok(()));
        }
        let plain = checked_as(&names, host, Some("http://admin.example.org:8002"));
        assert_eq!(plain, Err(StatusCode::FORBIDDEN));
        let other = checked_as(&names, "example.org", None);
        assert_eq!(other, Err(StatusCode::MISDIRECTED_REQUEST));
    }

    #[test]
    fn pages_of_other_origins_are_refused() {
        let host = "localhost:8002";
        assert_eq!(checked(host, Some("http://localhost:8002")), Ok(()));
        for origin in [
            "null",
            "http://localhost:8000",
            "https://localhost:8002",
            "http://evil.example",
            "http://localhost:8002.evil.example",
        ] {
            let refused = Err(StatusCode::FORBIDDEN);
            assert_eq!(checked(host, Some(origin)), refused, "{origin}");
        }
    }
}
