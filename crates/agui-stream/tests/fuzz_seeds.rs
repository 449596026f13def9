//! The seeds of the fuzz targets, what was found by them included.

use agui_stream::fuzzing;

#[test]
fn the_seeds_of_the_fuzz_targets_hold() {
    run("compact", fuzzing::compaction);
    run("partial_json", fuzzing::partial_json);
    run("patch", fuzzing::patch);
    run("pipeline", fuzzing::pipeline);
}

fn run(target: &str, call: fn(&[u8])) {
    let seeds = format!("{}/../../fuzz/seeds/{target}", env!("CARGO_MANIFEST_DIR"));
    let mut count = 0;
    for seed in std::fs::read_dir(seeds).unwrap() {
        call(&std::fs::read(seed.unwrap().path()).unwrap());
        count += 1;
    }
    assert!(count > 10, "{target}: {count} seeds");
}
