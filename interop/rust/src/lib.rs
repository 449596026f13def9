//! Agents made by chance, whose streams others are to judge.

pub mod program;
