//! Calls into code that may panic.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Calls `f` and gives what it returns, or the text of its panic; `(no text)` where that is no text.
///
/// Nothing of a panic gets out, also where dropping its payload panics in turn. What `f` changed
/// before it panicked stays changed: whoever calls has to drop it or to know better.
///
/// # Errors
///
/// Where `f` panics.
pub fn caught<T>(f: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(f)).map_err(|payload| {
        let text = payload_text(&*payload).to_owned();
        // A payload is a value of anybody's type: dropping it is running their code again.
        if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
            std::mem::forget(again);
        }
        text
    })
}

fn payload_text(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("(no text)")
}

#[cfg(test)]
mod tests {
    use std::panic::panic_any;

    use super::caught;

    #[test]
    fn a_panic_becomes_its_text() {
        assert_eq!(caught(|| 7), Ok(7));
        assert_eq!(caught::<()>(|| panic!("plain")), Err("plain".into()));
        assert_eq!(caught::<()>(|| panic!("number {}", 7)), Err("number 7".into()));
        assert_eq!(caught::<()>(|| panic_any(7)), Err("(no text)".into()));
    }

    #[test]
    fn a_payload_that_panics_while_it_is_dropped_does_no_harm() {
        /// Panics with another one of its kind as often as it says.
        struct Bomb(u8);
        impl Drop for Bomb {
            fn drop(&mut self) {
                if self.0 > 0 {
                    panic_any(Bomb(self.0 - 1));
                }
            }
        }
        assert_eq!(caught::<()>(|| panic_any(Bomb(3))), Err("(no text)".into()));
    }
}
