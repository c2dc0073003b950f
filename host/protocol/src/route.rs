//! From the method and path of a request to the endpoint and the names in it.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

use crate::error::ProtocolError;
use crate::excerpt::excerpt;
use crate::repository::Control;

/// One endpoint as the API description lists it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// `GET` or `POST`; an endpoint with `GET` also serves `HEAD`.
    pub method: &'static str,
    /// Path, with `{app}` and `{variant}` for names.
    pub path: &'static str,
}

const fn get(path: &'static str) -> Endpoint {
    Endpoint {
        method: "GET",
        path,
    }
}

const fn post(path: &'static str) -> Endpoint {
    Endpoint {
        method: "POST",
        path,
    }
}

/// Every endpoint of the HTTP port, in the order of `docs/openapi.yaml`.
pub const ENDPOINTS: [Endpoint; 17] = [
    get("/v2"),
    get("/v2/health/live"),
    get("/v2/health/ready"),
    get("/v2/models/stats"),
    get("/v2/models/{app}"),
    get("/v2/models/{app}/ready"),
    get("/v2/models/{app}/config"),
    get("/v2/models/{app}/stats"),
    post("/v2/models/{app}/infer"),
    get("/v2/models/{app}/versions/{variant}"),
    get("/v2/models/{app}/versions/{variant}/ready"),
    get("/v2/models/{app}/versions/{variant}/config"),
    get("/v2/models/{app}/versions/{variant}/stats"),
    post("/v2/models/{app}/versions/{variant}/infer"),
    post("/v2/repository/index"),
    post("/v2/repository/models/{app}/load"),
    post("/v2/repository/models/{app}/unload"),
];

/// The endpoint of a request, with the names in its path.
#[derive(Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each variant is the endpoint of its name")]
pub enum Route<'a> {
    ServerMetadata,
    Live,
    Ready,
    AllStats,
    RepositoryIndex,
    RepositoryControl {
        app: Cow<'a, str>,
        verb: Control,
    },
    App {
        app: Cow<'a, str>,
        variant: Option<Cow<'a, str>>,
        action: AppAction,
    },
}

/// The endpoints of one app or variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each variant is the endpoint of its name")]
pub enum AppAction {
    Metadata,
    Ready,
    Config,
    Stats,
    Infer,
}

impl<'a> Route<'a> {
    /// The route of a request; `path` is still percent-quoted and has no query.
    ///
    /// # Errors
    /// 404 for an unknown path, 405 for a method that its endpoint does not have, 400 for
    /// quoting that is not UTF-8.
    pub fn of(method: &str, path: &'a str) -> Result<Self, ProtocolError> {
        let route = Self::parse(path)?;
        let Endpoint { method: served, .. } = route.endpoint();
        // The server sends no body in answer to HEAD, so HEAD is routed as GET.
        if method == served || (method == "HEAD" && served == "GET") {
            return Ok(route);
        }
        Err(ProtocolError::MethodNotAllowed {
            method: method.to_owned(),
            path: path.to_owned(),
            allow: if served == "GET" { "GET, HEAD" } else { served },
        })
    }

    fn parse(path: &'a str) -> Result<Self, ProtocolError> {
        let unknown = || ProtocolError::UnknownPath {
            path: path.to_owned(),
        };
        let rest = path.strip_prefix("/v2").ok_or_else(unknown)?;
        match rest {
            "" | "/" => Ok(Self::ServerMetadata),
            "/health/live" => Ok(Self::Live),
            "/health/ready" => Ok(Self::Ready),
            "/models/stats" => Ok(Self::AllStats),
            "/repository/index" => Ok(Self::RepositoryIndex),
            _ => {
                if let Some(rest) = rest.strip_prefix("/models/") {
                    Self::parse_app(rest)?.ok_or_else(unknown)
                } else if let Some(rest) = rest.strip_prefix("/repository/models/") {
                    Self::parse_control(rest)?.ok_or_else(unknown)
                } else {
                    Err(unknown())
                }
            }
        }
    }

    /// Reads from the right: clients quote names but keep their slashes.
    fn parse_app(rest: &'a str) -> Result<Option<Self>, ProtocolError> {
        let (rest, action) = match rest.rsplit_once('/') {
            Some((head, "ready")) => (head, AppAction::Ready),
            Some((head, "config")) => (head, AppAction::Config),
            Some((head, "stats")) => (head, AppAction::Stats),
            Some((head, "infer")) => (head, AppAction::Infer),
            _ => (rest, AppAction::Metadata),
        };
        let split = rest.rsplit_once('/');
        let versions =
            split.and_then(|(head, variant)| Some((head.strip_suffix("/versions")?, variant)));
        let (app, variant) = match versions {
            Some((app, variant)) if !variant.is_empty() => (app, Some(unquote(variant)?)),
            _ => (rest, None),
        };
        if app.is_empty() {
            return Ok(None);
        }
        Ok(Some(Self::App {
            app: unquote(app)?,
            variant,
            action,
        }))
    }

    fn parse_control(rest: &'a str) -> Result<Option<Self>, ProtocolError> {
        let (app, verb) = match rest.rsplit_once('/') {
            Some((app, "load")) => (app, Control::Load),
            Some((app, "unload")) => (app, Control::Unload),
            _ => return Ok(None),
        };
        if app.is_empty() {
            return Ok(None);
        }
        Ok(Some(Self::RepositoryControl {
            app: unquote(app)?,
            verb,
        }))
    }

    /// Its entry in [`ENDPOINTS`].
    pub const fn endpoint(&self) -> Endpoint {
        use AppAction::{Config, Infer, Metadata, Ready, Stats};
        let index = match self {
            Self::ServerMetadata => 0,
            Self::Live => 1,
            Self::Ready => 2,
            Self::AllStats => 3,
            Self::App {
                variant, action, ..
            } => {
                let unpinned = match action {
                    Metadata => 4,
                    Ready => 5,
                    Config => 6,
                    Stats => 7,
                    Infer => 8,
                };
                if variant.is_some() {
                    unpinned + 5
                } else {
                    unpinned
                }
            }
            Self::RepositoryIndex => 14,
            Self::RepositoryControl { verb, .. } => match verb {
                Control::Load => 15,
                Control::Unload => 16,
            },
        };
        ENDPOINTS[index]
    }
}

/// Undoes percent quoting; borrows if there is none.
fn unquote(text: &str) -> Result<Cow<'_, str>, ProtocolError> {
    percent_decode_str(text).decode_utf8().map_err(|_| {
        let text = excerpt(text);
        ProtocolError::malformed("path", format!("{text:?} is not UTF-8 once unquoted"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_endpoint_routes_to_itself() {
        for endpoint in ENDPOINTS {
            let path = endpoint
                .path
                .replace("{app}", "heart")
                .replace("{variant}", "cnn");
            let route = Route::of(endpoint.method, &path).unwrap();
            assert_eq!(route.endpoint(), endpoint, "{path}");
        }
    }

    #[test]
    fn a_method_must_be_that_of_the_endpoint() {
        assert_eq!(Route::of("HEAD", "/v2"), Ok(Route::ServerMetadata));
        for (method, path, message) in [
            (
                "POST",
                "/v2",
                "method: \"/v2\" does not accept POST; allowed: GET, HEAD",
            ),
            (
                "HEAD",
                "/v2/repository/index",
                "method: \"/v2/repository/index\" does not accept HEAD; allowed: POST",
            ),
        ] {
            let error = Route::of(method, path).unwrap_err();
            assert_eq!(
                (error.status().as_u16(), &*error.to_string()),
                (405, message)
            );
        }
    }

    #[test]
    fn names_are_unquoted_and_keep_their_slashes() {
        let route = Route::parse("/v2/models/a/b%20%C3%A9/versions/v%2F1/infer").unwrap();
        assert_eq!(
            route,
            Route::App {
                app: "a/b é".into(),
                variant: Some("v/1".into()),
                action: AppAction::Infer,
            }
        );
    }

    #[test]
    fn an_app_may_have_the_name_of_an_action() {
        let route = Route::parse("/v2/models/ready/ready").unwrap();
        assert_eq!(
            route,
            Route::App {
                app: "ready".into(),
                variant: None,
                action: AppAction::Ready,
            }
        );
    }

    #[test]
    fn other_paths_are_unknown() {
        for path in [
            "",
            "/",
            "/v1",
            "/v2x",
            "/v2/models/",
            "/v2/models//infer",
            "/v2/repository/models/heart",
            "/v2/repository/models//load",
            "/v2/logging",
        ] {
            let error = Route::parse(path).unwrap_err();
            assert!(
                matches!(error, ProtocolError::UnknownPath { .. }),
                "{path}: {error}"
            );
        }
    }

    #[test]
    fn quoting_that_is_not_utf8_is_malformed() {
        let error = Route::parse("/v2/models/%FF/infer").unwrap_err();
        assert_eq!(
            error.to_string(),
            "path: \"%FF\" is not UTF-8 once unquoted"
        );
    }
}
