//! The kinds of values.

use std::net::SocketAddr;
use std::time::Duration;

use agui_runtime::BusyPolicy;

use super::tree::{Node, Origin, Value};
use crate::logging::LogFormat;

/// The variables of the environment.
pub(super) type Lookup<'e> = &'e dyn Fn(&str) -> Option<String>;

/// A kind of value.
pub(super) trait Setting: Sized {
    /// What is expected.
    const EXPECTED: &'static str;

    /// One, as TOML.
    const EXAMPLE: &'static str;

    /// Reads one, or says what is wrong.
    fn read(node: &Node, environment: Lookup<'_>) -> Result<Self, String>;

    /// The value as TOML, without secrets.
    fn show(&self) -> String;

    /// What to write.
    fn fix(key: &str) -> String {
        let example = Self::EXAMPLE;
        format!("write for example {key} = {example}")
    }

    /// What was found in place of one.
    fn wrong(node: &Node) -> String {
        let found = match &node.value {
            Value::Text(text) if text.chars().count() <= SHOWN => format!("{text:?}"),
            Value::Integer(number) => number.to_string(),
            other => other.kind().into(),
        };
        format!("expected {}, found {found}", Self::EXPECTED)
    }
}

/// The longest text that a message repeats, in characters.
const SHOWN: usize = 60;

/// The longest duration: ten years. The system's clock has no room for just any.
const LONGEST: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

fn text(value: &str) -> String {
    // TOML's basic strings are JSON's, but for DEL.
    serde_json::to_string(value).unwrap_or_default().replace('\u{7f}', "\\u007F")
}

/// The text of a value that everything but a file has to write as text.
fn spelled(node: &Node) -> Option<&str> {
    match (&node.value, &node.origin) {
        (_, Origin::File { .. }) => None,
        (Value::Text(text), _) => Some(text.trim()),
        _ => None,
    }
}

impl Setting for bool {
    const EXPECTED: &'static str = "true or false";
    const EXAMPLE: &'static str = "true";

    fn read(node: &Node, _: Lookup<'_>) -> Result<Self, String> {
        match (&node.value, spelled(node)) {
            (Value::Boolean(yes), _) => Ok(*yes),
            (_, Some("true")) => Ok(true),
            (_, Some("false")) => Ok(false),
            _ => Err(Self::wrong(node)),
        }
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

impl Setting for String {
    const EXPECTED: &'static str = "a text";
    const EXAMPLE: &'static str = "\"text\"";

    fn read(node: &Node, _: Lookup<'_>) -> Result<Self, String> {
        match &node.value {
            Value::Text(text) => Ok(text.clone()),
            _ => Err(Self::wrong(node)),
        }
    }

    fn show(&self) -> String {
        text(self)
    }
}

impl Setting for SocketAddr {
    const EXPECTED: &'static str = "an IP address and a port, such as 127.0.0.1:4100 or [::1]:0";
    const EXAMPLE: &'static str = "\"127.0.0.1:4100\"";

    fn read(node: &Node, _: Lookup<'_>) -> Result<Self, String> {
        let address = match &node.value {
            Value::Text(text) => text.parse().ok(),
            _ => None,
        };
        address.ok_or_else(|| Self::wrong(node))
    }

    fn show(&self) -> String {
        text(&self.to_string())
    }
}

/// A list of texts; outside a file, one text with commas.
impl Setting for Vec<String> {
    const EXPECTED: &'static str = "a list of texts";
    const EXAMPLE: &'static str = "[\"one\", \"two\"]";

    fn read(node: &Node, _: Lookup<'_>) -> Result<Self, String> {
        if let Some(text) = spelled(node) {
            let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
            return Ok(items.map(str::to_owned).collect());
        }
        let Value::List(items) = &node.value else { return Err(Self::wrong(node)) };
        let items = items.iter().enumerate().map(|(at, item)| match &item.value {
            Value::Text(text) => Ok(text.clone()),
            other => Err(format!("expected a text as entry {}, found {}", at + 1, other.kind())),
        });
        items.collect()
    }

    fn show(&self) -> String {
        format!("[{}]", self.iter().map(|item| text(item)).collect::<Vec<_>>().join(", "))
    }
}

/// A number of things, at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Count(pub(super) u64);

impl Setting for Count {
    const EXPECTED: &'static str = "a number of 1 or more";
    const EXAMPLE: &'static str = "100";

    fn read(node: &Node, _: Lookup<'_>) -> Result<Self, String> {
        let number = match &node.value {
            Value::Integer(number) => u64::try_from(*number).ok(),
            _ => spelled(node).and_then(|text| text.replace('_', "").parse().ok()),
        };
        // What the platform can count is enough for anything that is counted.
        let fits = |number: &u64| *number > 0 && usize::try_from(*number).is_ok();
        number.filter(fits).map(Self).ok_or_else(|| Self::wrong(node))
    }

    fn show(&self) -> String {
        self.0.to_string()
    }
}

impl Count {
    pub(super) fn size(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

/// A number of bytes, at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bytes(pub(super) u64);

/// The units of bytes, the largest first.
const BYTE_UNITS: [(&str, u64); 7] = [
    ("GiB", 1 << 30),
    ("GB", 1_000_000_000),
    ("MiB", 1 << 20),
    ("MB", 1_000_000),
    ("KiB", 1 << 10),
    ("kB", 1_000),
    ("B", 1),
];

impl Setting for Bytes {
    const EXPECTED: &'static str = "a number of bytes of 1 or more, such as 4096, \"64 KiB\", \
                                    \"10 MiB\" or \"2 GiB\"";
    const EXAMPLE: &'static str = "\"10 MiB\"";

    fn read(node: &Node, _: Lookup<'_>) -> Result<Self, String> {
        let bytes = match &node.value {
            Value::Integer(number) => u64::try_from(*number).ok(),
            Value::Text(text) => parse_bytes(text.trim()),
            _ => None,
        };
        let fits = |bytes: &u64| *bytes > 0 && usize::try_from(*bytes).is_ok();
        bytes.filter(fits).map(Self).ok_or_else(|| Self::wrong(node))
    }

    fn show(&self) -> String {
        let binary = BYTE_UNITS.iter().filter(|(unit, _)| unit.ends_with("iB"));
        let mut binary = binary.filter(|(_, size)| self.0.is_multiple_of(*size));
        match binary.next() {
            Some((unit, size)) => format!("\"{} {unit}\"", self.0 / size),
            None => self.0.to_string(),
        }
    }
}

impl Bytes {
    pub(super) fn size(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

fn parse_bytes(text: &str) -> Option<u64> {
    let units =
        || BYTE_UNITS.iter().find_map(|(unit, size)| Some((text.strip_suffix(unit)?, size)));
    let (number, size) = units().unwrap_or((text, &1));
    number.trim_end().parse::<u64>().ok()?.checked_mul(*size)
}

/// A time span; zero is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span(pub(super) Duration);

/// The units of time, with their milliseconds, the largest first.
const TIME_UNITS: [(&str, u64); 5] =
    [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

impl Setting for Span {
    const EXPECTED: &'static str =
        "a duration of at most 3650d, such as 15s, 500ms, 10m, 2h or 30d, or a number of seconds";
    const EXAMPLE: &'static str = "\"15s\"";

    fn read(node: &Node, _: Lookup<'_>) -> Result<Self, String> {
        let span = match &node.value {
            Value::Integer(seconds) => u64::try_from(*seconds).ok().map(Duration::from_secs),
            Value::Float(seconds) => Duration::try_from_secs_f64(*seconds).ok(),
            Value::Text(text) => parse_span(text.trim()),
            _ => None,
        };
        span.filter(|span| *span <= LONGEST).map(Self).ok_or_else(|| Self::wrong(node))
    }

    fn show(&self) -> String {
        let milliseconds = self.0.as_millis();
        let whole = |(_, size): &&(&str, u64)| milliseconds.is_multiple_of(u128::from(*size));
        match TIME_UNITS.iter().find(whole) {
            _ if !self.0.subsec_nanos().is_multiple_of(1_000_000) => {
                format!("{:?}", self.0.as_secs_f64())
            }
            Some(_) if milliseconds == 0 => "\"0s\"".into(),
            Some((unit, size)) => format!("\"{}{unit}\"", milliseconds / u128::from(*size)),
            None => format!("\"{milliseconds}ms\""),
        }
    }
}

fn parse_span(text: &str) -> Option<Duration> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "" => 1_000,
        unit => TIME_UNITS.iter().find(|(name, _)| *name == unit)?.1,
    };
    let number: f64 = digits.trim_end().parse().ok()?;
    Duration::try_from_secs_f64(number * (unit as f64) / 1_000.0).ok()
}

/// A time span that is longer than nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Positive(pub(super) Duration);

impl Setting for Positive {
    const EXPECTED: &'static str = "a duration of at most 3650d, longer than nothing, such as 15s, \
                                    500ms, 10m, 2h or 30d, or a number of seconds";
    const EXAMPLE: &'static str = Span::EXAMPLE;

    fn read(node: &Node, environment: Lookup<'_>) -> Result<Self, String> {
        match Span::read(node, environment) {
            Ok(Span(span)) if !span.is_zero() => Ok(Self(span)),
            _ => Err(Self::wrong(node)),
        }
    }

    fn show(&self) -> String {
        Span(self.0).show()
    }
}

/// A bound, or the word `"none"` for none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bound<T>(pub(super) Option<T>);

impl<T: Setting + Expected> Setting for Bound<T> {
    const EXPECTED: &'static str = T::OR_NONE;
    const EXAMPLE: &'static str = T::EXAMPLE;

    fn read(node: &Node, environment: Lookup<'_>) -> Result<Self, String> {
        match &node.value {
            Value::Text(text) if text == "none" => Ok(Self(None)),
            _ => match T::read(node, environment) {
                Ok(bound) => Ok(Self(Some(bound))),
                Err(_) => Err(Self::wrong(node)),
            },
        }
    }

    fn show(&self) -> String {
        self.0.as_ref().map_or_else(|| "\"none\"".into(), T::show)
    }
}

/// What is expected where there may be none.
pub(super) trait Expected {
    const OR_NONE: &'static str;
}

impl Expected for Count {
    const OR_NONE: &'static str = "a number of 1 or more, or \"none\"";
}

impl Expected for Bytes {
    const OR_NONE: &'static str =
        "a number of bytes of 1 or more, such as 4096, \"10 MiB\" or \"2 GiB\", or \"none\"";
}

impl Expected for Positive {
    const OR_NONE: &'static str = "a duration of at most 3650d, longer than nothing, such as 15s, \
                                   10m, 2h or 30d, a number of seconds, or \"none\"";
}

/// A value of a few words.
macro_rules! words {
    ($name:ident: $expected:literal, $example:literal, { $($variant:ident = $word:literal),+ }) => {
        impl Setting for $name {
            const EXPECTED: &'static str = $expected;
            const EXAMPLE: &'static str = $example;

            fn read(node: &Node, _: Lookup<'_>) -> Result<Self, String> {
                match &node.value {
                    $(Value::Text(text) if text == $word => Ok(Self::$variant),)+
                    _ => Err(Self::wrong(node)),
                }
            }

            fn show(&self) -> String {
                match self { $(Self::$variant => text($word)),+ }
            }
        }
    };
}

/// How a JWT is signed.
#[cfg(feature = "jwt")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Algorithm {
    Hs256,
    Rs256,
    Es256,
}

words!(BusyPolicy: "\"refuse\" or \"supersede\"", "\"refuse\"", {
    Refuse = "refuse", Supersede = "supersede"
});
words!(LogFormat: "\"text\" or \"json\"", "\"json\"", { Text = "text", Json = "json" });
#[cfg(feature = "jwt")]
words!(Algorithm: "\"HS256\", \"RS256\" or \"ES256\"", "\"RS256\"", {
    Hs256 = "HS256", Rs256 = "RS256", Es256 = "ES256"
});

/// A text in which `${NAME}` stands for a variable of the environment.
#[derive(Clone, Debug)]
pub(super) struct Expanded {
    pub(super) value: String,
    written: String,
}

impl Setting for Expanded {
    const EXPECTED: &'static str = "a text";
    const EXAMPLE: &'static str = "\"http://127.0.0.1:8000/agent\"";

    fn read(node: &Node, environment: Lookup<'_>) -> Result<Self, String> {
        let Value::Text(written) = &node.value else { return Err(Self::wrong(node)) };
        let value = expand(written, environment)?;
        Ok(Self { value, written: written.clone() })
    }

    fn show(&self) -> String {
        text(&without_credentials(&self.written))
    }
}

/// A URL as it may be shown: without what is often a secret in it.
fn without_credentials(url: &str) -> String {
    let (url, query) = url.split_once('?').map_or((url, ""), |(url, _)| (url, "?[redacted]"));
    let Some((scheme, rest)) = url.split_once("://") else { return format!("{url}{query}") };
    let (authority, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
    match authority.rsplit_once('@') {
        Some((_, host)) => format!("{scheme}://[redacted]@{host}{path}{query}"),
        None => format!("{scheme}://{authority}{path}{query}"),
    }
}

/// A text that is not to be seen: as it stands there, with `${NAME}` for variables of the
/// environment, or as `{ env = "NAME" }` or `{ file = "PATH" }`.
#[derive(Clone)]
pub(super) struct Secret {
    pub(super) value: String,
    /// Where it is, where that is elsewhere.
    elsewhere: Option<String>,
}

impl Setting for Secret {
    const EXPECTED: &'static str =
        "a text, { env = \"NAME\" } or { file = \"PATH\" }, that is not empty";
    const EXAMPLE: &'static str = "{ env = \"SECRET\" }";

    fn read(node: &Node, environment: Lookup<'_>) -> Result<Self, String> {
        let (value, elsewhere) = match &node.value {
            Value::Text(written) => {
                let reference = written.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
                let elsewhere = reference.filter(|name| is_name(name)).map(|_| text(written));
                (expand(written, environment)?, elsewhere)
            }
            Value::Table(table) => {
                let [entry] = &table.entries[..] else { return Err(Self::wrong(node)) };
                let Value::Text(place) = &entry.node.value else { return Err(Self::wrong(node)) };
                let elsewhere = format!("{{ {} = {} }}", entry.name, text(place));
                match &*entry.name {
                    "env" => (variable(place, environment)?, Some(elsewhere)),
                    "file" => (from_file(place)?, Some(elsewhere)),
                    _ => return Err(Self::wrong(node)),
                }
            }
            _ => return Err(Self::wrong(node)),
        };
        if value.is_empty() {
            return Err(format!("expected {}, found nothing", Self::EXPECTED));
        }
        Ok(Self { value, elsewhere })
    }

    fn show(&self) -> String {
        self.elsewhere.clone().unwrap_or_else(|| text("[redacted]"))
    }

    fn wrong(node: &Node) -> String {
        format!("expected {}, found {}", Self::EXPECTED, node.value.kind())
    }
}

/// The largest file that a secret is read from, in bytes.
const MOST_SECRET: u64 = 64 * 1024;

fn from_file(path: &str) -> Result<String, String> {
    use std::io::Read;
    let mut text = String::new();
    let read = std::fs::File::open(path)
        .and_then(|file| file.take(MOST_SECRET + 1).read_to_string(&mut text));
    read.map_err(|error| format!("the file {path:?} cannot be read: {error}"))?;
    if text.len() as u64 > MOST_SECRET {
        return Err(format!("the file {path:?} is larger than 64 KiB"));
    }
    // Editors end a file with a line break that nobody means.
    let text = text.strip_suffix('\n').unwrap_or(&text);
    Ok(text.strip_suffix('\r').unwrap_or(text).into())
}

/// Puts variables in place of their names; `$${` is `${`.
fn expand(written: &str, environment: Lookup<'_>) -> Result<String, String> {
    let (mut text, mut rest) = (String::new(), written);
    while let Some(at) = rest.find("${") {
        if let Some(before) = rest[..at].strip_suffix('$') {
            text.push_str(before);
            text.push_str("${");
            rest = &rest[at + 2..];
            continue;
        }
        let (name, after) = rest[at + 2..]
            .split_once('}')
            .ok_or("\"${\" has no \"}\"; \"$${\" stands for \"${\"")?;
        text.push_str(&rest[..at]);
        text.push_str(&variable(name, environment)?);
        rest = after;
    }
    text.push_str(rest);
    Ok(text)
}

fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !name.is_empty() && name.chars().all(plain)
}

fn variable(name: &str, environment: Lookup<'_>) -> Result<String, String> {
    if !is_name(name) {
        return Err(format!("{name:?} is no name of a variable of the environment"));
    }
    environment(name)
        .ok_or_else(|| format!("the environment has no variable {name}, or no text in it"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(value: Value, origin: Origin) -> Node {
        Node { origin, value }
    }

    fn read<T: Setting>(value: Value) -> Result<T, String> {
        let file = Origin::File { file: "agui.toml".into(), line: 1, column: 1 };
        T::read(&given(value, file), &|name| (name == "HERE").then(|| "value".into()))
    }

    fn said<T: Setting>(text: &str) -> Result<T, String> {
        T::read(&given(Value::Text(text.into()), Origin::Flag("--x")), &|_| None)
    }

    #[test]
    fn durations_are_read_and_shown() {
        for (text, milliseconds, shown) in [
            ("0", 0, "\"0s\""),
            ("0.2", 200, "\"200ms\""),
            ("15s", 15_000, "\"15s\""),
            ("1.5 h", 5_400_000, "\"90m\""),
            ("3650d", 315_360_000_000, "\"3650d\""),
        ] {
            let Span(span) = said(text).unwrap();
            assert_eq!(span, Duration::from_millis(milliseconds), "{text}");
            assert_eq!(Span(span).show(), shown);
        }
        assert_eq!(read::<Span>(Value::Integer(3)).unwrap().0, Duration::from_secs(3));
        assert_eq!(read::<Span>(Value::Float(0.5)).unwrap().0, Duration::from_millis(500));
        for wrong in ["", "-1", "nan", "soon", "1e30", "3651d", "1w", "s", "inf", "5 minutes"] {
            assert!(said::<Span>(wrong).unwrap_err().contains("such as 15s"), "{wrong}");
        }
        assert!(read::<Span>(Value::Integer(-1)).is_err());
        assert!(said::<Positive>("0s").is_err());
        assert_eq!(said::<Bound<Positive>>("none").unwrap(), Bound(None));
    }

    #[test]
    fn bytes_are_read_and_shown() {
        for (text, bytes, shown) in [
            ("1", 1, "1"),
            ("64 KiB", 65_536, "\"64 KiB\""),
            ("10MiB", 10 << 20, "\"10 MiB\""),
            ("2 GB", 2_000_000_000, "\"1953125 KiB\""),
            ("1001", 1_001, "1001"),
            ("3 GiB", 3 << 30, "\"3 GiB\""),
        ] {
            assert_eq!(said::<Bytes>(text).unwrap(), Bytes(bytes), "{text}");
            assert_eq!(Bytes(bytes).show(), shown);
        }
        for wrong in ["0", "-1", "", "KiB", "1.5 MiB", "99999999999 GiB", "1 TiB"] {
            assert!(said::<Bytes>(wrong).is_err(), "{wrong}");
        }
        assert!(read::<Count>(Value::Integer(0)).is_err());
        assert_eq!(said::<Count>("10_000").unwrap(), Count(10_000));
        // In a file a number is a number.
        assert!(read::<Count>(Value::Text("5".into())).is_err());
        assert!(read::<bool>(Value::Text("true".into())).is_err());
        assert_eq!(said::<bool>("true"), Ok(true));
    }

    #[test]
    fn lists_are_texts_outside_a_file() {
        assert_eq!(said::<Vec<String>>(" a, b ,").unwrap(), ["a", "b"]);
        let list = |value| read::<Vec<String>>(Value::List(vec![given(value, Origin::Default)]));
        assert_eq!(list(Value::Text("a,b".into())).unwrap(), ["a,b"]);
        assert!(list(Value::Integer(1)).unwrap_err().contains("entry 1"));
        assert!(read::<Vec<String>>(Value::Text("a".into())).is_err());
    }

    #[test]
    fn secrets_are_found_elsewhere_and_never_shown() {
        let inline = |text: &str| read::<Secret>(Value::Text(text.into()));
        let secret = inline("Bearer ${HERE}$${x}").unwrap();
        assert_eq!(secret.value, "Bearer value${x}");
        assert_eq!(secret.show(), "\"[redacted]\"");
        assert_eq!(inline("${HERE}").unwrap().show(), "\"${HERE}\"");
        for (wrong, says) in [
            ("${GONE}", "no variable GONE"),
            ("${", "has no \"}\""),
            ("${a b}", "no name"),
            ("", "found nothing"),
        ] {
            let error = inline(wrong).err().unwrap();
            assert!(error.contains(says), "{wrong}: {error}");
        }
        let table = |name: &str, value: &str| {
            let origin = Origin::Default;
            let mut table = super::super::tree::Table::new(origin.clone());
            table.put(&[name], given(Value::Text(value.into()), origin));
            read::<Secret>(Value::Table(table))
        };
        let secret = table("env", "HERE").unwrap();
        assert_eq!((&*secret.value, &*secret.show()), ("value", "{ env = \"HERE\" }"));
        assert!(table("file", "/nowhere").err().unwrap().contains("/nowhere"));
        assert!(table("vault", "HERE").is_err());
    }

    #[test]
    fn urls_are_shown_without_what_may_be_secret() {
        for (url, shown) in [
            ("http://a.example/x", "http://a.example/x"),
            ("https://u:p@a.example/x@y", "https://[redacted]@a.example/x@y"),
            ("http://a.example/x?key=1", "http://a.example/x?[redacted]"),
            ("nonsense", "nonsense"),
        ] {
            assert_eq!(without_credentials(url), shown);
        }
    }
}
