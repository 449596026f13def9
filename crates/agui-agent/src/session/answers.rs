//! Answers to interrupts.

use agui_types::{Interrupt, Json, ResumeEntry, ResumeStatus};
use serde::Serialize;

/// The answer to an interrupt, of anything that serialises; a `null` is no payload and is left out
/// (P-17).
///
/// Fails where the value cannot be written as JSON.
pub fn resolve<T: Serialize + ?Sized>(
    interrupt: &Interrupt,
    payload: &T,
) -> serde_json::Result<ResumeEntry> {
    let mut entry = ResumeEntry::new(&interrupt.id, ResumeStatus::Resolved);
    entry.payload = Some(Json::encode(payload)?).filter(|payload| !payload.is_null());
    Ok(entry)
}

/// Gives an interrupt up; an expired one can only be given up (C-87).
#[must_use]
pub fn decline(interrupt: &Interrupt) -> ResumeEntry {
    ResumeEntry::new(&interrupt.id, ResumeStatus::Cancelled)
}
