//! The answer's bytes: head, chunks, lines. Only as much of them is looked at as is counted, so that
//! the generator takes little of the machine it shares.

use anyhow::{Result, bail, ensure};
use memchr::{memchr, memmem};

/// Reads one answer.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    at: At,
    /// What there is of the head, or of the size of a chunk.
    held: Vec<u8>,
    /// What there is of a line of the body.
    partial: Vec<u8>,
    /// How many lines were events.
    pub(crate) events: u64,
    /// The last event that began or ended a run.
    pub(crate) boundary: Vec<u8>,
    /// How large the body was.
    pub(crate) bytes: u64,
}

#[derive(Debug, Default, PartialEq)]
enum At {
    #[default]
    Head,
    /// The line with a chunk's size.
    Size,
    /// So much of a chunk is still to come.
    Chunk(usize),
    /// Behind a chunk.
    Gap(usize),
    /// The rest is so long.
    Sized(usize),
    Over,
}

/// How long a head, or a line, may be before it counts as a mistake.
const MOST_HELD: usize = 16 * 1024 * 1024;

impl Answer {
    pub(crate) fn is_over(&self) -> bool {
        self.at == At::Over
    }

    /// Takes what was read, and shows each event that came with it.
    pub(crate) fn take(&mut self, mut bytes: &[u8], mut each: impl FnMut(&[u8])) -> Result<()> {
        while !bytes.is_empty() {
            match self.at {
                At::Head => {
                    let before = self.held.len();
                    self.held.extend_from_slice(bytes);
                    ensure!(self.held.len() < MOST_HELD, "the head has no end");
                    let Some(end) = memmem::find(&self.held, b"\r\n\r\n") else { return Ok(()) };
                    bytes = &bytes[end + 4 - before..];
                    let head = String::from_utf8_lossy(&self.held[..end]).to_ascii_lowercase();
                    self.held.clear();
                    self.at = body(&head)?;
                }
                At::Size => {
                    let Some(end) = memchr(b'\n', bytes) else {
                        self.held.extend_from_slice(bytes);
                        return Ok(());
                    };
                    self.held.extend_from_slice(&bytes[..end]);
                    bytes = &bytes[end + 1..];
                    let text = std::str::from_utf8(&self.held)?.trim_end();
                    let size = usize::from_str_radix(text.split(';').next().unwrap_or(text), 16)?;
                    self.held.clear();
                    self.at = if size == 0 { At::Over } else { At::Chunk(size) };
                }
                At::Chunk(left) => {
                    let (now, rest) = bytes.split_at(left.min(bytes.len()));
                    self.lines(now, &mut each)?;
                    bytes = rest;
                    self.at =
                        if now.len() == left { At::Gap(2) } else { At::Chunk(left - now.len()) };
                }
                At::Gap(left) => {
                    let skipped = left.min(bytes.len());
                    bytes = &bytes[skipped..];
                    self.at = if skipped == left { At::Size } else { At::Gap(left - skipped) };
                }
                At::Sized(left) => {
                    let (now, rest) = bytes.split_at(left.min(bytes.len()));
                    self.lines(now, &mut each)?;
                    bytes = rest;
                    self.at =
                        if now.len() == left { At::Over } else { At::Sized(left - now.len()) };
                }
                // The empty line behind the last chunk.
                At::Over => return Ok(()),
            }
        }
        Ok(())
    }

    fn lines(&mut self, mut bytes: &[u8], each: &mut impl FnMut(&[u8])) -> Result<()> {
        self.bytes += bytes.len() as u64;
        while let Some(end) = memchr(b'\n', bytes) {
            if self.partial.is_empty() {
                Self::line(&mut self.events, &mut self.boundary, &bytes[..end], each);
            } else {
                self.partial.extend_from_slice(&bytes[..end]);
                Self::line(&mut self.events, &mut self.boundary, &self.partial, each);
                self.partial.clear();
            }
            bytes = &bytes[end + 1..];
        }
        self.partial.extend_from_slice(bytes);
        ensure!(self.partial.len() < MOST_HELD, "a line has no end");
        Ok(())
    }

    fn line(events: &mut u64, boundary: &mut Vec<u8>, line: &[u8], each: &mut impl FnMut(&[u8])) {
        let Some(event) = line.strip_prefix(b"data: ") else { return };
        *events += 1;
        each(event);
        if event.starts_with(b"{\"type\":\"RUN_") {
            boundary.clear();
            boundary.extend_from_slice(event);
        }
    }
}

/// How the body comes, as the head says.
fn body(head: &str) -> Result<At> {
    let status = head.lines().next().unwrap_or_default();
    ensure!(status.split(' ').nth(1) == Some("200"), "the answer is {status:?}");
    let field = |name: &str| {
        head.lines().find_map(|line| line.split_once(':').filter(|(key, _)| *key == name))
    };
    if field("transfer-encoding").is_some_and(|(_, value)| value.contains("chunked")) {
        return Ok(At::Size);
    }
    match field("content-length") {
        Some((_, length)) => Ok(match length.trim().parse()? {
            0 => At::Over,
            length => At::Sized(length),
        }),
        None => bail!("the answer is neither chunked nor sized"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

    /// However the bytes are cut, the same is counted.
    #[test]
    fn events_are_counted_in_any_cut() {
        let chunks = [
            "id: 1\ndata: {\"type\":\"RUN_STA",
            "RTED\"}\n\n: hi\n\ndata: {\"a\":1}\n",
            "\n",
            "data: {\"type\":\"RUN_X\"}\n\n",
        ];
        let chunks = chunks.map(|chunk| format!("{:x}\r\n{chunk}\r\n", chunk.len())).concat();
        let whole = format!("{HEAD}{chunks}0\r\n\r\n");
        for cut in 0..whole.len() {
            let (mut answer, mut seen) = (Answer::default(), Vec::new());
            for part in [&whole.as_bytes()[..cut], &whole.as_bytes()[cut..]] {
                answer.take(part, |event| seen.push(event.to_vec())).unwrap();
            }
            assert!(answer.is_over(), "{cut}");
            assert_eq!(answer.events, 3, "{cut}");
            assert_eq!(answer.boundary, b"{\"type\":\"RUN_X\"}");
            assert_eq!(seen[1], b"{\"a\":1}");
        }
    }

    #[test]
    fn a_sized_body_ends_where_it_says_and_a_refusal_is_an_error() {
        let mut answer = Answer::default();
        answer.take(b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n{}", |_| {}).unwrap();
        assert!(!answer.is_over());
        answer.take(b"\n", |_| {}).unwrap();
        assert!(answer.is_over());
        let refused = Answer::default().take(b"HTTP/1.1 503 No\r\n\r\n", |_| {}).unwrap_err();
        assert!(refused.to_string().contains("503"), "{refused}");
    }
}
