//! What the crates cost, beside floors and peers that are measured in the same run.
//!
//! - `cargo bench -p agui-bench` prints the table of costs, in one or two minutes;
//!   `docs/performance.md` says what it means.
//! - `cargo bench -p agui-bench -- TEXT` measures only the rows in which the text occurs.
//! - `cargo bench -p agui-bench -- peers` folds beside the crate `ag-ui` and the npm package
//!   `@ag-ui/client`. That takes minutes: one of them is quadratic.
//! - `cargo bench -p agui-bench -- --list` names the cases, and `-- --run CASE PASSES` runs one of
//!   them and measures nothing: that is for a profiler, as `benches/instructions` uses it.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod data;
mod events;
mod floor;
mod measure;
mod peers;
mod stream;
mod table;
mod wire;

use std::env;
use std::process::ExitCode;

use data::Data;
use measure::Case;
use table::Row;

fn main() -> ExitCode {
    let mut arguments: Vec<String> = env::args().skip(1).collect();
    let benching = arguments.iter().any(|argument| argument == "--bench");
    arguments.retain(|argument| argument != "--bench");
    let Some(data) = Data::load() else {
        println!("skipped: the workloads are not there");
        return ExitCode::SUCCESS;
    };
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["--list"] => list(),
        ["--run", name, passes] => return run(name, passes, &data),
        // `cargo test` runs this too, without the flag.
        _ if !benching => println!("skipped: cargo bench -p agui-bench measures"),
        [] => table::print(&rows(), &data),
        ["peers"] => peers::print(&data),
        [text] => {
            let mut rows = rows();
            rows.retain(|row| row.what.contains(text) || row.floor.contains(text));
            table::print(&rows, &data);
        }
        _ => {
            eprintln!("usage: [TEXT | peers | --list | --run CASE PASSES]");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}

fn rows() -> Vec<Row> {
    [events::ROWS, wire::ROWS, stream::ROWS].concat()
}

/// What a row compares, made from the workloads. Panics where a row names what is not there.
fn case(name: &str, data: &Data) -> Case {
    let modules = [events::case, wire::case, stream::case];
    modules.iter().find_map(|case| case(name, data)).unwrap_or_else(|| panic!("no case {name:?}"))
}

fn list() {
    let mut names: Vec<&str> = rows().iter().flat_map(|row| [row.what, row.floor]).collect();
    names.sort_unstable();
    names.dedup();
    names.iter().filter(|name| !name.is_empty()).for_each(|name| println!("{name}"));
}

/// Runs a case, and says how many events one pass has.
fn run(name: &str, passes: &str, data: &Data) -> ExitCode {
    let Ok(passes) = passes.parse::<usize>() else {
        eprintln!("{passes:?} is no number of passes");
        return ExitCode::from(2);
    };
    let mut case = case(name, data);
    for _ in 0..passes {
        case.pass();
    }
    println!("{}", case.events);
    ExitCode::SUCCESS
}
