//! The memory budget for the texts that servers send and the records of objects: one for the process, with a share for
//! each cluster.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use crate::error::ReadError;

/// The memory budget of all clusters together, in bytes, if the size of the machine's memory is unknown.
const UNKNOWN_MACHINE: u64 = 4 << 30;

/// The number of bytes charged for each byte of a kept text: an index of its parts is kept with it.
const KEPT: u64 = 2;

/// The charge, in bytes, for each object beside its text.
///
/// By measurement, an object with nothing but a name takes 530 bytes in a snapshot, 780 with the key that its watch
/// keeps, and 1,290 with owners, a node and a claim, each of which is indexed; 1,440 if it has a row of its own. The
/// charge for its text covers 130 to 510 bytes of that.
const BYTES_PER_OBJECT: u64 = 1_200;

static PROCESS: LazyLock<Memory> = LazyLock::new(|| Memory::of(half_of_the_machine()));

/// A memory budget that clusters share.
///
/// Half of it is divided evenly and guaranteed to each cluster. The other half is lent to clusters that need more; with
/// several clusters each gets at most half of that.
#[derive(Debug, Clone)]
pub struct Memory(Arc<Pool>);

/// The budget of a [`Memory`] in bytes, and the use of it.
#[derive(Debug)]
struct Pool {
    budget: u64,
    used: Mutex<Used>,
}

/// The memory charged to each cluster of a [`Pool`], by its number.
#[derive(Debug, Default)]
struct Used {
    next: u64,
    clusters: HashMap<u64, u64>,
    /// Number of clusters that will share the budget, including those that have not connected yet.
    expected: usize,
}

impl Used {
    /// Returns the number of clusters that share the budget now, or the expected number if that is larger; at least 1.
    fn sharing(&self) -> usize {
        self.clusters.len().max(self.expected).max(1)
    }
}

impl Memory {
    /// Creates a budget of `budget` bytes.
    pub fn of(budget: u64) -> Memory {
        Memory(Arc::new(Pool { budget, used: Mutex::default() }))
    }

    /// Returns the budget of this process: half of the machine's memory, or of the smallest limit of its cgroups if
    /// that is smaller; 4 GiB if neither is known.
    pub fn process() -> Memory {
        PROCESS.clone()
    }

    /// Returns the number of connected clusters, which share the budget now.
    pub fn clusters(&self) -> usize {
        self.0.used().clusters.len()
    }

    /// Sets the number of clusters that will be connected, so that the first one takes no more than its share of
    /// memory, and opens no more connections for watches than its part of the open-file limit.
    pub fn expect(&self, clusters: usize) {
        self.0.used().expected = clusters;
    }

    /// Adds a cluster and returns its share.
    pub(crate) fn share(&self) -> Share {
        let mut used = self.0.used();
        let number = used.next;
        used.next += 1;
        used.clusters.insert(number, 0);
        Share { pool: self.0.clone(), number }
    }
}

impl Pool {
    fn used(&self) -> MutexGuard<'_, Used> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A cluster's share of a budget; released on drop.
#[derive(Debug)]
pub(crate) struct Share {
    pool: Arc<Pool>,
    number: u64,
}

impl Share {
    /// Takes `bytes` from the budget; if that is too much, takes nothing and returns the cluster's maximum in bytes as
    /// the error.
    fn take(&self, bytes: u64) -> Result<(), u64> {
        let mut used = self.pool.used();
        let clusters = used.sharing() as u64;
        let lent = self.pool.budget / 2;
        let share = (self.pool.budget - lent) / clusters;
        let most = share + if clusters == 1 { lent } else { lent / 2 };
        let own = used.clusters.get(&self.number).copied().unwrap_or_default();
        let wanted = own.saturating_add(bytes);
        if wanted > share {
            let others = used.clusters.iter().filter(|(number, _)| **number != self.number);
            let others: u64 = others.map(|(_, used)| used.saturating_sub(share)).sum();
            if wanted > most || others.saturating_add(wanted - share) > lent {
                return Err(most.min(share + lent.saturating_sub(others)));
            }
        }
        used.clusters.insert(self.number, wanted);
        Ok(())
    }

    /// Returns the number of clusters that share the budget now, or the number from [`Memory::expect`] if that is
    /// larger; at least 1.
    fn clusters(&self) -> usize {
        self.pool.used().sharing()
    }

    fn give_back(&self, bytes: u64) {
        if let Some(own) = self.pool.used().clusters.get_mut(&self.number) {
            *own = own.saturating_sub(bytes);
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.pool.used().clusters.remove(&self.number);
    }
}

/// The memory taken by one read of a cluster; released on drop.
#[derive(Debug)]
pub(crate) struct Charge {
    share: Arc<Share>,
    taken: AtomicU64,
}

impl Charge {
    pub(crate) fn new(share: Arc<Share>) -> Charge {
        Charge { share, taken: AtomicU64::new(0) }
    }

    /// Returns the maximum number of connections for watches: the cluster's part of the open-file limit.
    pub(crate) fn connections(&self) -> usize {
        part_of_files(*FILES, self.share.clusters())
    }

    /// Returns a charge on the same share for another read.
    pub(crate) fn another(&self) -> Charge {
        Charge::new(self.share.clone())
    }

    /// Charges the cluster for `bytes` of text and its index; `what` names the operation in the error.
    pub(crate) fn take(&self, what: &str, bytes: u64) -> Result<(), ReadError> {
        self.take_cost(what, cost(bytes, 0))
    }

    /// Charges the cluster for the records of `number` objects whose texts are charged already; fails for the operation
    /// `what` if that exceeds its share.
    pub(crate) fn take_objects(&self, what: &str, number: u64) -> Result<(), ReadError> {
        self.take_cost(what, cost(0, number))
    }

    fn take_cost(&self, what: &str, bytes: u64) -> Result<(), ReadError> {
        match self.share.take(bytes) {
            Ok(()) => {
                self.taken.fetch_add(bytes, Ordering::Relaxed);
                Ok(())
            }
            Err(most) => Err(over(what, most)),
        }
    }

    /// Releases the charge for a text of `bytes` bytes that is not kept.
    pub(crate) fn give_back(&self, bytes: u64) {
        let bytes = cost(bytes, 0);
        self.taken.fetch_sub(bytes, Ordering::Relaxed);
        self.share.give_back(bytes);
    }
}

/// The memory charged to a watched cluster, which varies; released on drop.
#[derive(Debug)]
pub struct Held {
    share: Arc<Share>,
    bytes: u64,
}

impl Held {
    pub(crate) fn new(charge: &Charge) -> Held {
        Held { share: charge.share.clone(), bytes: 0 }
    }

    /// Replaces the charge by one for `bytes` of text and for the records of `objects`, the number of objects made of
    /// it; `what` names the operation in the error.
    ///
    /// # Errors
    ///
    /// Returns an error if that exceeds the cluster's share; the earlier charge then stays.
    pub fn set(&mut self, what: &str, bytes: u64, objects: u64) -> Result<(), ReadError> {
        let bytes = cost(bytes, objects);
        match bytes.checked_sub(self.bytes) {
            Some(more) => self.share.take(more).map_err(|most| over(what, most))?,
            None => self.share.give_back(self.bytes - bytes),
        }
        self.bytes = bytes;
        Ok(())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.share.give_back(self.bytes);
    }
}

/// Returns the memory in bytes that `bytes` of text, their index, and the records of `objects`, a number of objects,
/// take.
fn cost(bytes: u64, objects: u64) -> u64 {
    bytes.saturating_mul(KEPT).saturating_add(objects.saturating_mul(BYTES_PER_OBJECT))
}

/// Returns the error for a cluster that exceeds its maximum of `most` bytes in the operation `what`.
fn over(what: &str, most: u64) -> ReadError {
    ReadError::OverLimit {
        what: what.to_owned(),
        limit: format!("what the cluster sends exceeds its share of memory, {} MiB", most >> 20),
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.share.give_back(*self.taken.get_mut());
    }
}

fn half_of_the_machine() -> u64 {
    let total = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| total(&text));
    let group =
        std::fs::read_to_string("/proc/self/cgroup").ok().and_then(|text| group(&text).map(str::to_owned));
    let folder = std::path::PathBuf::from("/sys/fs/cgroup");
    let folder = group.map_or(folder.clone(), |group| folder.join(group));
    // The smallest limit of the enclosing cgroups counts.
    let limits = folder.ancestors().take_while(|folder| folder.starts_with("/sys/fs/cgroup"));
    let limits = limits.filter_map(|folder| std::fs::read_to_string(folder.join("memory.max")).ok());
    let limits = limits.filter_map(|text| text.trim().parse::<u64>().ok());
    total.into_iter().chain(limits).min().map_or(UNKNOWN_MACHINE, |memory| memory / 2)
}

/// The assumed open-file limit if `/proc/self/limits` does not state it.
const UNKNOWN_FILES: usize = 256;

/// The open-file limit of this process, which bounds its connections.
static FILES: LazyLock<usize> = LazyLock::new(|| {
    let limits = std::fs::read_to_string("/proc/self/limits").ok();
    limits.and_then(|limits| files(&limits)).unwrap_or(UNKNOWN_FILES)
});

/// Parses the soft limit of open files from `/proc/self/limits`; `None` if it is not there.
fn files(text: &str) -> Option<usize> {
    let line = text.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    match line.split_whitespace().next()? {
        "unlimited" => Some(usize::MAX),
        limit => limit.parse().ok(),
    }
}

/// Returns one cluster's number of connections out of `files`, at least 1. A quarter is reserved for short-lived
/// connections and other files.
fn part_of_files(files: usize, clusters: usize) -> usize {
    ((files - files / 4) / clusters.max(1)).max(1)
}

/// Parses the machine's memory in bytes from `/proc/meminfo`; `None` if it is not there.
fn total(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Parses the path of the process' cgroup (version 2) from `/proc/self/cgroup`, without its first slash; `None` if it
/// has none.
fn group(text: &str) -> Option<&str> {
    text.lines().find_map(|line| line.strip_prefix("0::")).map(|path| path.trim_start_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cluster_keeps_its_guaranteed_share() {
        let memory = Memory::of(1000);
        let clusters: Vec<Share> = (0..5).map(|_| memory.share()).collect();
        // 100 of its own, and at most 250 lent.
        assert_eq!(clusters[0].take(350), Ok(()));
        assert_eq!(clusters[0].take(1), Err(350));
        assert_eq!(clusters[1].take(350), Ok(()));
        assert_eq!(clusters[2].take(101), Err(100));
        assert!(clusters[2..].iter().all(|cluster| cluster.take(100).is_ok()));
        clusters[0].give_back(200);
        assert_eq!(clusters[2].take(200), Ok(()));
    }

    #[test]
    fn single_cluster_may_use_the_whole_budget() {
        let memory = Memory::of(1000);
        let share = memory.share();
        assert_eq!((share.take(1000), share.take(1)), (Ok(()), Err(1000)));
    }

    #[test]
    fn first_cluster_leaves_the_shares_of_those_that_are_expected() {
        let memory = Memory::of(1000);
        memory.expect(5);
        let first = memory.share();
        // 100 of its own, and at most 250 lent.
        assert_eq!((first.take(351), first.take(350)), (Err(350), Ok(())));
        memory.expect(1);
        assert_eq!(first.take(650), Ok(()), "the others do not come");
    }

    #[test]
    fn dropping_a_charge_releases_its_memory() {
        let memory = Memory::of(1000);
        let share = Arc::new(memory.share());
        let look = Charge::new(share.clone());
        assert!(look.take("list", 500).is_ok());
        let next = look.another();
        assert!(next.take("list", 1).unwrap_err().to_string().contains("share of memory"));
        drop(look);
        assert!(next.take("list", 500).is_ok());
        next.give_back(100);
        assert!(next.take("list", 100).is_ok());
    }

    #[test]
    fn held_memory_follows_the_cluster() {
        let memory = Memory::of(1000);
        let share = Arc::new(memory.share());
        let mut held = Held::new(&Charge::new(share.clone()));
        assert!(held.set("watch", 500, 0).is_ok());
        assert!(held.set("watch", 501, 0).unwrap_err().to_string().contains("share of memory"));
        // It is charged for all of it, not each time for more.
        assert!((0..10).all(|_| held.set("watch", 500, 0).is_ok()));
        assert!(held.set("watch", 200, 0).is_ok());
        assert_eq!(share.take(600), Ok(()));
        share.give_back(600);
        drop(held);
        assert_eq!(share.take(1000), Ok(()));
    }

    #[test]
    fn tiny_objects_are_charged_for_their_records() {
        let memory = Memory::of(1 << 20);
        let share = Arc::new(memory.share());
        let mut held = Held::new(&Charge::new(share.clone()));
        assert!(held.set("watch", 1000 * 20, 1000).unwrap_err().to_string().contains("share of memory"));
        assert!(held.set("watch", 800 * 20, 800).is_ok());
        drop(held);
        let look = Charge::new(share);
        assert!(look.take_objects("list", 800).is_ok());
        assert!(look.take_objects("list", 100).unwrap_err().to_string().contains("share of memory"));
    }

    #[test]
    fn clusters_of_100_000_objects_fit_into_half_of_4_gib() {
        let memory = Memory::of(UNKNOWN_MACHINE / 2);
        let clusters: Vec<Arc<Share>> = (0..3).map(|_| Arc::new(memory.share())).collect();
        for share in clusters {
            let mut held = Held::new(&Charge::new(share));
            assert!(held.set("watch", 100_000 * 2_048, 100_000).is_ok());
        }
    }

    #[test]
    fn open_files_are_divided_among_expected_clusters() {
        let memory = Memory::of(1000);
        memory.expect(3);
        let (one, other) = (memory.share(), memory.share());
        assert_eq!((one.clusters(), other.clusters()), (3, 3));
        let more = [memory.share(), memory.share()];
        assert_eq!(more[0].clusters(), 4);
        assert_eq!(
            (part_of_files(1024, 1), part_of_files(1024, 3), part_of_files(1024, 1000)),
            (768, 256, 1)
        );
        assert_eq!(part_of_files(0, 0), 1);
        let limits = "Limit                     Soft Limit           Hard Limit           Units     \n\
            Max open files            1024                 524288               files     \n";
        assert_eq!(files(limits), Some(1024));
        assert_eq!(
            files("Max open files            unlimited            unlimited            files"),
            Some(usize::MAX)
        );
        assert_eq!((files(""), files("Max open files")), (None, None));
    }

    #[test]
    fn memory_and_cgroup_limits_are_parsed() {
        assert_eq!(total("MemTotal:       16384 kB\nMemFree: 1 kB\n"), Some(16 << 20));
        assert_eq!(total("nothing"), None);
        assert_eq!(group("12:cpu:/a\n0::/user.slice/a\n"), Some("user.slice/a"));
        assert!(half_of_the_machine() > 1 << 20);
    }
}
