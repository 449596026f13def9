//! JSON text piece by piece, for those who translate it without building a tree.

use std::borrow::Cow;

use super::{Cursor, Json, Kind, LexError};

/// One piece of a JSON text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Token<'t> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number, as written.
    Number(&'t str),
    /// A string, decoded. A lone surrogate escape reads as U+FFFD.
    String(Cow<'t, str>),
    /// The name of the member whose value comes next, decoded like a string.
    Key(Cow<'t, str>),
    /// `{`
    OpenObject,
    /// `}`
    CloseObject,
    /// `[`
    OpenArray,
    /// `]`
    CloseArray,
}

impl Json {
    /// The pieces of the text in order, from the first to the last of its one value. Objects and
    /// arrays nest at most [`MAX_DEPTH`](super::MAX_DEPTH) levels.
    ///
    /// ```
    /// use agui_types::{Json, json::Token};
    ///
    /// let json = Json::parse(r#"{"a": [1.0]}"#)?;
    /// let tokens: Vec<_> = json.tokens().collect();
    /// assert_eq!(tokens[1..4], [Token::Key("a".into()), Token::OpenArray, Token::Number("1.0")]);
    /// # Ok::<(), agui_types::JsonError>(())
    /// ```
    #[must_use]
    pub fn tokens(&self) -> Tokens<'_> {
        Tokens { cursor: Cursor::new(self.as_str()), levels: 0, depth: 0, ahead: Ahead::Value }
    }
}

/// The pieces of a JSON text; see [`Json::tokens`].
#[derive(Clone)]
pub struct Tokens<'t> {
    cursor: Cursor<'t>,
    /// One bit a level: set for an object, clear for an array.
    levels: u128,
    depth: u32,
    ahead: Ahead,
}

/// What can come next.
#[derive(Clone, Copy)]
enum Ahead {
    Value,
    /// Another member or element of the innermost container, or its end.
    More {
        first: bool,
    },
    Nothing,
}

impl<'t> Tokens<'t> {
    /// How many bytes of the text have been read: the end of the last piece, that of a name with its
    /// colon.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.cursor.offset()
    }

    fn advance(&mut self) -> Result<Option<Token<'t>>, LexError> {
        match self.ahead {
            Ahead::Nothing => Ok(None),
            Ahead::Value => self.value().map(Some),
            Ahead::More { mut first } if self.levels & 1 == 1 => {
                if let Some(key) = self.cursor.next_key(&mut first)? {
                    self.ahead = Ahead::Value;
                    return Ok(Some(Token::Key(key)));
                }
                self.close();
                Ok(Some(Token::CloseObject))
            }
            Ahead::More { mut first } => {
                if self.cursor.next_element(&mut first)? {
                    return self.value().map(Some);
                }
                self.close();
                Ok(Some(Token::CloseArray))
            }
        }
    }

    fn value(&mut self) -> Result<Token<'t>, LexError> {
        let token = match self.cursor.kind()? {
            Kind::Null => {
                self.cursor.null()?;
                Token::Null
            }
            Kind::Bool => Token::Bool(self.cursor.bool()?),
            Kind::Number => Token::Number(self.cursor.number()?),
            Kind::String => Token::String(self.cursor.string()?),
            Kind::Object => {
                self.cursor.open_object()?;
                self.open(1);
                return Ok(Token::OpenObject);
            }
            Kind::Array => {
                self.cursor.open_array()?;
                self.open(0);
                return Ok(Token::OpenArray);
            }
        };
        self.after_value();
        Ok(token)
    }

    fn open(&mut self, level: u128) {
        self.levels = self.levels << 1 | level;
        self.depth += 1;
        self.ahead = Ahead::More { first: true };
    }

    fn close(&mut self) {
        self.levels >>= 1;
        self.depth -= 1;
        self.after_value();
    }

    fn after_value(&mut self) {
        self.ahead = if self.depth == 0 { Ahead::Nothing } else { Ahead::More { first: false } };
    }
}

impl<'t> Iterator for Tokens<'t> {
    type Item = Token<'t>;

    fn next(&mut self) -> Option<Token<'t>> {
        // A `Json` holds one JSON value within the depth, so nothing fails.
        let token = self.advance().unwrap_or_default();
        if token.is_none() {
            self.ahead = Ahead::Nothing;
        }
        token
    }
}

impl std::fmt::Debug for Tokens<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tokens").field("offset", &self.cursor.offset()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{MAX_DEPTH, write};
    use super::*;

    /// The text that the tokens spell.
    fn spelled(json: &Json) -> String {
        let mut out = Vec::new();
        for token in json.tokens() {
            let opens = matches!(token, Token::CloseObject | Token::CloseArray);
            if !opens && !matches!(out.last(), None | Some(b'{' | b'[' | b':')) {
                out.push(b',');
            }
            match token {
                Token::Null => out.extend_from_slice(b"null"),
                Token::Bool(value) => out.extend_from_slice(value.to_string().as_bytes()),
                Token::Number(text) => out.extend_from_slice(text.as_bytes()),
                Token::String(text) => write::string(&mut out, &text),
                Token::Key(text) => {
                    write::string(&mut out, &text);
                    out.push(b':');
                }
                Token::OpenObject => out.push(b'{'),
                Token::CloseObject => out.push(b'}'),
                Token::OpenArray => out.push(b'['),
                Token::CloseArray => out.push(b']'),
            }
        }
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_tokens_spell_the_text() {
        let deep = "[".repeat(MAX_DEPTH) + &"]".repeat(MAX_DEPTH);
        let mixed = format!("{}0{}", "{\"a\":[".repeat(63), "]}".repeat(63));
        for text in [
            "null",
            "-1.50e2",
            "\"\"",
            "{}",
            "[]",
            r#"{"z":[1,{"a":null,"b":[[],{}]},true],"a\n":{"":"é\""}}"#,
            &deep,
            &mixed,
        ] {
            let spaced = text.replace(',', " ,\n").replace(':', "\t: ");
            for text in [text, &spaced] {
                let json = Json::parse(text).unwrap();
                let dense: String = text.split([' ', '\n', '\t']).collect();
                assert_eq!(spelled(&json), dense);
            }
        }
        let json = Json::parse("[ 1 ,{\"a\": null } ]").unwrap();
        let mut tokens = json.tokens();
        let ends: Vec<usize> =
            std::iter::from_fn(|| tokens.next().map(|_| tokens.offset())).collect();
        assert_eq!(ends[..2], [1, 3]);
        assert_eq!(ends[2..], [6, 10, 15, 17, 19]);
        let json = Json::parse(r#""\ud83dx""#).unwrap();
        assert_eq!(json.tokens().next(), Some(Token::String("\u{fffd}x".into())));
    }
}
