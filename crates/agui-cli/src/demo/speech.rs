//! Text as a model would stream it: word by word, with a short pause after each.

use std::time::Duration;

use agui_agent::emitter::{EmitError, Emitter};
use agui_types::MessageId;

/// How long a word takes.
const PAUSE: Duration = Duration::from_millis(30);

/// How many pieces a text is cut into at most, so that a long echo ends within seconds.
pub(super) const MOST_PIECES: usize = 200;

/// Streams a text message of the assistant.
pub(super) async fn say(emitter: &Emitter, text: &str) -> Result<MessageId, EmitError> {
    let mut message = emitter.text().await?;
    for piece in pieces(text) {
        message.push(piece).await?;
        pause().await;
    }
    message.end().await
}

/// Waits for as long as a word takes.
pub(super) async fn pause() {
    tokio::time::sleep(PAUSE).await;
}

/// The text in pieces of one word each, white space included; of several words where there would be
/// more than [`MOST_PIECES`].
pub(super) fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut words = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let word = rest.find(|c: char| !c.is_whitespace()).unwrap_or(rest.len());
        let space = rest[word..].find(char::is_whitespace).map_or(rest.len(), |at| word + at);
        let next = rest[space..].find(|c: char| !c.is_whitespace());
        let end = next.map_or(rest.len(), |at| space + at);
        words.push(end);
        rest = &rest[end..];
    }
    let each = words.len().div_ceil(MOST_PIECES).max(1);
    let lengths: Vec<usize> = words.chunks(each).map(|group| group.iter().sum()).collect();
    let mut rest = text;
    lengths.into_iter().map(move |length| {
        let (piece, after) = rest.split_at(length);
        rest = after;
        piece
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_behind_the_white_space_after_each_word() {
        let cut = |text| pieces(text).collect::<Vec<_>>();
        assert_eq!(cut("  one\n\ntwo 三 "), ["  one\n\n", "two ", "三 "]);
        assert_eq!(cut("one"), ["one"]);
        assert_eq!(cut(" \n"), [" \n"]);
        assert!(cut("").is_empty());
    }

    #[test]
    fn a_long_text_is_cut_into_a_limited_number_of_pieces() {
        for words in [MOST_PIECES, MOST_PIECES + 1, 10 * MOST_PIECES + 7] {
            let text = "word ".repeat(words);
            let cut: Vec<&str> = pieces(&text).collect();
            assert!(cut.len() <= MOST_PIECES, "{words} words in {} pieces", cut.len());
            assert_eq!(cut.concat(), text);
        }
        assert_eq!(pieces(&"word ".repeat(MOST_PIECES)).count(), MOST_PIECES);
    }
}
