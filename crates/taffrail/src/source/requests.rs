//! `-v`: what was asked of the clusters.

use std::io::Write;

use taffrail_cluster::{Cluster, Protocol};

/// Tells of each cluster's requests on stderr: their sum and each of them.
pub(crate) fn print_requests<'a>(verbose: u8, clusters: impl Iterator<Item = &'a Cluster>) {
    if verbose == 0 {
        return;
    }
    let mut stderr = std::io::stderr().lock();
    for cluster in clusters {
        let records = cluster.requests();
        let rounds = records.iter().map(|record| record.round).max().unwrap_or_default();
        let bytes: u64 = records.iter().map(|record| record.bytes).sum();
        let end = records.iter().map(|record| record.started + record.duration).max().unwrap_or_default();
        let protocol = match cluster.protocol() {
            Protocol::Http1 => "HTTP/1.1",
            Protocol::Http2 => "HTTP/2",
        };
        // Nobody is left to be told that stderr is closed.
        let _ = writeln!(
            stderr,
            "{}: {} requests in {rounds} rounds, {} KB, {} ms, and {} ms to connect ({protocol})",
            cluster.context(),
            records.len(),
            bytes.div_ceil(1000),
            end.as_millis(),
            cluster.connecting().as_millis(),
        );
        for record in &records {
            let status = record.status.map_or("no answer".to_owned(), |status| status.as_u16().to_string());
            let _ = writeln!(
                stderr,
                "  {:>2}  {:>5} ms  {} {}  {status}  {} B  {} ms",
                record.round,
                record.started.as_millis(),
                record.method,
                record.path_and_query,
                record.bytes,
                record.duration.as_millis(),
            );
        }
    }
}
