//! A disk without room, and a file that must not grow.

use std::process::Command;

use rustix::process::{Pid, Resource, Rlimit, prlimit};

use crate::support::{Server, fresh_path};
use crate::upstream::Upstream;
use crate::viewer::{Shown, Viewer};

/// A disk of 2 MiB, half of which somebody else takes until there is to be room.
#[test]
fn a_full_disk_ends_runs_and_loses_nothing() {
    let folder = fresh_path("disk");
    std::fs::create_dir(&folder).unwrap();
    let mount = "mount -t tmpfs -o size=2m tmpfs \"$0\"";
    let unshare = ["--map-root-user", "--mount", "sh", "-c"];
    let tried = Command::new("unshare").args(unshare).arg(mount).arg(&folder).output();
    if !tried.is_ok_and(|tried| tried.status.success()) {
        return skip("a_full_disk_ends_runs_and_loses_nothing", "nothing can be mounted here");
    }
    let folder = folder.to_str().unwrap();
    // A mount of its own, which is gone with the process.
    let script = format!(
        "exec unshare --map-root-user --mount sh -c 'd=$0; {} && \
         head -c 1000000 /dev/zero > \"$d/ballast\" && exec \"$@\"' {folder} \"$@\"",
        mount.replace("$0", "$d"),
    );
    let file = format!("{folder}/agui.sqlite");
    outlives(&script, &file, |server| {
        let inside = format!("/proc/{}/root{folder}/ballast", server.child.id());
        std::fs::remove_file(inside).unwrap();
    });
}

/// No file of the server may be larger than half a megabyte.
#[test]
fn a_limit_of_file_sizes_ends_runs_and_loses_nothing() {
    // Who writes too much gets an error, instead of being ended by a signal.
    let script = "trap '' XFSZ; ulimit -S -f 1024; exec \"$@\"";
    let file = fresh_path("limited.sqlite");
    outlives(script, file.to_str().unwrap(), |server| {
        let unlimited = Rlimit { current: None, maximum: None };
        prlimit(Some(Pid::from_child(&server.child)), Resource::Fsize, unlimited).unwrap();
    });
}

/// What does not fit is not shown. Its run ends for those who watch it, what was shown before stays,
/// nobody can begin another one, and once there is room the same thread can be used at once.
fn outlives(script: &str, file: &str, make_room: impl FnOnce(&Server)) {
    let upstream = Upstream::start();
    let agent = upstream.named("upstream");
    let server = Server::start_with(script, &["--journal", file, "--agent", &agent]);
    let address = &server.address;

    let mut viewer = Viewer::run(address, "upstream", "t", "r1", "say 5000 1000").unwrap();
    let mut events = viewer.rest().unwrap();
    let end = events.pop().unwrap();
    assert!(end.is("RUN_ERROR"), "{}", end.text);
    assert!(end.text.contains("NOT_RECORDED"), "{}", end.text);
    let seen: Vec<Shown> = events;
    assert!(seen.len() > 10, "something fits");

    // Small runs may fit in what a large one has left, until there is no room for any.
    let status = (0..200).find_map(|other| {
        let thread = format!("other-{other}");
        let mut viewer = Viewer::run(address, "upstream", &thread, "r1", "say 1 1").unwrap();
        if viewer.status() == 200 {
            assert!(viewer.rest().unwrap().last().unwrap().is_terminal());
            return None;
        }
        Some(viewer.status())
    });
    assert!(matches!(status, Some(500 | 503)), "{status:?}");

    make_room(&server);
    let mut viewer = Viewer::run(address, "upstream", "t", "r2", "say 3 8").unwrap();
    assert_eq!(viewer.status(), 200, "the thread can be used at once");
    assert!(viewer.rest().unwrap().last().unwrap().is("RUN_FINISHED"));

    let log = Viewer::connect(address, "t").unwrap().rest().unwrap();
    assert_eq!(log[..seen.len()], seen, "what was shown is there");
    let count = |of: fn(&Shown) -> bool| log.iter().filter(|event| of(event)).count();
    assert_eq!(count(|event| event.is("RUN_STARTED")), 2);
    assert_eq!(count(Shown::is_terminal), 2);
}

/// Says that the calling test proves nothing here, and why.
fn skip(test: &str, reason: &str) {
    use std::io::Write as _;
    eprintln!("skipped: {test}: {reason}");
    if let Some(path) = std::env::var_os("AGUI_SKIP_LOG") {
        let mut log = std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
        writeln!(log, "{test}: {reason}").unwrap();
    }
}
