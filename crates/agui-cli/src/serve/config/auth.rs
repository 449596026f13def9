//! The table `auth`: who is known, and how.

use agui_runtime::{BearerTokens, Principal};

use super::reader::{At, Section};
#[cfg(feature = "jwt")]
use super::setting::{Algorithm, Span};
use super::setting::{Secret, Setting};
use super::tree::Origin;

/// How those who ask are known.
#[derive(Clone, Default)]
pub(in crate::serve) struct Known {
    /// How many tokens there are.
    tokens: usize,
    pub(in crate::serve) bearer: BearerTokens,
    #[cfg(feature = "jwt")]
    pub(in crate::serve) jwt: Option<agui_runtime::Jwt>,
}

impl Known {
    /// Whether anybody can be known.
    pub(in crate::serve) fn anybody(&self) -> bool {
        #[cfg(feature = "jwt")]
        if self.jwt.is_some() {
            return true;
        }
        self.tokens > 0
    }
}

pub(super) fn read(mut section: Section<'_>) -> Known {
    let mut known = Known::default();
    let mut seen: Vec<(String, String)> = Vec::new();
    let jwt = section.section("jwt");
    for (name, mut inner) in section.sections("tokens") {
        let token = inner.required::<Secret>("token");
        let At { value: tenant, origin: said } = inner.get("tenant", name.value.clone());
        if !jwt.is_empty() && matches!(said, Origin::Default) {
            let what = "beside [auth.jwt] a token says whose threads it sees, or a JWT of that name \
                        would share them";
            let fix = "write for example tenant = \"acme\"";
            inner.problem_at(name.origin.clone(), "tenant", what, fix);
        }
        if let Some(At { value: Secret { value: token, .. }, origin }) = token {
            if token.contains(|c: char| !c.is_ascii_graphic()) {
                let what =
                    "a token has no white space and nothing but ASCII, or no header can hold it";
                inner.problem_at(origin, "token", what, Secret::fix("token"));
            } else if let Some((_, other)) = seen.iter().find(|(known, _)| *known == token) {
                let what = format!("it is the token of {other} as well");
                inner.problem_at(origin, "token", what, "give each name a token of its own");
            } else {
                seen.push((token.clone(), name.value.clone()));
                let principal = Principal::of_tenant(tenant).named(name.value);
                known.bearer = known.bearer.accept(token, principal);
                known.tokens += 1;
            }
        }
        inner.finish();
    }
    read_jwt(jwt, &mut known);
    section.finish();
    known
}

#[cfg(not(feature = "jwt"))]
#[expect(clippy::needless_pass_by_value, reason = "the table is read up, as with the feature")]
fn read_jwt(section: Section<'_>, _: &mut Known) {
    if !section.is_empty() {
        let what = "this program was built without the feature jwt";
        let fix = "build it with --features jwt, or remove the table";
        section.problem_at(section.origin().clone(), "", what, fix);
    }
}

#[cfg(feature = "jwt")]
fn read_jwt(mut section: Section<'_>, known: &mut Known) {
    use agui_runtime::{Jwt, JwtKey};
    if section.is_empty() {
        return;
    }
    let algorithm = section.required::<Algorithm>("algorithm");
    let key = section.required::<Secret>("key");
    let issuer = section.required::<String>("issuer");
    let audience = section.required::<String>("audience");
    let name_claim = section.get("name-claim", "sub".to_owned()).value;
    let tenant_claim = section.optional::<String>("tenant-claim").map(|at| at.value);
    let leeway = section.get("leeway", Span(Jwt::LEEWAY)).value;
    if let (Some(algorithm), Some(key), Some(issuer), Some(audience)) =
        (algorithm, key, issuer, audience)
    {
        let text = key.value.value;
        let read = match algorithm.value {
            Algorithm::Hs256 => JwtKey::hs256(text),
            Algorithm::Rs256 => JwtKey::rs256(&text),
            Algorithm::Es256 => JwtKey::es256(&text),
        };
        match read {
            Ok(key) => {
                let mut jwt = Jwt::new(key, issuer.value, audience.value)
                    .name_claim(name_claim)
                    .leeway(leeway.0);
                if let Some(claim) = tenant_claim {
                    jwt = jwt.tenant_claim(claim);
                }
                known.jwt = Some(jwt);
            }
            Err(error) => {
                let fix = "RS256 and ES256 take the public key as PEM, HS256 a secret of 32 bytes or more";
                section.problem_at(key.origin, "key", error.to_string(), fix);
            }
        }
    }
    section.finish();
}
