//! The web page: one file, with nothing from anywhere else.

use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::http::header::{REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS};
use axum::response::IntoResponse;

const PAGE: &str = include_str!("../page/index.html");

/// Where the page has the nonce that lets its own script and style run, and no others.
const NONCE: &str = "{{nonce}}";

/// `GET /`
pub(super) async fn page() -> impl IntoResponse {
    let nonce = uuid::Uuid::now_v7().simple().to_string();
    let policy = format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; \
         connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; \
         frame-ancestors 'none'"
    );
    let headers = [
        (CONTENT_TYPE, "text/html; charset=utf-8".to_owned()),
        (CONTENT_SECURITY_POLICY, policy),
        (CACHE_CONTROL, "no-store".to_owned()),
        (REFERRER_POLICY, "no-referrer".to_owned()),
        (X_CONTENT_TYPE_OPTIONS, "nosniff".to_owned()),
    ];
    (headers, PAGE.replace(NONCE, &nonce))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_needs_nothing_from_elsewhere() {
        assert_eq!(PAGE.matches(NONCE).count(), 2);
        for outside in ["http://", "https://", "//cdn", "@import", "src=", "url("] {
            assert!(!PAGE.contains(outside), "{outside}");
        }
    }

    #[test]
    fn the_page_shows_text_as_text() {
        // C-93
        let markup =
            ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "srcdoc", "eval("];
        for way in markup {
            assert!(!PAGE.contains(way), "{way}");
        }
    }
}
