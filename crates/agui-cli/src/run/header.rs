//! The headers that `--header` adds to a request.

use crate::failure::Failure;

/// Headers that speak of the connection or of the body, which are not the caller's to tell.
const REFUSED: [(&str, &str); 11] = [
    ("content-length", "it follows from the body"),
    ("transfer-encoding", "how the body is transferred is decided with the connection"),
    ("connection", "it speaks of the connection alone"),
    ("keep-alive", "it speaks of the connection alone"),
    ("proxy-connection", "it speaks of the connection alone"),
    ("te", "it speaks of the connection alone"),
    ("trailer", "the request has no trailer"),
    ("upgrade", "the connection stays what it is"),
    ("expect", "the body is sent at once"),
    ("host", "it follows from the URL"),
    ("content-encoding", "the body is sent as it is"),
];

/// A name and a value, from `NAME: VALUE`.
///
/// Fails where the name is none that HTTP allows or is not the caller's to set. Nothing of what may
/// be the value is repeated. Whether the value is allowed is found out later.
pub(super) fn parse(argument: &str) -> Result<(&str, &str), Failure> {
    let Some((name, value)) = argument.split_once(':') else {
        return Err(Failure::usage(format!(
            "the --header {} has no colon",
            start_of_name(argument)
        ))
        .hint("give a name and a value: --header \"Authorization: Bearer ...\""));
    };
    let (name, value) = (name.trim(), value.trim());
    if name.is_empty() || !name.bytes().all(is_token) {
        let start = start_of_name(name);
        return Err(Failure::usage(format!("the --header {start} has a name that HTTP forbids"))
            .hint("a name has letters, digits and hyphens, and ends with the first colon"));
    }
    if let Some((name, why)) = REFUSED.iter().find(|(known, _)| name.eq_ignore_ascii_case(known)) {
        return Err(Failure::usage(format!("the --header {name} cannot be set: {why}"))
            .hint("leave it out"));
    }
    Ok((name, value))
}

/// What is a name for certain: with a space or another sign that names do not have, the value may
/// have begun.
fn start_of_name(text: &str) -> String {
    const MOST: usize = 40;
    let end = text.bytes().position(|byte| !is_token(byte)).unwrap_or(text.len());
    // Without any such sign it may as well be a value.
    if end == 0 || end == text.len() || end > MOST {
        return "option".into();
    }
    format!("{}…", &text[..end])
}

/// RFC 9110, section 5.6.2.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_and_a_value() {
        assert_eq!(parse("X-Two: 2: two ").unwrap(), ("X-Two", "2: two"));
        assert_eq!(parse("x:").unwrap(), ("x", ""));
    }

    #[test]
    fn what_may_be_a_secret_is_not_repeated() {
        for (argument, says) in [
            ("Authorization Bearer s3cret", "Authorization…"),
            ("Authorization Bearer s3cret:x", "Authorization…"),
            ("X-Key=s3cret:x", "X-Key…"),
            ("s3cret", "option"),
            (": s3cret", "option"),
            ("\u{e9}: s3cret", "option"),
        ] {
            let said = parse(argument).unwrap_err().to_string();
            assert!(said.contains(says) && !said.contains("s3cret"), "{said}");
        }
    }

    #[test]
    fn what_is_not_the_callers_is_refused_with_a_reason() {
        for (name, why) in REFUSED {
            let said = parse(&format!("{}: 1", name.to_uppercase())).unwrap_err().to_string();
            assert!(said.contains(name) && said.contains(why), "{said}");
        }
    }
}
