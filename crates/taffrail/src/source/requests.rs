//! `-v`, `-vv` and `-vvv`: what was asked of the clusters.

use taffrail_cluster::Cluster;
use taffrail_observe::protocol;

use crate::output::{answer, printable};
use crate::phrase;

/// Tells of each cluster's requests on stderr: their sum; from 2 on each of them, from 3 on what it was for.
///
/// Neither headers nor bodies: those hold credentials and Secrets.
pub(crate) fn print_requests<'a>(verbose: u8, clusters: impl Iterator<Item = &'a Cluster>) {
    if verbose == 0 {
        return;
    }
    for cluster in clusters {
        let records = cluster.requests();
        let rounds = records.iter().map(|record| record.round).max().unwrap_or_default();
        let bytes: u64 = records.iter().map(|record| record.bytes).sum();
        let end = records.iter().map(|record| record.started + record.duration).max().unwrap_or_default();
        answer::tell(phrase!(
            "{}: {} requests in {} rounds, {} KB, {} ms, and {} ms to connect ({})\n",
            printable(cluster.context()),
            records.len(),
            rounds,
            bytes.div_ceil(1000),
            end.as_millis(),
            cluster.connecting().as_millis(),
            protocol(cluster),
        ));
        for record in records.iter().filter(|_| verbose > 1) {
            let purpose = if verbose > 2 { format!("  ({})", record.purpose) } else { String::new() };
            let status = record.status.map_or("no answer".to_owned(), |status| status.as_u16().to_string());
            let asked = format!("{} {}  {status}", record.method, record.path_and_query);
            answer::tell(phrase!(
                "  {:>2}  {:>5} ms  {}  {} B  {} ms{}\n",
                record.round,
                record.started.as_millis(),
                printable(&asked),
                record.bytes,
                record.duration.as_millis(),
                printable(&purpose),
            ));
        }
    }
}
