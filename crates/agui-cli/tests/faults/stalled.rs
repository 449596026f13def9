//! One reader who takes nothing, among many who do.

use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc::channel;

use rustix::net::sockopt::set_socket_recv_buffer_size;
use rustix::net::{AddressFamily, SocketType, connect, socket};

use crate::resident;
use crate::support::Server;
use crate::upstream::Upstream;
use crate::viewer::{Viewer, ask};

/// How many read as they should.
const READERS: usize = 100;

/// Deltas of the run, and how large each is: more than the system keeps for a connection.
const DELTAS: usize = 300;
const BYTES: usize = 8_000;

/// How much memory the server may need on top for all of it, in MiB: the log itself, which is kept in
/// memory here, and a page of it for each reader.
const MORE_MEMORY: u64 = 100;

/// The readers get everything while one more on the same thread takes nothing, which costs the server
/// no memory to speak of.
#[test]
fn a_reader_who_stalls_holds_up_nobody() {
    let upstream = Upstream::start();
    let server = Server::start(&["--agent", &upstream.named("upstream")]);
    let address = &server.address;
    let said = format!("gated {DELTAS} {BYTES}");
    let mut first = Viewer::run(address, "upstream", "t", "r", &said).unwrap();
    assert!(first.next().unwrap().unwrap().is("RUN_STARTED"));

    let mut stalled = narrow(address.parse().unwrap());
    ask(&mut stalled, "/agent/default/connect", "t", "stalled", "").unwrap();
    // The head of the answer is there, so it is among the viewers.
    assert!(stalled.peek(&mut [0; 1]).unwrap() > 0);
    let (joined, all_joined) = channel();
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..READERS)
            .map(|_| {
                let joined = joined.clone();
                scope.spawn(move || {
                    let mut viewer = Viewer::connect(address, "t").unwrap();
                    assert!(viewer.next().unwrap().unwrap().is("RUN_STARTED"));
                    joined.send(()).unwrap();
                    let rest = viewer.rest().unwrap();
                    (rest.len(), rest.last().unwrap().is("RUN_FINISHED"))
                })
            })
            .collect();
        for _ in 0..READERS {
            all_joined.recv().unwrap();
        }
        let before = resident(server.child.id());
        upstream.open();
        for reader in readers {
            assert_eq!(reader.join().unwrap(), (DELTAS + 3, true));
        }
        assert_eq!(first.rest().unwrap().len(), DELTAS + 3);
        let after = resident(server.child.id());
        if let (Some(before), Some(after)) = (before, after) {
            assert!(after < before + MORE_MEMORY, "{before} MiB before, {after} MiB after");
        }
    });
    // The run has ended for everybody but the one who has not taken its events yet. Once it does, they
    // are all there.
    let mut late = Viewer::taking_up(stalled).unwrap();
    let all = late.rest().unwrap();
    assert_eq!(all.len(), DELTAS + 4);
    assert!(all.last().unwrap().is("RUN_FINISHED"));
}

/// A connection whose client has hardly room for anything.
fn narrow(address: SocketAddr) -> TcpStream {
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    set_socket_recv_buffer_size(&socket, 4_096).unwrap();
    connect(&socket, &address).unwrap();
    socket.into()
}
