//! Which names the server answers to.

use std::net::IpAddr;

use axum::extract::{Request, State};
use axum::http::header::HOST;
use axum::http::uri::Authority;
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use agui_server::Refusal;

use crate::failure::Failure;

/// The host names that are answered to; `None` for any.
///
/// A web page whose own name was made to resolve to this machine (DNS rebinding) is of the same
/// origin as the server for its browser, and `Host` alone tells that it is not. An address in place
/// of a name cannot be rebound.
#[derive(Clone, Debug)]
pub(super) struct Hosts(Option<Vec<String>>);

impl Hosts {
    /// Fails where one is no host name. Where the server listens to others as well, any name is its
    /// own unless some are given.
    pub(super) fn new(listening: IpAddr, named: &[String]) -> Result<Self, Failure> {
        let names = named.iter().map(|name| {
            let authority = name.parse::<Authority>().ok();
            let is_name = authority.is_some_and(|it| it.host() == name && !name.contains('*'));
            is_name.then(|| canonical(name)).ok_or_else(|| {
                Failure::usage(format!("{name:?} is no host name"))
                    .hint("give the name alone, without scheme and port: --allow-host app.example")
            })
        });
        let names: Vec<String> = names.collect::<Result<_, _>>()?;
        Ok(Self((listening.is_loopback() || !names.is_empty()).then_some(names)))
    }

    fn allow(&self, host: &str) -> bool {
        let Some(named) = &self.0 else {
            return true;
        };
        let Ok(authority) = host.parse::<Authority>() else {
            return false;
        };
        let name = canonical(authority.host());
        let address = name.trim_start_matches('[').trim_end_matches(']');
        !host.contains('@')
            && (name == "localhost" || named.contains(&name) || address.parse::<IpAddr>().is_ok())
    }
}

/// Answers requests for other hosts in place of everything behind it.
pub(super) async fn guard(State(hosts): State<Hosts>, request: Request, next: Next) -> Response {
    let target = request.uri().authority().map(Authority::as_str);
    // What is no text is no name either.
    let headers = request.headers().get_all(HOST).iter().map(HeaderValue::to_str);
    let headers = headers.map(|host| host.unwrap_or_default());
    match target.into_iter().chain(headers).find(|host| !hosts.allow(host)) {
        None => next.run(request).await,
        Some(host) => {
            let message = format!("this server is not {host:?}");
            let refusal = Refusal::new(StatusCode::MISDIRECTED_REQUEST, "UNKNOWN_HOST", message)
                .hint("agui serve --allow-host NAME lets a host name in");
            IntoResponse::into_response(refusal)
        }
    }
}

fn canonical(name: &str) -> String {
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(listening: &str, named: &[&str]) -> Hosts {
        let named: Vec<String> = named.iter().map(|name| (*name).into()).collect();
        Hosts::new(listening.parse().unwrap(), &named).unwrap()
    }

    #[test]
    fn only_this_machine_and_what_is_named_is_answered_for() {
        let loopback = hosts("127.0.0.1", &["App.example"]);
        for host in [
            "localhost",
            "LocalHost:4100",
            "localhost.",
            "127.0.0.1:4100",
            "[::1]:4100",
            "192.168.0.7",
            "app.example:80",
            "APP.example.",
        ] {
            assert!(loopback.allow(host), "{host}");
        }
        for host in [
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "app.example.evil.example",
            "localhost@evil.example",
            "evil.example@localhost",
            "a b",
            "",
        ] {
            assert!(!loopback.allow(host), "{host}");
        }
        assert!(!hosts("::1", &[]).allow("app.example"));
    }

    #[test]
    fn a_server_for_others_answers_to_any_name_unless_told_otherwise() {
        assert!(hosts("0.0.0.0", &[]).allow("evil.example"));
        assert!(!hosts("0.0.0.0", &["app.example"]).allow("evil.example"));
    }

    #[test]
    fn what_is_no_name_is_refused() {
        for name in ["", "*", "app.example:80", "http://app.example", "a@b", "a/b"] {
            let refused = Hosts::new(IpAddr::from([127, 0, 0, 1]), &[name.into()]).unwrap_err();
            assert!(refused.to_string().contains("no host name"), "{name}");
        }
    }
}
