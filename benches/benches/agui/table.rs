//! The table of what things cost.

use crate::case;
use crate::data::Data;
use crate::measure::best;

/// A line of the table: what is measured, beside what, and the most it may cost.
#[derive(Clone, Copy)]
pub(crate) struct Row {
    pub(crate) what: &'static str,
    /// What it is compared with; empty where there is nothing.
    pub(crate) floor: &'static str,
    most: Most,
}

#[derive(Clone, Copy)]
enum Most {
    Anything,
    /// In terms of the floor.
    Times(f64),
    Nanoseconds(f64),
}

impl Row {
    /// A comparison about which nothing was promised.
    pub(crate) const fn beside(what: &'static str, floor: &'static str) -> Self {
        Self { what, floor, most: Most::Anything }
    }

    /// What may cost so many times as much as the floor.
    pub(crate) const fn times(what: &'static str, floor: &'static str, most: f64) -> Self {
        Self { what, floor, most: Most::Times(most) }
    }

    /// What may take so many nanoseconds.
    pub(crate) const fn within(what: &'static str, floor: &'static str, nanoseconds: f64) -> Self {
        Self { what, floor, most: Most::Nanoseconds(nanoseconds) }
    }
}

pub(crate) fn print(rows: &[Row], data: &Data) {
    println!("\n| what | ns/event | MB/s | events/s | floor | ns/event | ratio | at most |");
    println!("| --- | ---: | ---: | ---: | --- | ---: | ---: | ---: |");
    for row in rows {
        let mut what = case(row.what, data);
        let (ns, floor) = if row.floor.is_empty() {
            let [ns] = best([&mut what]);
            (ns, None)
        } else {
            let [ns, floor] = best([&mut what, &mut case(row.floor, data)]);
            (ns, Some(floor))
        };
        let rate = match what.bytes {
            0 => String::new(),
            bytes => format!("{:.0}", bytes as f64 / what.events as f64 / ns * 1e3),
        };
        let ratio = floor.map(|floor| ns / floor);
        println!(
            "| {} | {} | {rate} | {} | {} | {} | {} | {} |",
            row.what,
            in_nanoseconds(ns),
            thousands((1e9 / ns).round()),
            row.floor,
            floor.map(in_nanoseconds).unwrap_or_default(),
            ratio.map(|ratio| format!("{ratio:.2}")).unwrap_or_default(),
            row.most.judge(ns, ratio),
        );
    }
}

impl Most {
    fn judge(self, ns: f64, ratio: Option<f64>) -> String {
        let (most, kept) = match self {
            Self::Anything => return String::new(),
            Self::Times(most) => (format!("{most:.2}"), ratio.is_some_and(|ratio| ratio <= most)),
            Self::Nanoseconds(most) => (format!("{} ns", thousands(most)), ns <= most),
        };
        if kept { most } else { format!("{most}, **missed**") }
    }
}

fn in_nanoseconds(ns: f64) -> String {
    if ns < 9.95 { format!("{ns:.1}") } else { thousands(ns.round()) }
}

/// `1234567.0` as `1,234,567`.
pub(crate) fn thousands(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut shown = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}
