//! `-v`: prints the sums of the requests to each cluster.

use taffrail_cluster::Cluster;
use taffrail_observe::protocol;

use crate::output::answer::Console;
use crate::output::printable;
use crate::phrase;

/// Prints a line about each cluster to stderr, if `verbose` is not 0: number, rounds, bytes and time of its requests.
pub(crate) fn print_requests<'a>(
    verbose: u8,
    clusters: impl Iterator<Item = &'a Cluster>,
    console: &Console,
) {
    for cluster in clusters.filter(|_| verbose > 0) {
        let sum = cluster.requests();
        console.tell(phrase!(
            "{}: {} requests in {} rounds, {} KB, {} ms, and {} ms to connect ({})\n",
            printable(cluster.context()),
            sum.cost.requests,
            sum.rounds,
            sum.cost.bytes.div_ceil(1000),
            sum.until.as_millis(),
            cluster.connecting().as_millis(),
            protocol(cluster),
        ));
    }
}
