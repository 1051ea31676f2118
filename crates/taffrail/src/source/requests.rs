//! `-v`, `-vv` and `-vvv`: what was asked of the clusters.

use std::io::Write;

use taffrail_cluster::Cluster;

use super::reading::protocol;

/// Tells of each cluster's requests on stderr: their sum; from 2 on each of them, from 3 on what it was for.
///
/// Neither headers nor bodies: those hold credentials and Secrets.
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
        let protocol = protocol(cluster);
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
        for record in records.iter().filter(|_| verbose > 1) {
            let purpose = if verbose > 2 { format!("  ({})", record.purpose) } else { String::new() };
            let status = record.status.map_or("no answer".to_owned(), |status| status.as_u16().to_string());
            let _ = writeln!(
                stderr,
                "  {:>2}  {:>5} ms  {} {}  {status}  {} B  {} ms{purpose}",
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
