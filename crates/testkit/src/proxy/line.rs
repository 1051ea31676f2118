//! A proxy of bytes, whose connections can be cut, slowed down or stopped.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::Result;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// The state of the connections through the proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Line {
    /// All bytes are forwarded.
    Open,
    /// All bytes are forwarded after this delay.
    Slow(Duration),
    /// Connections are accepted, but nothing is forwarded until the state changes.
    Dead,
    /// Existing connections are cut, and new ones are closed at once.
    Closed,
}

/// A proxy of bytes on a loopback address; it runs until the runtime ends.
pub struct Proxy {
    /// The address on which it listens.
    pub address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    line: watch::Sender<Line>,
    /// Changes whenever all connections are to be cut.
    cut: watch::Sender<u64>,
    /// Number of bytes of answers after which the connection that forwards the last of them is cut; `usize::MAX` for
    /// never.
    left: AtomicUsize,
}

impl Proxy {
    /// Opens a proxy to the server at `target`, on the current Tokio runtime.
    ///
    /// # Errors
    /// If no port is free.
    pub async fn open(target: SocketAddr) -> Result<Proxy> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            line: watch::Sender::new(Line::Open),
            cut: watch::Sender::new(0),
            left: AtomicUsize::new(usize::MAX),
        });
        let serving = shared.clone();
        tokio::spawn(async move {
            loop {
                // Out of files, as a rule: trying again at once would only burn time.
                let Ok((near, _)) = listener.accept().await else {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                };
                if *serving.line.borrow() != Line::Closed {
                    tokio::spawn(connection(serving.clone(), near, target));
                }
            }
        });
        Ok(Proxy { address, shared })
    }

    /// Sets the state of all connections, open and new ones.
    pub fn set(&self, line: Line) {
        self.shared.line.send_replace(line);
        if line == Line::Closed {
            self.cut();
        }
    }

    /// Cuts all open connections.
    pub fn cut(&self) {
        self.shared.cut.send_modify(|moved| *moved += 1);
    }

    /// Cuts a connection after `bytes` more bytes of answers, in the middle of an answer.
    pub fn cut_after(&self, bytes: usize) {
        self.shared.left.store(bytes, Ordering::Relaxed);
    }
}

async fn connection(shared: Arc<Shared>, near: TcpStream, target: SocketAddr) {
    let mut cut = shared.cut.subscribe();
    cut.mark_unchanged();
    let passing = async {
        // Behind a dead line nobody is reached.
        opened(&shared, Line::Dead).await;
        let Ok(far) = TcpStream::connect(target).await else { return };
        let _ = near.set_nodelay(true);
        let _ = far.set_nodelay(true);
        let (near_reads, near_writes) = near.into_split();
        let (far_reads, far_writes) = far.into_split();
        tokio::select! {
            () = pass(&shared, near_reads, far_writes, false) => {}
            () = pass(&shared, far_reads, near_writes, true) => {}
        }
    };
    tokio::select! {
        () = passing => {}
        _ = cut.changed() => {}
    }
}

/// Waits until the state of the connections is not `not`.
async fn opened(shared: &Shared, not: Line) {
    let mut line = shared.line.subscribe();
    // The sender lives as long as what is shared.
    let _ = line.wait_for(|line| *line != not).await;
}

/// Forwards bytes in one direction until the end of the connection.
async fn pass(
    shared: &Shared,
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    is_answer: bool,
) {
    let mut bytes = vec![0; 64 << 10];
    loop {
        let Ok(read @ 1..) = from.read(&mut bytes).await else { return };
        let line = *shared.line.borrow();
        if let Line::Slow(time) = line {
            tokio::time::sleep(time).await;
        }
        opened(shared, Line::Dead).await;
        let left = if is_answer { shared.left.load(Ordering::Relaxed) } else { usize::MAX };
        let kept = read.min(left);
        if to.write_all(&bytes[..kept]).await.is_err() {
            return;
        }
        if left != usize::MAX {
            let rest = if left > read { left - read } else { usize::MAX };
            shared.left.store(rest, Ordering::Relaxed);
            if rest == usize::MAX {
                return;
            }
        }
    }
}
