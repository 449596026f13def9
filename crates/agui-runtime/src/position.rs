//! Where a viewer is in the log of a thread, as it names the place.

use std::io::Write;

use agui_journal::{Cursor, ThreadKey};
use agui_types::JsonObject;
use agui_types::json::{read_string, write_string};
use bytes::Bytes;
use http::HeaderMap;

/// How the places of one thread are named: the position, and a mark of the thread, so that a place in
/// one thread is not taken for one in another. To viewers it is an opaque text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Places {
    mark: [u8; 9],
}

/// Where a viewer wants to read on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum From {
    /// From the beginning: it has named no place.
    Start,
    /// Behind this place.
    Behind(Cursor),
    /// It has named a place that is none of this thread.
    Nowhere,
}

impl Places {
    pub(crate) fn of(thread: &ThreadKey) -> Self {
        // FNV-1a: the same in every process, which the standard library's hash need not be.
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        let tenant = thread.tenant.as_str().bytes();
        for byte in tenant.chain([0xff]).chain(thread.thread.as_str().bytes()) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        let hash = (hash >> 32) ^ (hash & 0xffff_ffff);
        let mut mark = [0; 9];
        // A dash and eight digits: it fits.
        let _ = write!(&mut mark[..], "-{hash:08x}");
        Self { mark }
    }

    /// The name of a place.
    pub(crate) fn name(self, position: u64) -> Name {
        let mut text = [0; 29];
        let mut at = 20;
        let mut rest = position;
        loop {
            at -= 1;
            text[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        text[20..].copy_from_slice(&self.mark);
        Name { text, at }
    }

    /// The place that a name names. A bare number is one as well.
    fn read(self, name: &str) -> From {
        let (position, mark) = name.split_at(name.find('-').unwrap_or(name.len()));
        let here = mark.is_empty() || mark.as_bytes() == self.mark;
        let digits = !position.is_empty() && position.bytes().all(|byte| byte.is_ascii_digit());
        match position.parse() {
            Ok(position) if here && digits => From::Behind(Cursor::after(position)),
            _ => From::Nowhere,
        }
    }

    /// Where a viewer wants to read on: `Last-Event-ID`, or what its body says. An empty one names no
    /// place.
    pub(crate) fn asked(self, headers: &HeaderMap, last_seen: Option<&str>) -> From {
        if let Some(header) = headers.get("last-event-id").filter(|value| !value.is_empty()) {
            return header.to_str().map_or(From::Nowhere, |name| self.read(name.trim()));
        }
        let Some(member) = last_seen else {
            return From::Start;
        };
        match read_string(member) {
            Some(name) if name.trim().is_empty() => From::Start,
            Some(name) => self.read(name.trim()),
            None if member.trim() == "null" => From::Start,
            None => From::Nowhere,
        }
    }
}

/// Takes the member `lastSeenEventId` out of a viewer's body, as its exact text: it is the runtime's, and
/// the protocol's input has none of that name.
pub(crate) fn take_last_seen(body: Bytes) -> (Bytes, Option<String>) {
    const NAME: &str = "lastSeenEventId";
    let text = std::str::from_utf8(&body).ok().filter(|text| text.contains(NAME));
    let Some(object) = text.and_then(|text| JsonObject::parse(text).ok()) else {
        return (body, None);
    };
    let Some(member) = object.get(NAME).map(str::to_owned) else { return (body, None) };
    let mut rest = Vec::with_capacity(body.len());
    for (name, value) in object.members().filter(|(name, _)| name != NAME) {
        rest.push(if rest.is_empty() { b'{' } else { b',' });
        write_string(&mut rest, &name);
        rest.push(b':');
        rest.extend_from_slice(value.as_bytes());
    }
    rest.extend_from_slice(if rest.is_empty() { b"{}" } else { b"}" });
    (rest.into(), Some(member))
}

/// The name of a place.
#[derive(Clone, Copy)]
pub(crate) struct Name {
    text: [u8; 29],
    at: usize,
}

impl Name {
    pub(crate) fn as_str(&self) -> &str {
        // Digits, a dash, hexadecimal digits.
        std::str::from_utf8(&self.text[self.at..]).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use agui_journal::Tenant;
    use http::HeaderValue;

    use super::*;

    fn places(tenant: &str, thread: &str) -> Places {
        Places::of(&ThreadKey::new(Tenant::new(tenant), thread))
    }

    #[test]
    fn a_name_is_read_where_it_was_given() {
        let here = places("", "t");
        for position in [0, 9, 10, 1_234_567_890, u64::MAX] {
            let name = here.name(position);
            assert!(name.as_str().starts_with(&format!("{position}-")));
            assert_eq!(here.read(name.as_str()), From::Behind(Cursor::after(position)));
            assert_eq!(here.read(&position.to_string()), From::Behind(Cursor::after(position)));
            for elsewhere in [places("", "u"), places("t", ""), places("t", "t")] {
                assert_eq!(elsewhere.read(name.as_str()), From::Nowhere);
            }
        }
    }

    #[test]
    fn what_is_no_name_is_nowhere() {
        let here = places("", "t");
        let garbage = ["-", "x", "+1", "-1", "1-", "1-2-3", "1 2", "99999999999999999999", "1.0"];
        for name in garbage {
            assert_eq!(here.read(name), From::Nowhere, "{name}");
        }
    }

    #[test]
    fn the_header_comes_before_the_body_and_nothing_is_the_start() {
        let here = places("", "t");
        let mut headers = HeaderMap::new();
        for nothing in ["", "{", "{}", r#"{"lastSeenEventId":null}"#, r#"{"lastSeenEventId":" "}"#]
        {
            let (_, last_seen) = take_last_seen(Bytes::from(nothing));
            assert_eq!(here.asked(&headers, last_seen.as_deref()), From::Start, "{nothing}");
        }
        assert_eq!(here.asked(&headers, Some("7")), From::Nowhere);
        let body = Some("\"7\"");
        assert_eq!(here.asked(&headers, body), From::Behind(Cursor::after(7)));
        headers.insert("last-event-id", HeaderValue::from_static(""));
        assert_eq!(here.asked(&headers, body), From::Behind(Cursor::after(7)));
        headers.insert("last-event-id", HeaderValue::from_static("8"));
        assert_eq!(here.asked(&headers, body), From::Behind(Cursor::after(8)));
        headers.insert("last-event-id", HeaderValue::from_bytes(b"\xe9").unwrap());
        assert_eq!(here.asked(&headers, body), From::Nowhere);
    }

    #[test]
    fn the_place_is_taken_out_and_nothing_else() {
        for (body, rest, member) in [
            (r#"{"lastSeenEventId":"7"}"#, "{}", Some("\"7\"")),
            (
                r#" {"a" : [1.0], "lastSeenEventId": 7 ,"b\u0022\n":"lastSeenEventId"} "#,
                r#"{"a":[1.0],"b\"\n":"lastSeenEventId"}"#,
                Some("7"),
            ),
            (r#"{"lastSeenEventId":1,"a":2,"lastSeenEventId":"2"}"#, r#"{"a":2}"#, Some("\"2\"")),
            (r#"{"a":{"lastSeenEventId":1}}"#, r#"{"a":{"lastSeenEventId":1}}"#, None),
            (r#"{"lastSeenEventId":1"#, r#"{"lastSeenEventId":1"#, None),
            (r#"["lastSeenEventId"]"#, r#"["lastSeenEventId"]"#, None),
        ] {
            let (found, taken) = take_last_seen(Bytes::from(body));
            assert_eq!((&*found, taken.as_deref()), (rest.as_bytes(), member));
        }
    }
}
