//! Figures as people read them.

use std::time::Duration;

/// A table in Markdown, printed line by line.
#[derive(Debug)]
pub(crate) struct Table;

impl Table {
    /// Begins a table; all columns but the first are numbers.
    pub(crate) fn begin(title: &str, columns: &[&str]) -> Self {
        println!("\n### {title}\n");
        println!("| {} |", columns.join(" | "));
        println!("| ---{} |", " | ---:".repeat(columns.len() - 1));
        Self
    }

    pub(crate) fn row(&self, cells: &[String]) {
        println!("| {} |", cells.join(" | "));
    }
}

/// A number with three significant digits at least, and thousands set apart.
pub(crate) fn number(value: f64) -> String {
    match value {
        value if value < 10.0 => format!("{value:.2}"),
        value if value < 100.0 => format!("{value:.1}"),
        value => thousands(value.round() as u64),
    }
}

fn thousands(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

pub(crate) fn ms(duration: Duration) -> String {
    number(duration.as_secs_f64() * 1e3)
}

pub(crate) fn kib(bytes: f64) -> String {
    number(bytes / 1024.0)
}

pub(crate) fn mib(bytes: u64) -> String {
    number(bytes as f64 / 1024.0 / 1024.0)
}

/// How many times as much.
pub(crate) fn times(value: f64, of: f64) -> String {
    number(value / of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let shown = [0.0, 1.234, 12.34, 999.6, 1_234.5, 1_234_567.0].map(number);
        assert_eq!(shown, ["0.00", "1.23", "12.3", "1,000", "1,235", "1,234,567"]);
    }
}
