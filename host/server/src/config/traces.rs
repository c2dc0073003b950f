//! `[server] traces`: the collector and the share of requests.

use hyper::Uri;
use serde::{Deserialize, Serialize};

/// Where traces go, and how many.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "a table such as { endpoint = \"http://127.0.0.1:4318\" }")]
pub struct TracesConfig {
    /// The collector, which takes OTLP over HTTP as protobuf, at `/v1/traces` below this URL.
    ///
    /// string, `http://HOST:PORT`; required; example `"http://127.0.0.1:4318"`.
    pub endpoint: String,
    /// Share of requests without a `traceparent` that are traced. Those with a sampled one are traced too,
    /// up to 100 per second.
    ///
    /// Number, 0 to 1; default `0.01`; example `1.0`.
    #[serde(default = "default_share")]
    pub share: f64,
}

// === impl TracesConfig ===

impl TracesConfig {
    /// The obstacle to an export of traces, and the way out.
    pub(super) fn mistake(&self) -> Option<String> {
        if !cfg!(feature = "traces") {
            return Some("this program has no traces; build it with --features traces".to_owned());
        }
        let uri: Option<Uri> = self.endpoint.parse().ok();
        let is_url = uri.is_some_and(|uri| {
            uri.scheme_str() == Some("http") && uri.host().is_some() && uri.query().is_none()
        });
        (!is_url).then(|| {
            let endpoint = &self.endpoint;
            format!(
                "{endpoint:?}, must be http://HOST:PORT; for TLS send to a collector on this machine"
            )
        })
    }
}

fn default_share() -> f64 {
    0.01
}
