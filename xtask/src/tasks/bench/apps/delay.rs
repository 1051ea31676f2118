//! A TCP proxy that delays all bytes, as the link to a distant cluster does.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

/// A proxy on a loopback address that forwards bytes a fixed time after their arrival, in each direction.
///
/// It delays, but does not limit the rate: bytes that come one after the other are under way at the same time, as on a
/// long wire, so only round trips cost time. Opening a TCP connection is not delayed, because the kernel accepts it.
/// The proxy runs until this process ends.
pub(super) struct DelayLine {
    address: SocketAddr,
}

impl DelayLine {
    /// Opens a proxy to `target`, with this delay in each direction.
    pub(super) fn open(target: SocketAddr, delay: Duration) -> Result<DelayLine> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no free port for the proxy")?;
        let address = listener.local_addr().context("the proxy has no address")?;
        thread::spawn(move || {
            for near in listener.incoming().flatten() {
                // A server that refuses closes the near side too, as it is dropped here.
                let _ = connect(near, target, delay);
            }
        });
        Ok(DelayLine { address })
    }

    /// Returns the address on which the proxy listens.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }
}

fn connect(near: TcpStream, target: SocketAddr, delay: Duration) -> io::Result<()> {
    let far = TcpStream::connect(target)?;
    // Nagle's algorithm would add waits that are no part of the line.
    near.set_nodelay(true)?;
    far.set_nodelay(true)?;
    pass(near.try_clone()?, far.try_clone()?, delay);
    pass(far, near, delay);
    Ok(())
}

/// Passes bytes on in one direction, each after `delay`, on two threads; returns at once.
fn pass(from: TcpStream, to: TcpStream, delay: Duration) {
    let (sender, receiver) = channel();
    thread::spawn(move || read(from, &sender, delay));
    thread::spawn(move || write(to, &receiver));
}

fn read(mut from: TcpStream, line: &Sender<(Instant, Vec<u8>)>, delay: Duration) {
    let mut buffer = vec![0; 64 << 10];
    loop {
        let count = from.read(&mut buffer).unwrap_or_default();
        // The end travels as an empty piece: it takes its time too.
        let gone = line.send((Instant::now() + delay, buffer[..count].to_vec())).is_err();
        if count == 0 || gone {
            return;
        }
    }
}

fn write(mut to: TcpStream, line: &Receiver<(Instant, Vec<u8>)>) {
    for (due, bytes) in line {
        thread::sleep(due.saturating_duration_since(Instant::now()));
        if bytes.is_empty() || to.write_all(&bytes).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_pass_both_ways_and_so_does_the_end() {
        let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let target = server.local_addr().expect("its address");
        let echo = thread::spawn(move || {
            let (mut stream, _) = server.accept().expect("a connection");
            let mut text = Vec::new();
            stream.read_to_end(&mut text).expect("all of it");
            text.reverse();
            stream.write_all(&text).expect("all of it");
        });
        let line = DelayLine::open(target, Duration::from_millis(1)).expect("a line");
        let mut stream = TcpStream::connect(line.address()).expect("a connection");
        for part in ["a", "b", "c"] {
            stream.write_all(part.as_bytes()).expect("written");
        }
        stream.shutdown(Shutdown::Write).expect("ended");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("an answer");
        assert_eq!(text, "cba");
        echo.join().expect("the server ends");
    }
}
