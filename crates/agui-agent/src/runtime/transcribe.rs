//! Audio to text.

use bytes::Bytes;
use serde::Deserialize;

use super::operation::Operation;
use super::threads::read;
use super::{RuntimeClient, RuntimeError};

/// A piece of audio.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Audio {
    pub(super) data: Bytes,
    pub(super) mime_type: String,
    pub(super) filename: Option<String>,
}

impl Audio {
    /// Bytes in the format that the media type names, such as `audio/webm`.
    pub fn new(data: impl Into<Bytes>, mime_type: impl Into<String>) -> Self {
        Self { data: data.into(), mime_type: mime_type.into(), filename: None }
    }

    /// Its name as a file. Default: none that means something.
    pub fn filename(mut self, name: impl Into<String>) -> Self {
        self.filename = Some(name.into());
        self
    }
}

/// What was said in a piece of audio.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct Transcription {
    /// The text.
    pub text: String,
    /// How many bytes of audio it was.
    #[serde(default)]
    pub size: Option<u64>,
    /// The format they were taken for.
    #[serde(default, rename = "type")]
    pub mime_type: Option<String>,
}

impl RuntimeClient {
    /// Turns audio into text.
    ///
    /// Fails with [`RuntimeError::NotOffered`] where the runtime says that it does not, and with
    /// [`RuntimeError::Transcription`] where it could not.
    pub async fn transcribe(&self, audio: &Audio) -> Result<Transcription, RuntimeError> {
        self.offered(|it| it.transcription, WHAT).await?;
        let request = Operation::Transcribe(audio).request(self.via().await?, &self.base);
        let answer = self.ask(request, Self::MOST_ANSWER, RuntimeError::of_transcription).await?;
        read(&answer, WHAT)
    }
}

const WHAT: &str = "transcription";
