//! The nouns of the AG-UI protocol.
#![forbid(unsafe_code)]
