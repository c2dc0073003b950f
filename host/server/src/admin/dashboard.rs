//! The page for browsers: one document with its style and script, which asks for its numbers every second.
//!
//! The page has no data and no outside assets. Its policy allows this style, this script and requests to this
//! port, and nothing else.

use std::sync::LazyLock;

use axum::http::HeaderName;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
    X_FRAME_OPTIONS,
};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::status::ServerStatus;
use crate::driver::RecentReport;

const DOCUMENT: &str = include_str!("dashboard/page.html");
const STYLE: &str = include_str!("dashboard/style.css");

/// Parts of one script, in order: later ones use earlier ones.
const SCRIPT: &str = concat!(
    include_str!("dashboard/elements.js"),
    include_str!("dashboard/server.js"),
    include_str!("dashboard/shares.js"),
    include_str!("dashboard/apps.js"),
    include_str!("dashboard/workers.js"),
    include_str!("dashboard/models.js"),
    include_str!("dashboard/orders.js"),
    include_str!("dashboard/findings.js"),
    include_str!("dashboard/policies.js"),
    include_str!("dashboard/events.js"),
    include_str!("dashboard/main.js"),
);

/// The places of style and script in the document.
const STYLE_PLACE: &str = "<style></style>";
const SCRIPT_PLACE: &str = r#"<script type="module"></script>"#;

static PAGE: LazyLock<String> = LazyLock::new(|| {
    let styled = DOCUMENT.replacen(STYLE_PLACE, &format!("<style>{STYLE}</style>"), 1);
    styled.replacen(
        SCRIPT_PLACE,
        &format!(r#"<script type="module">{SCRIPT}</script>"#),
        1,
    )
});

static POLICY: LazyLock<String> = LazyLock::new(|| {
    let hash = |text: &str| BASE64_STANDARD.encode(Sha256::digest(text));
    let (style, script) = (hash(STYLE), hash(SCRIPT));
    format!(
        "default-src 'none'; script-src 'sha256-{script}'; style-src 'sha256-{style}'; \
         connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; \
         frame-ancestors 'none'; require-trusted-types-for 'script'"
    )
});

/// `GET /admin/v1/dashboard`: the status, and the last seconds of each pool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Dashboard {
    /// As `GET /admin/v1/status`, without the differences of shadows.
    #[serde(flatten)]
    pub status: ServerStatus,
    /// Operators are configured, so that orders can be accepted.
    pub orders: bool,
    /// In the order of the status's pools.
    pub views: Vec<PoolView>,
}

/// The last seconds of a pool, and the components that it can swap to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PoolView {
    /// Ended requests and batches.
    pub recent: RecentReport,
    /// Names of components in the folder of policies, without `.wasm`.
    pub components: Vec<String>,
}

// === impl Dashboard ===

impl Dashboard {
    /// The page shows no differences of shadows, which are long.
    pub(super) fn new(mut status: ServerStatus, orders: bool, views: Vec<PoolView>) -> Self {
        let shadows = status
            .pools
            .iter_mut()
            .filter_map(|pool| pool.shadow.as_mut());
        shadows.for_each(|shadow| shadow.differences.clear());
        Self {
            status,
            orders,
            views,
        }
    }
}

/// The page with its headers.
pub(super) fn page() -> ([(HeaderName, &'static str); 6], &'static str) {
    let headers = [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (CONTENT_SECURITY_POLICY, POLICY.as_str()),
        (CACHE_CONTROL, "no-store"),
        (REFERRER_POLICY, "no-referrer"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
    ];
    (headers, PAGE.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn between<'a>(text: &'a str, begin: &str, end: &str) -> &'a str {
        let rest = text.split_once(begin).map_or("", |(_, rest)| rest);
        rest.split_once(end).map_or("", |(found, _)| found)
    }

    #[test]
    fn the_policy_allows_the_style_and_the_script_that_the_page_has() {
        let (headers, page) = page();
        let (_, policy) = headers[1];
        let style = between(page, "<style>", "</style>");
        let script = between(page, r#"<script type="module">"#, "</script>");
        for (directive, part) in [("style-src", style), ("script-src", script)] {
            assert!(part.len() > 1_000, "{directive}: {part}");
            let hash = BASE64_STANDARD.encode(Sha256::digest(part));
            assert!(policy.contains(&format!("{directive} 'sha256-{hash}';")));
        }
        assert!(
            script.contains("setInterval(refresh"),
            "the script is whole"
        );
    }

    #[test]
    fn the_page_has_no_outside_assets_and_no_place_for_other_script() {
        for part in ["src=", "@import", "url(", "https://", "onclick=", "style="] {
            assert!(!PAGE.contains(part), "{part}");
        }
        for call in ["innerHTML", "eval(", "document.write", "insertAdjacentHTML"] {
            assert!(!SCRIPT.contains(call), "{call}");
        }
    }
}
