//! A runtime that is killed again and again while many run and watch.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex};
use std::time::Instant;

use agui_stream::Verifier;
use agui_types::{Event, FromJson};

use crate::chance::Chance;
use crate::soak;
use crate::support::{Server, fresh_path};
use crate::upstream::Upstream;
use crate::viewer::{Shown, Viewer};

/// How many run at once, each on a thread of its own.
const CLIENTS: usize = 8;

/// How often it is killed where nobody asked for a soak.
const KILLS: usize = 10;

/// How many events are seen before a kill, at most.
const MOST: u64 = 1_500;

/// After so many kills the clients go on with new threads, whose logs are short again.
const NEW_THREADS: usize = 12;

/// Whenever it is killed: what a viewer saw is in the log, at its place and as it was, every run has
/// ended once, the log keeps the rules, and every thread can be used at once.
#[test]
fn a_kill_takes_nothing_that_was_seen() {
    let mut chance = Chance::new("kills");
    let began = Instant::now();
    let upstream = Upstream::start();
    let file = fresh_path("killed.sqlite");
    let (agent, file) = (upstream.named("upstream"), file.to_str().unwrap().to_owned());
    let arguments = ["--journal", &file, "--agent", &agent];
    let (mut kills, mut runs) = (0, 0);
    let mut seen: BTreeMap<String, Vec<Shown>> = BTreeMap::new();
    let mut server = Server::start(&arguments);
    while soak().map_or(kills < KILLS, |soak| began.elapsed() < soak) {
        let round = kills / NEW_THREADS;
        for (thread, shown) in kill(&mut server, chance.below(MOST), round, kills) {
            seen.entry(thread).or_default().extend(shown);
        }
        kills += 1;
        drop(server);

        server = Server::start(&arguments);
        for (thread, shown) in &mut seen {
            check(&server.address, thread, shown);
            let last = format!("last-{kills}");
            let mut viewer =
                Viewer::run(&server.address, "upstream", thread, &last, "say 3 8").unwrap();
            assert_eq!(viewer.status(), 200, "{thread} can be used at once");
            let more = viewer.rest().unwrap();
            assert!(more.last().unwrap().is("RUN_FINISHED"), "{more:?}");
            shown.extend(more);
            runs += 1;
        }
        if kills % NEW_THREADS == 0 {
            seen.clear();
        }
    }
    eprintln!("{kills} kills, {runs} runs behind them, {:?}", began.elapsed());
}

/// Has many run, kills the server once they have seen so many events, and gives what each saw.
fn kill(server: &mut Server, events: u64, round: usize, kill: usize) -> Vec<(String, Vec<Shown>)> {
    let progress = Progress::default();
    let address = server.address.clone();
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                let (address, progress) = (&address, &progress);
                scope.spawn(move || {
                    let _ended = Ended(progress);
                    let thread = format!("thread-{round}-{client}");
                    let mut shown = Vec::new();
                    for run in 0.. {
                        let run = format!("run-{kill}-{run}");
                        // Until it is killed.
                        if watch(address, &thread, &run, &mut shown, progress).is_err() {
                            break;
                        }
                    }
                    (thread, shown)
                })
            })
            .collect();
        progress.wait(events);
        server.child.kill().unwrap();
        server.child.wait().unwrap();
        clients.into_iter().map(|client| client.join().unwrap()).collect()
    })
}

/// How many events were seen, and how many clients have ended.
#[derive(Default)]
struct Progress {
    made: Mutex<(u64, usize)>,
    changed: Condvar,
}

impl Progress {
    fn add(&self, events: u64, ended: usize) {
        let mut made = self.made.lock().unwrap();
        *made = (made.0 + events, made.1 + ended);
        self.changed.notify_all();
    }

    /// Waits until so many events were seen, or nobody is left who could.
    fn wait(&self, events: u64) {
        let waits = |made: &mut (u64, usize)| made.0 < events && made.1 < CLIENTS;
        drop(self.changed.wait_while(self.made.lock().unwrap(), waits).unwrap());
    }
}

/// A client that ends, also where it panics.
struct Ended<'a>(&'a Progress);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.add(0, 1);
    }
}

/// One run, seen to its end, or until the server is gone.
fn watch(
    address: &str,
    thread: &str,
    run: &str,
    shown: &mut Vec<Shown>,
    progress: &Progress,
) -> std::io::Result<()> {
    let mut viewer = Viewer::run(address, "upstream", thread, run, "say 40 20")?;
    assert_eq!(viewer.status(), 200, "{thread} {run}");
    while let Some(event) = viewer.next()? {
        assert!(!event.is("RUN_ERROR"), "{event:?}");
        shown.push(event);
        progress.add(1, 0);
    }
    Ok(())
}

/// Holds the log of a thread against what was seen of it.
fn check(address: &str, thread: &str, seen: &[Shown]) {
    let log = Viewer::connect(address, thread).unwrap().rest().unwrap();
    let places: BTreeMap<&str, &Shown> =
        log.iter().map(|shown| (&*shown.position, shown)).collect();
    for event in seen {
        assert_eq!(places.get(&*event.position), Some(&event), "{thread}");
    }
    let mut running = false;
    let mut verifier = Verifier::new();
    for event in &log {
        verifier.push(&Event::from_json_exact(&event.text).unwrap()).unwrap();
        if event.is("RUN_STARTED") {
            assert!(!running, "{thread}: a run that has not ended");
            running = true;
        } else if event.is_terminal() {
            assert!(running, "{thread}: a run that has ended twice");
            running = false;
        }
    }
    assert!(!running, "{thread}: the last run has not ended");
    verifier.finish().unwrap();
}
