//! JSON Web Tokens as credentials.

mod key;

use std::borrow::Cow;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use agui_agent::BoxFuture;
use agui_server::{Refusal, bearer, codes};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::header::WWW_AUTHENTICATE;
use http::request::Parts;
use http::{HeaderValue, StatusCode};
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::auth::no_token;
use crate::{Authorize, Principal};

pub use key::{JwtKey, JwtKeyError};

/// Whoever brings a JSON Web Token (RFC 7519) in `Authorization: Bearer …` is let in, as the
/// principal that its claims name.
///
/// A token has to be signed with the algorithm of the [key](JwtKey) and no other, has to have an
/// `exp` in the future, an `nbf`, if any, in the past, this `iss`, and this `aud`, alone or among
/// others. Tokens with critical extensions (`crit`), and encrypted ones, are refused.
///
/// ```
/// use std::time::Duration;
///
/// use agui_runtime::{Jwt, JwtKey};
///
/// let key = JwtKey::hs256("0123456789abcdef0123456789abcdef")?;
/// let jwt = Jwt::new(key, "https://login.example/", "agui")
///     .tenant_claim("org")
///     .leeway(Duration::from_secs(5));
/// # let _ = jwt;
/// # Ok::<(), agui_runtime::JwtKeyError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Jwt {
    key: JwtKey,
    issuer: String,
    audience: String,
    name_claim: String,
    tenant_claim: Option<String>,
    leeway: Duration,
}

impl Jwt {
    /// By how much clocks may differ, unless [`leeway`](Self::leeway) says otherwise: 30 seconds.
    pub const LEEWAY: Duration = Duration::from_secs(30);

    /// The longest token, in bytes: 16 KiB.
    pub const LONGEST: usize = 16 * 1024;

    /// Takes tokens of this issuer for this audience.
    #[must_use]
    pub fn new(key: JwtKey, issuer: impl Into<String>, audience: impl Into<String>) -> Self {
        Self {
            key,
            issuer: issuer.into(),
            audience: audience.into(),
            name_claim: "sub".into(),
            tenant_claim: None,
            leeway: Self::LEEWAY,
        }
    }

    /// The claim that says who it is within the tenant. Default: `sub`. A token without it is
    /// refused.
    #[must_use]
    pub fn name_claim(mut self, claim: impl Into<String>) -> Self {
        self.name_claim = claim.into();
        self
    }

    /// The claim that says which tenant it is. A token without it is then refused. Default: none, and
    /// each name is a tenant of its own.
    #[must_use]
    pub fn tenant_claim(mut self, claim: impl Into<String>) -> Self {
        self.tenant_claim = Some(claim.into());
        self
    }

    /// By how much clocks may differ. Default: [`LEEWAY`](Self::LEEWAY).
    #[must_use]
    pub fn leeway(mut self, leeway: Duration) -> Self {
        self.leeway = leeway;
        self
    }

    /// Who a token stands for at a time since 1970, or what is wrong with it.
    fn judge(&self, token: &str, now: Duration) -> Result<Principal, Cow<'static, str>> {
        #[derive(Deserialize)]
        struct Header {
            alg: String,
            #[serde(default, deserialize_with = "there")]
            crit: bool,
        }
        /// Whatever it is, `null` too.
        fn there<'de, D: Deserializer<'de>>(value: D) -> Result<bool, D::Error> {
            IgnoredAny::deserialize(value).map(|_| true)
        }
        if token.len() > Self::LONGEST {
            return Err("the token is longer than 16 KiB".into());
        }
        let parts: Vec<&str> = token.splitn(4, '.').collect();
        let [header, payload, signature] = parts[..] else {
            return Err("the token is no JWT: it has not three parts".into());
        };
        let decoded = |part: &str| {
            let bytes = URL_SAFE_NO_PAD.decode(part);
            bytes.map_err(|_| "the token is no JWT: a part is no base64url")
        };
        let header: Header = serde_json::from_slice(&decoded(header)?)
            .map_err(|_| "the token's header is no JSON with an algorithm")?;
        if header.alg != self.key.algorithm() {
            return Err(format!("the token is not signed with {}", self.key.algorithm()).into());
        }
        if header.crit {
            return Err("the token has critical extensions, of which none is known".into());
        }
        let signed = &token[..token.len() - signature.len() - 1];
        if !self.key.has_signed(signed.as_bytes(), &decoded(signature)?) {
            return Err("the token's signature is not by our key".into());
        }
        let claims: Map<String, Value> = serde_json::from_slice(&decoded(payload)?)
            .map_err(|_| "the token's claims are no JSON object")?;
        self.judge_claims(&claims, now)
    }

    fn judge_claims(
        &self,
        claims: &Map<String, Value>,
        now: Duration,
    ) -> Result<Principal, Cow<'static, str>> {
        let (now, leeway) = (now.as_secs_f64(), self.leeway.as_secs_f64());
        let date = |name: &str| claims.get(name).map(Value::as_f64);
        match date("exp") {
            Some(Some(exp)) if now < exp + leeway => {}
            Some(Some(_)) => return Err("the token has expired".into()),
            _ => return Err("the token has no exp that is a number".into()),
        }
        match date("nbf") {
            Some(Some(nbf)) if now + leeway < nbf => {
                return Err("the token is not valid yet".into());
            }
            Some(None) => return Err("the token's nbf is no number".into()),
            _ => {}
        }
        if claims.get("iss").and_then(Value::as_str) != Some(&*self.issuer) {
            return Err("the token is of another issuer".into());
        }
        let for_us = match claims.get("aud") {
            Some(Value::String(audience)) => *audience == self.audience,
            Some(Value::Array(all)) => all.iter().any(|it| it.as_str() == Some(&*self.audience)),
            _ => false,
        };
        if !for_us {
            return Err("the token is for another audience".into());
        }
        let text = |claim: &str| {
            let value = claims.get(claim).and_then(Value::as_str).filter(|text| !text.is_empty());
            value.ok_or_else(|| format!("the token has no text as its {claim}"))
        };
        let name = text(&self.name_claim)?;
        let tenant = self.tenant_claim.as_deref().map_or(Ok(name), text)?;
        Ok(Principal::of_tenant(tenant).named(name))
    }
}

impl Authorize for Jwt {
    fn authenticate<'a>(&'a self, head: &'a Parts) -> BoxFuture<'a, Result<Principal, Refusal>> {
        // A clock before 1970 lets nobody in whose token is not valid yet.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let judged = match bearer(head) {
            Some(token) => self.judge(token, now).map_err(|what| {
                let challenge = HeaderValue::from_static("Bearer error=\"invalid_token\"");
                refusal(what).header(WWW_AUTHENTICATE, challenge)
            }),
            None => Err(refusal(no_token(head).into())),
        };
        Box::pin(std::future::ready(judged))
    }
}

fn refusal(what: Cow<'static, str>) -> Refusal {
    Refusal::new(StatusCode::UNAUTHORIZED, codes::UNAUTHORIZED, what)
        .hint("send a JSON Web Token as Authorization: Bearer …")
}

#[cfg(test)]
mod tests {
    use super::key::tests::{ecdsa, hmac};
    use super::*;
    use serde_json::json;

    const NOW: u64 = 1_800_000_000;

    fn claims() -> Value {
        json!({"iss": "us", "aud": ["x", "agui"], "sub": "ada", "org": "acme", "exp": NOW + 60})
    }

    fn jwt(key: JwtKey) -> Jwt {
        Jwt::new(key, "us", "agui").leeway(Duration::from_secs(10))
    }

    fn judge(jwt: &Jwt, token: &str) -> Result<Principal, Cow<'static, str>> {
        jwt.judge(token, Duration::from_secs(NOW))
    }

    #[test]
    fn a_token_stands_for_who_its_claims_name() {
        for (signer, key) in [hmac(), ecdsa()] {
            let token = signer.token(&claims());
            let known = judge(&jwt(key.clone()), &token).unwrap();
            assert_eq!((&*known.tenant, known.name.as_deref()), ("ada", Some("ada")));
            let org = jwt(key).tenant_claim("org");
            assert_eq!(judge(&org, &token).unwrap().tenant, "acme");
        }
    }

    #[test]
    fn claims_are_held_to() {
        let (signer, key) = hmac();
        let jwt = jwt(key).tenant_claim("org");
        let with = |name: &str, value: Value| {
            let mut claims = claims();
            claims[name] = value;
            judge(&jwt, &signer.token(&claims))
        };
        // The leeway goes both ways, and no further.
        assert!(with("exp", json!(NOW - 9)).is_ok());
        assert!(with("nbf", json!(NOW + 10)).is_ok());
        assert!(with("aud", json!("agui")).is_ok());
        assert!(with("exp", json!(NOW as f64 + 0.5)).is_ok());
        for (name, value, says) in [
            ("exp", json!(NOW - 10), "expired"),
            ("exp", json!("9999999999"), "no exp that is a number"),
            ("exp", Value::Null, "no exp"),
            ("nbf", json!(NOW + 11), "not valid yet"),
            ("nbf", json!("0"), "nbf is no number"),
            ("nbf", Value::Null, "nbf is no number"),
            ("iss", json!("them"), "issuer"),
            ("iss", json!(["us"]), "issuer"),
            ("aud", json!("x"), "audience"),
            ("aud", json!([]), "audience"),
            ("aud", json!([["agui"]]), "audience"),
            ("aud", Value::Null, "audience"),
            ("sub", json!(""), "as its sub"),
            ("sub", json!(7), "as its sub"),
            ("org", Value::Null, "as its org"),
        ] {
            let what = with(name, value.clone()).unwrap_err();
            assert!(what.contains(says), "{name} = {value}: {what}");
        }
        for name in ["exp", "iss", "aud", "sub", "org"] {
            let mut claims = claims();
            claims.as_object_mut().unwrap().remove(name);
            assert!(judge(&jwt, &signer.token(&claims)).is_err(), "{name}");
        }
    }

    #[test]
    fn what_is_not_signed_by_our_key_is_refused() {
        let (signer, key) = hmac();
        let jwt = jwt(key);
        let encode = |text: &str| URL_SAFE_NO_PAD.encode(text);
        let payload = encode(&claims().to_string());
        let token = signer.token(&claims());
        let (head, signature) = token.rsplit_once('.').unwrap();
        for (token, says) in [
            (String::new(), "three parts"),
            ("a.b".into(), "three parts"),
            (format!("{token}.x"), "three parts"),
            (format!("{head}."), "signature"),
            (format!("{head}.{signature}="), "base64url"),
            (format!("{}.{payload}.", encode(r#"{"alg":"none"}"#)), "not signed with HS256"),
            (format!("{}.{payload}.x", encode(r#"{"alg":"hs256"}"#)), "not signed with HS256"),
            (format!("{}.{payload}.x", encode(r#"{"typ":"JWT"}"#)), "no JSON"),
            (format!("{}.{payload}.x", encode("[]")), "no JSON"),
            (signer.signed(r#"{"alg":"HS256","crit":["exp"]}"#, &claims().to_string()), "critical"),
            (signer.signed(r#"{"alg":"HS256","crit":null}"#, &claims().to_string()), "critical"),
            (signer.signed(r#"{"alg":"HS256"}"#, "[]"), "no JSON object"),
            (format!("{head}x.{signature}"), "signature"),
            ("x".repeat(Jwt::LONGEST + 1), "16 KiB"),
        ] {
            let what = judge(&jwt, &token).unwrap_err();
            assert!(what.contains(says), "{token}: {what}");
        }
        // A key for one algorithm is none for another: a public key is no secret.
        let (other, key) = ecdsa();
        let jwt = Jwt::new(key, "us", "agui");
        assert!(judge(&jwt, &token).unwrap_err().contains("not signed with ES256"));
        let (another, _) = ecdsa();
        assert!(judge(&jwt, &other.token(&claims())).is_ok());
        assert!(judge(&jwt, &another.token(&claims())).unwrap_err().contains("signature"));
    }

    #[tokio::test]
    async fn a_refusal_says_what_is_wrong_and_nothing_of_the_token() {
        let (signer, key) = hmac();
        let jwt = jwt(key);
        let token = signer.token(&claims());
        let ask = async |value: Option<String>| {
            let mut request = http::Request::new(());
            if let Some(value) = value {
                let value = HeaderValue::from_str(&value).unwrap();
                request.headers_mut().insert("authorization", value);
            }
            jwt.authenticate(&request.into_parts().0).await
        };
        // The test's clock is behind this one or far behind it: the token is of the year 2027.
        let refused = ask(Some(format!("Bearer {token}x"))).await.unwrap_err();
        assert_eq!(refused.status(), StatusCode::UNAUTHORIZED);
        let challenge = &refused.headers().unwrap()[WWW_AUTHENTICATE];
        assert_eq!(challenge, "Bearer error=\"invalid_token\"");
        assert!(!refused.to_json().contains(&token[..20]));
        let refused = ask(None).await.unwrap_err();
        assert!(refused.to_string().contains("needed") && refused.headers().is_none());
        assert!(!format!("{jwt:?}").contains("0123"));
    }
}
