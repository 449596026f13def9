//! Text from elsewhere, made safe to be shown on a terminal.
//!
//! What controls a terminal, or has a text read in another order or as other lines than it has, is
//! shown as U+FFFD: control characters, the bidirectional controls, the line and paragraph
//! separators of Unicode, and characters that carry tags.

/// The most characters of a name or a value in a line.
pub(crate) const MOST_SHOWN: usize = 200;

/// A text of several lines: line feeds and tabs stay as they are. A carriage return is left out,
/// which makes one line end of CR LF.
pub(crate) fn text(text: &str) -> String {
    let shown = |c| match c {
        '\r' => None,
        '\n' | '\t' => Some(c),
        c => Some(harmless(c)),
    };
    text.chars().filter_map(shown).collect()
}

/// A text of any length in one line: each run of white space is a space.
pub(crate) fn line(text: &str) -> String {
    first(text, usize::MAX)
}

/// The beginning of a text, in one line: at most [`MOST_SHOWN`] characters.
pub(crate) fn shortened(text: &str) -> String {
    first(text, MOST_SHOWN)
}

/// At most `most` characters of a text, in one line.
pub(crate) fn first(text: &str, most: usize) -> String {
    let mut line = String::new();
    let (mut shown, mut space) = (0, false);
    for c in text.trim().chars() {
        if shown >= most {
            line.push('…');
            break;
        }
        // No white space to `char`, but the end of a line to some terminals: U+0085.
        let is_space = c.is_whitespace();
        if is_space && space {
            continue;
        }
        line.push(if is_space { ' ' } else { harmless(c) });
        (shown, space) = (shown + 1, is_space);
    }
    line
}

/// JSON, which stays the same JSON: what is not safe is escaped.
pub(crate) fn json(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        if harmless(c) == c {
            safe.push(c);
        } else {
            // Outside strings there is none of them.
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                safe.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    safe
}

fn harmless(c: char) -> char {
    match c {
        '\u{61c}'
        | '\u{200e}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2066}'..='\u{2069}'
        | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e007f}' => '\u{fffd}',
        c if c.is_control() => '\u{fffd}',
        c => c,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVIL: &str =
        "a\x1b]0;t\x07\u{9b}31m\u{202e}b\u{2066}\u{200f}\u{61c}\u{2028}\u{2029}\u{e0041}\u{7f}";

    #[test]
    fn nothing_controls_a_terminal() {
        for shown in [text(EVIL), line(EVIL), shortened(EVIL)] {
            let unsafe_char = |c: char| harmless(c) != c;
            assert!(!shown.contains(unsafe_char), "{shown:?}");
            assert!(shown.starts_with("a\u{fffd}]0;t\u{fffd}\u{fffd}31m\u{fffd}b"), "{shown:?}");
        }
    }

    #[test]
    fn a_text_keeps_its_lines_and_a_line_is_one() {
        assert_eq!(text("a\r\nb\tc\n"), "a\nb\tc\n");
        assert_eq!(line(" a\r\n\n b\tc\u{85}d\u{2028}e "), "a b c d e");
        assert_eq!(line(&"x".repeat(1000)).len(), 1000);
    }

    #[test]
    fn what_is_shortened_is_no_longer_than_it_may_be() {
        for text in ["x".repeat(MOST_SHOWN), "é".repeat(MOST_SHOWN)] {
            assert_eq!(shortened(&text), text);
            assert_eq!(shortened(&format!("{text}y")), format!("{text}…"));
        }
        let words = shortened(&"word ".repeat(1_000_000));
        assert_eq!(words.chars().count(), MOST_SHOWN + 1);
    }

    #[test]
    fn json_stays_what_it_is() {
        let written = serde_json::to_string(&format!("{EVIL}\\\n")).unwrap();
        let shown = json(&written);
        assert!(!shown.contains(|c| harmless(c) != c), "{shown:?}");
        assert_eq!(serde_json::from_str::<String>(&shown).unwrap(), format!("{EVIL}\\\n"));
        assert!(shown.contains("\\u202e") && shown.contains("\\udb40\\udc41"), "{shown}");
    }
}
