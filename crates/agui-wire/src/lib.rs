//! The bytes of the AG-UI protocol.
#![forbid(unsafe_code)]
