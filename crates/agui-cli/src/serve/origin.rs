//! Which web pages may call the agents.

use axum::http::uri::{Authority, Scheme};
use axum::http::{HeaderValue, Uri};

use crate::failure::Failure;

/// The web origins that are let in: those of this machine, and those that were named.
#[derive(Clone, Debug)]
pub(super) struct Origins {
    named: Vec<HeaderValue>,
    /// Whether all others are let in as well.
    any: bool,
    /// Whether pages may send the credentials that the browser has for this server.
    pub(super) credentials: bool,
}

/// What stands for any origin.
const ANY: &str = "*";

impl Origins {
    /// Fails where one is no origin as browsers send it.
    pub(super) fn new(named: &[String], credentials: bool) -> Result<Self, Failure> {
        let any = named.iter().any(|name| name == ANY);
        let origins = named.iter().filter(|name| *name != ANY).map(|name| {
            let authority = authority(name.as_bytes()).map(|authority| authority.to_string());
            let origin = authority.filter(|authority| name.ends_with(&format!("://{authority}")));
            let value = origin.and_then(|_| HeaderValue::from_str(&as_sent(name)).ok());
            value.ok_or_else(|| {
                Failure::usage(format!("{name:?} is no web origin")).hint(
                    "give scheme, host and port alone, such as https://app.example, or * for any",
                )
            })
        });
        let named = origins.collect::<Result<_, _>>()?;
        Ok(Self { named, any, credentials })
    }

    /// Whether a page of this origin may call.
    pub(super) fn allow(&self, origin: &HeaderValue) -> bool {
        self.any
            || self.named.contains(origin)
            || authority(origin.as_bytes()).is_some_and(|a| is_loopback(&a))
    }
}

/// An origin as browsers send it: in small letters, without the port that its scheme has anyway.
fn as_sent(origin: &str) -> String {
    let origin = origin.to_ascii_lowercase();
    let port = if origin.starts_with("https:") { ":443" } else { ":80" };
    origin.strip_suffix(port).map(str::to_owned).unwrap_or(origin)
}

/// Host and port of an origin; `None` where it is none, such as `null`.
fn authority(origin: &[u8]) -> Option<Authority> {
    let uri = Uri::try_from(origin).ok()?.into_parts();
    let web = uri.scheme.is_some_and(|scheme| scheme == Scheme::HTTP || scheme == Scheme::HTTPS);
    let authority = uri.authority.filter(|authority| !authority.as_str().contains('@'))?;
    // A colon announces a port.
    let port = authority.as_str().strip_prefix(authority.host())?;
    let whole = port.is_empty() || authority.port_u16().is_some() && !port.contains('+');
    (web && whole && !authority.host().is_empty()).then_some(authority)
}

fn is_loopback(authority: &Authority) -> bool {
    matches!(authority.host(), "localhost" | "127.0.0.1" | "[::1]")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(named: &[&str], origin: &'static str) -> bool {
        let named: Vec<String> = named.iter().map(|name| (*name).into()).collect();
        Origins::new(&named, false).unwrap().allow(&HeaderValue::from_static(origin))
    }

    #[test]
    fn pages_of_this_machine_are_let_in() {
        for origin in [
            "http://localhost",
            "http://localhost:3000",
            "https://127.0.0.1:8443",
            "http://[::1]:5173",
        ] {
            assert!(allowed(&[], origin), "{origin}");
        }
    }

    #[test]
    fn other_pages_are_let_in_where_they_are_named() {
        assert!(allowed(&["https://app.example"], "https://app.example"));
        assert!(allowed(&["https://a.example", "http://App.example:81"], "http://app.example:81"));
        assert!(allowed(&["https://app.example:443"], "https://app.example"));
        assert!(allowed(&["http://app.example:80"], "http://app.example"));
        assert!(!allowed(&["http://app.example:443"], "http://app.example"));
        assert!(allowed(&["*"], "https://app.example") && allowed(&["*"], "null"));
        for origin in [
            "https://app.example",
            "null",
            "http://localhost:",
            "http://localhost:99999",
            "http://localhost.evil.example",
            "http://evil.example/http://localhost",
            "http://localhost@evil.example",
            "http://localhost:80@evil.example",
            "http://127.0.0.1.evil.example",
            "http://127.0.0.2",
            "file://localhost",
            "localhost",
            "",
        ] {
            assert!(!allowed(&[], origin), "{origin}");
        }
        for origin in ["http://app.example", "https://app.example:444", "https://b.app.example"] {
            assert!(!allowed(&["https://app.example"], origin), "{origin}");
        }
    }

    #[test]
    fn what_no_browser_sends_is_refused() {
        for name in [
            "**",
            "app.example",
            "https://app.example/",
            "https://app.example/path",
            "https://app.example:",
            "https://app.example:65536",
            "https://app.example:+1",
            "https://:80",
            "null",
            "",
        ] {
            let refused = Origins::new(&[name.into()], false).unwrap_err();
            assert!(refused.to_string().contains("no web origin"), "{name}");
        }
    }
}
