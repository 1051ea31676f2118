//! Free ports on loopback.

use std::net::TcpListener;

use anyhow::{Context, Result};

/// Returns different ports on which no process listens.
///
/// Another process may take one before the intended program does, so the caller must be able to retry with others.
pub(super) fn free(count: usize) -> Result<Vec<u16>> {
    // All are held at the same time, so that the system does not return the same one again.
    let held: Vec<TcpListener> = (0..count)
        .map(|_| TcpListener::bind(("127.0.0.1", 0)))
        .collect::<Result<_, _>>()
        .context("no free port on 127.0.0.1")?;
    held.iter()
        .map(|listener| Ok(listener.local_addr().context("cannot read the port of a listener")?.port()))
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
