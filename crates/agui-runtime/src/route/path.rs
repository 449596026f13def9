//! Routes by path.

use std::borrow::Cow;

use http::Method;
use percent_encoding::percent_decode_str;

use super::Operation;

/// What stands behind a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// An operation.
    Operation(Operation),
    /// The mount itself, where envelopes are posted.
    Base,
    /// A path that is known, with a method that is not: what `Allow` has to say.
    WrongMethod(&'static str),
    /// Nothing.
    Nothing,
}

/// Finds what a method and a path below `base` ask for. `base` has no trailing slash; the empty one
/// strips nothing.
///
/// The whole of the rest has to match, from the left, so that an id is never taken for a route.
/// Empty segments count for nothing: `/info/` and `//info` are `/info`.
pub(crate) fn resolve(method: &Method, path: &str, base: &str) -> Found {
    let Some(rest) =
        path.strip_prefix(base).filter(|rest| rest.is_empty() || rest.starts_with('/'))
    else {
        return Found::Nothing;
    };
    let mut segments = Vec::with_capacity(4);
    for segment in rest.split('/').filter(|segment| !segment.is_empty()) {
        match decode(segment) {
            // No route has more, and a path is as long as its sender likes.
            Some(segment) if segments.len() < 5 => segments.push(segment),
            _ => return Found::Nothing,
        }
    }
    let segments: Vec<&str> = segments.iter().map(AsRef::as_ref).collect();
    let owned = |text: &str| text.to_owned();
    let (operation, allow) = match segments[..] {
        [] => return Found::Base,
        ["info"] => (Operation::Info, "GET"),
        ["agent", agent, "run"] => (Operation::Run { agent: owned(agent) }, "POST"),
        ["agent", agent, "connect"] => (Operation::Connect { agent: owned(agent) }, "POST"),
        ["agent", agent, "suggest"] => (Operation::Suggest { agent: owned(agent) }, "POST"),
        ["agent", agent, "stop", thread] => {
            (Operation::Stop { agent: owned(agent), thread: owned(thread) }, "POST")
        }
        ["transcribe"] => (Operation::Transcribe, "POST"),
        ["threads"] => (Operation::ListThreads, "GET"),
        ["threads", thread] if method == Method::DELETE => {
            return Found::Operation(Operation::DeleteThread { thread: owned(thread) });
        }
        ["threads", thread] if method == Method::PATCH => {
            return Found::Operation(Operation::UpdateThread { thread: owned(thread) });
        }
        // Behind those two: a thread may have this name.
        ["threads", "clear"] if method == Method::POST => {
            return Found::Operation(Operation::ClearThreads);
        }
        ["threads", "subscribe"] if method == Method::POST => {
            return Found::Operation(Operation::SubscribeThreads);
        }
        ["threads", "clear" | "subscribe"] => return Found::WrongMethod("POST, PATCH, DELETE"),
        ["threads", _] => return Found::WrongMethod("PATCH, DELETE"),
        ["threads", thread, "archive"] => {
            (Operation::ArchiveThread { thread: owned(thread) }, "POST")
        }
        ["threads", thread, "messages"] => {
            (Operation::ThreadMessages { thread: owned(thread) }, "GET")
        }
        ["threads", thread, "events"] => (Operation::ThreadEvents { thread: owned(thread) }, "GET"),
        ["threads", thread, "state"] => (Operation::ThreadState { thread: owned(thread) }, "GET"),
        ["inspector-metadata"] => (Operation::InspectorMetadata, "GET"),
        ["cpk-debug-events"] => (Operation::DebugEvents, "GET"),
        ["annotate"] => (Operation::Annotate, "POST"),
        // `memories` is as if it were not there.
        _ => return Found::Nothing,
    };
    if method.as_str() == allow { Found::Operation(operation) } else { Found::WrongMethod(allow) }
}

/// A segment, decoded once, so that `%2F` stays a slash inside an id. `None` where it is no UTF-8
/// then, or holds a `%` without two digits.
fn decode(segment: &str) -> Option<Cow<'_, str>> {
    let bytes = segment.as_bytes();
    let escapes = (0..bytes.len()).filter(|at| bytes[*at] == b'%');
    let whole = |at: usize| {
        bytes.get(at + 1..at + 3).is_some_and(|pair| pair.iter().all(u8::is_ascii_hexdigit))
    };
    if !escapes.into_iter().all(whole) {
        return None;
    }
    percent_decode_str(segment).decode_utf8().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(path: &str) -> Found {
        resolve(&Method::GET, path, "/api/copilotkit")
    }

    fn post(path: &str) -> Found {
        resolve(&Method::POST, path, "/api/copilotkit")
    }

    fn run(agent: &str) -> Found {
        Found::Operation(Operation::Run { agent: agent.into() })
    }

    #[test]
    fn slashes_too_many_do_not_matter() {
        for path in ["/info", "/info/", "//info", "//info//"] {
            let path = format!("/api/copilotkit{path}");
            assert_eq!(get(&path), Found::Operation(Operation::Info), "{path}");
        }
        assert_eq!(post("/api/copilotkit"), Found::Base);
        assert_eq!(post("/api/copilotkit/"), Found::Base);
    }

    #[test]
    fn the_base_ends_at_a_segment_and_the_whole_rest_has_to_match() {
        for path in [
            "/api/copilotkitinfo",
            "/api/copilotkit2/info",
            "/API/copilotkit/info",
            "/info",
            "/api/copilotkit/x/y/info",
            "/api/copilotkit/Info",
            "/api/copilotkit/agent/a/run/b",
            "/api/copilotkit/a/b/c/d/e/f/g",
            "/api/copilotkit/memories",
            "/api/copilotkit/memories/recall",
        ] {
            assert_eq!(get(path), Found::Nothing, "{path}");
        }
        let everywhere = resolve(&Method::GET, "/info", "");
        assert_eq!(everywhere, Found::Operation(Operation::Info));
    }

    #[test]
    fn ids_are_decoded_once() {
        assert_eq!(post("/api/copilotkit/agent/a%2Fb/run"), run("a/b"));
        assert_eq!(post("/api/copilotkit/agent/a%252Fb/run"), run("a%2Fb"));
        assert_eq!(post("/api/copilotkit/agent/caf%C3%A9/run"), run("café"));
        assert_eq!(post("/api/copilotkit/agent/caf%C3%A9 au lait/run"), run("café au lait"));
        for path in ["%", "%2", "%zz", "a%", "%ff", "%C3%28"] {
            let path = format!("/api/copilotkit/agent/{path}/run");
            assert_eq!(post(&path), Found::Nothing, "{path}");
        }
    }

    #[test]
    fn a_thread_may_be_called_like_a_route() {
        for thread in ["info", "transcribe", "inspector-metadata", "cpk-debug-events", "threads"] {
            let stop = Operation::Stop { agent: "default".into(), thread: thread.into() };
            let path = format!("/api/copilotkit/agent/default/stop/{thread}");
            assert_eq!(post(&path), Found::Operation(stop));
            let messages = Operation::ThreadMessages { thread: thread.into() };
            let path = format!("/api/copilotkit/threads/{thread}/messages");
            assert_eq!(get(&path), Found::Operation(messages));
        }
        for thread in ["clear", "subscribe"] {
            let path = format!("/threads/{thread}");
            let delete = Operation::DeleteThread { thread: thread.into() };
            assert_eq!(resolve(&Method::DELETE, &path, ""), Found::Operation(delete));
            let update = Operation::UpdateThread { thread: thread.into() };
            assert_eq!(resolve(&Method::PATCH, &path, ""), Found::Operation(update));
        }
        assert_eq!(
            post("/api/copilotkit/threads/clear"),
            Found::Operation(Operation::ClearThreads)
        );
    }

    #[test]
    fn a_wrong_method_is_told_the_right_ones() {
        assert_eq!(get("/api/copilotkit/agent/default/run"), Found::WrongMethod("POST"));
        assert_eq!(get("/api/copilotkit/threads/t"), Found::WrongMethod("PATCH, DELETE"));
        assert_eq!(post("/api/copilotkit/info"), Found::WrongMethod("GET"));
        let head = resolve(&Method::HEAD, "/info", "");
        assert_eq!(head, Found::WrongMethod("GET"));
    }

    /// Every path, with every method: `Allow` names those that are taken, and no other.
    #[test]
    fn allow_names_each_method_that_the_path_takes() {
        let methods = [
            Method::GET,
            Method::HEAD,
            Method::POST,
            Method::PUT,
            Method::PATCH,
            Method::DELETE,
            Method::OPTIONS,
            Method::TRACE,
        ];
        for path in [
            "/info",
            "/agent/a/run",
            "/agent/a/connect",
            "/agent/a/suggest",
            "/agent/a/stop/t",
            "/transcribe",
            "/threads",
            "/threads/t",
            "/threads/clear",
            "/threads/subscribe",
            "/threads/t/archive",
            "/threads/t/messages",
            "/threads/t/events",
            "/threads/t/state",
            "/threads/clear/messages",
            "/inspector-metadata",
            "/cpk-debug-events",
            "/annotate",
        ] {
            let found = methods.each_ref().map(|method| resolve(method, path, ""));
            let taken: Vec<&str> = methods
                .iter()
                .zip(&found)
                .filter(|(_, found)| matches!(found, Found::Operation(_)))
                .map(|(method, _)| method.as_str())
                .collect();
            for found in &found {
                let Found::WrongMethod(allow) = found else { continue };
                let mut allowed: Vec<&str> = allow.split(", ").collect();
                allowed.sort_by_key(|it| methods.iter().position(|method| method == it));
                assert_eq!(allowed, taken, "{path}");
            }
            assert!(!taken.is_empty(), "{path}");
        }
    }
}
