//! Free ports on loopback.

use std::net::TcpListener;

use anyhow::{Context, Result};

/// This many different ports that nobody listens on.
///
/// Another process may take one before the program that it is meant for does; whoever uses them must be able to try
/// again with others.
pub(super) fn free(count: usize) -> Result<Vec<u16>> {
    // All are held at once, or the system would hand out the same one again.
    let held: Vec<TcpListener> = (0..count)
        .map(|_| TcpListener::bind(("127.0.0.1", 0)))
        .collect::<Result<_, _>>()
        .context("no free port on 127.0.0.1")?;
    held.iter()
        .map(|listener| Ok(listener.local_addr().context("a listener without an address")?.port()))
        .collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn ports_differ() {
        let mut ports = super::free(20).expect("20 free ports");
        ports.sort_unstable();
        ports.dedup();
        assert_eq!(ports.len(), 20);
    }
}
