//! From events to the bytes of a body, in either form.

use agui_types::{Event, ToJson};

use crate::encode_error::{EncodeError, EncodeErrorKind, Omission};
use crate::proto::{self, Scratch};
use crate::{WireForm, hot, sse};

/// Writes events, appending to a buffer that the caller owns and reuses.
///
/// ```
/// use agui_types::event::StepStarted;
/// use agui_wire::{Encoder, WireForm};
///
/// let event = StepStarted::new("plan").into();
/// let mut body = Vec::new();
/// Encoder::new(WireForm::Sse).encode(&event, Some("41"), &mut body)?;
/// assert_eq!(body, b"id: 41\ndata: {\"type\":\"STEP_STARTED\",\"stepName\":\"plan\"}\n\n");
///
/// body.clear();
/// Encoder::new(WireForm::Proto).encode(&event, Some("41"), &mut body)?;
/// assert_eq!(body, b"\0\0\0\x0cz\x0a\x0a\x02\x08\x0e\x12\x04plan");
/// # Ok::<(), agui_wire::EncodeError>(())
/// ```
#[derive(Debug)]
pub struct Encoder {
    form: WireForm,
    scratch: Scratch,
}

impl Encoder {
    /// An encoder of this form. Allocates nothing yet.
    #[must_use]
    pub fn new(form: WireForm) -> Self {
        Self { form, scratch: Scratch::default() }
    }

    /// The form that is written.
    #[must_use]
    pub fn form(&self) -> WireForm {
        self.form
    }

    /// Appends an event as one frame.
    ///
    /// `position` is written before it as the `id` of server-sent events, which plain clients ignore
    /// (T-16). Protobuf has no room for one.
    ///
    /// Gives back what protobuf has no room for either (T-33) and the event's meaning does not hang
    /// on; nothing, and nothing allocated, for an event that is described throughout. Server-sent
    /// events have room for everything.
    ///
    /// # Errors
    ///
    /// When the position has a CR, an LF or a NUL; and for protobuf, when the event is of an unknown
    /// type, has a patch operation of an unknown name, or a number that no double can be. The buffer
    /// is then as it was before.
    pub fn encode(
        &mut self,
        event: &Event,
        position: Option<&str>,
        out: &mut Vec<u8>,
    ) -> Result<Vec<Omission>, EncodeError> {
        match self.form {
            WireForm::Proto => proto::encode(event, out, &mut self.scratch),
            WireForm::Sse => {
                let encoder = match position {
                    None if hot::write(event, out) => return Ok(Vec::new()),
                    None => sse::Encoder::new(),
                    Some(id) => sse::Encoder::new().id(id).map_err(|error| {
                        EncodeError::at(String::new(), EncodeErrorKind::Position(error))
                    })?,
                };
                encoder.frame_with(out, |out| {
                    event.write_json(out);
                    Ok(Vec::new())
                })
            }
        }
    }

    /// Appends a sign of life (T-17): a comment on server-sent events. Protobuf has none, so there it
    /// appends nothing.
    pub fn keep_alive(&self, out: &mut Vec<u8>) {
        if self.form == WireForm::Sse {
            sse::Encoder::comment(out, "keep-alive");
        }
    }
}
