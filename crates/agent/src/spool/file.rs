//! The file of a spool, which only its owner can read.
//!
//! It has a record for each entry, and for what the hub has, each with its length and a checksum. Records are appended;
//! once most of them are of no use, the file is written anew. A record that was not written whole is dropped with the
//! end of the file; a file that is damaged before its end is set aside.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::time::Duration;

use jiff::Timestamp;
use prost::Message as _;
use sha2::{Digest as _, Sha256};
use taffrail_api::agent_protocol::{KeyHash, SpoolEntry};
use taffrail_apps::ClusterId;
use taffrail_cluster::BootClock;

use super::{Entry, Kept, OVERHEAD, Spool, Stamp};
use crate::private_files;

/// The name of the file in its folder.
const NAME: &str = "spool";

/// The name of a file beside it that an agent locks while it uses the spool.
const LOCK: &str = "spool.lock";

/// The maximum length of a file that is read, in bytes.
const MAX_FILE: u64 = 64 << 20;

/// The maximum length of a record, in bytes.
const MAX_RECORD: usize = 1 << 20;

/// The length of the length and the checksum of a record, in bytes.
const HEAD: usize = 12;

/// The length beyond twice that of the entries from which a file is written anew, in bytes.
const SLACK: usize = 1 << 20;

/// The interval at which the file is told that the agent still notes transitions.
const ALIVE: Duration = Duration::from_secs(60);

/// The reason why a spool cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SpoolError {
    /// The folder or its file cannot be used.
    #[error("cannot use the spool in {}", folder.display())]
    Unusable {
        /// The folder.
        folder: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// Another process uses the folder.
    #[error("another agent uses the spool in {}", .0.display())]
    InUse(PathBuf),
}

/// A record of the file.
#[derive(Clone, PartialEq, prost::Message)]
struct Record {
    /// The moment of the record: the start of the machine that wrote it, the time since that, and the wall-clock time, in
    /// milliseconds. The start is 0 where it is not known.
    #[prost(fixed64, tag = "1")]
    start: u64,
    #[prost(uint64, tag = "2")]
    since_start: u64,
    #[prost(int64, tag = "3")]
    wall: i64,
    /// The first record alone: the number of the spool, and the cluster.
    #[prost(message, optional, tag = "4")]
    head: Option<Head>,
    /// The number of the entry.
    #[prost(uint64, tag = "5")]
    number: u64,
    #[prost(message, optional, tag = "6")]
    entry: Option<SpoolEntry>,
    /// The number up to which the hub has the entries, or up to which they were dropped; 0 in other records.
    #[prost(uint64, tag = "7")]
    until: u64,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Head {
    #[prost(fixed64, tag = "1")]
    spool: u64,
    #[prost(string, tag = "2")]
    cluster: String,
}

/// The clocks of a machine, by which the moment of a record is known to a later run.
#[derive(Debug, Clone)]
struct Clocks {
    boot: BootClock,
    /// A hash of the identity of the machine's present start; 0 where it is not known.
    start: u64,
}

impl Clocks {
    fn of(boot: &BootClock) -> Clocks {
        let start = fs::read("/proc/sys/kernel/random/boot_id").map(|id| KeyHash::of(&id));
        let start =
            start.map_or(0, |KeyHash(hash)| hash.first_chunk().map_or(0, |it| u64::from_le_bytes(*it)));
        Clocks { boot: boot.clone(), start }
    }

    /// Returns a record without contents of a moment.
    fn record(&self, at: Stamp) -> Record {
        let now = self.boot.now();
        let age = at.age(now);
        let since_start = now.since_start().saturating_sub(age);
        let wall = Timestamp::now().as_millisecond().saturating_sub_unsigned(super::millis(age));
        Record { start: self.start, since_start: super::millis(since_start), wall, ..Record::default() }
    }

    /// Returns a record without contents of the last moment at which transitions were noted: of the present once this run
    /// notes them; of the year 1970 if none ever did.
    fn present(&self, kept: &Kept) -> Record {
        match kept.stopped {
            Some(stopped) => self.record(stopped),
            None if kept.has_begun => self.record(Stamp::now(self.boot.now())),
            None => Record::default(),
        }
    }

    /// Returns the moment of a record.
    fn stamp(&self, record: &Record) -> Stamp {
        let at = self.boot.now();
        let age = match record.start == self.start && self.start != 0 {
            true => super::millis(at.since_start()).saturating_sub(record.since_start),
            // By the wall clock, which may have been set meanwhile; never in the future.
            false => {
                let passed = Timestamp::now().as_millisecond().saturating_sub(record.wall);
                u64::try_from(passed).unwrap_or_default()
            }
        };
        Stamp { age: Duration::from_millis(age), at }
    }
}

/// A file of a spool that is open, and what it held.
pub(super) struct Opened {
    pub(super) file: SpoolFile,
    pub(super) kept: Kept,
    /// The path to which a damaged file was renamed.
    pub(super) set_aside: Option<PathBuf>,
    /// Locked as long as it is open.
    pub(super) lock: File,
}

/// The file of a spool.
#[derive(Debug)]
pub(super) struct SpoolFile {
    folder: PathBuf,
    clocks: Clocks,
    cluster: String,
    file: File,
    /// The length of the file, in bytes.
    length: usize,
    /// The number of the last entry in the file, and the number up to which it says that entries are gone.
    written: u64,
    until: u64,
}

impl SpoolFile {
    /// Opens the file in a folder, or makes it.
    pub(super) fn open(folder: &Path, cluster: &ClusterId, clock: &BootClock) -> Result<Opened, SpoolError> {
        let unusable = |source| SpoolError::Unusable { folder: folder.to_owned(), source };
        private_files::create_folder(folder).map_err(unusable)?;
        let lock = private_files::create(&folder.join(LOCK)).map_err(unusable)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(SpoolError::InUse(folder.to_owned())),
            Err(TryLockError::Error(error)) => return Err(unusable(error)),
        }
        let clocks = Clocks::of(clock);
        let path = folder.join(NAME);
        let read = match File::open(&path) {
            Ok(file) => {
                let mut bytes = Vec::new();
                file.take(MAX_FILE + 1).read_to_end(&mut bytes).map_err(unusable)?;
                let is_long = bytes.len() as u64 > MAX_FILE;
                Some(if is_long { None } else { parse(&bytes, cluster, &clocks) })
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(unusable(error)),
        };
        let mut set_aside = None;
        let kept = match read {
            Some(Some(kept)) => kept,
            Some(None) => {
                let aside = path.with_extension("damaged");
                fs::rename(&path, &aside).map_err(unusable)?;
                set_aside = Some(aside);
                Kept::new()
            }
            None => Kept::new(),
        };
        let (file, length) = write_anew(folder, &cluster.0, &clocks, &kept).map_err(unusable)?;
        let file = SpoolFile {
            folder: folder.to_owned(),
            clocks,
            cluster: cluster.0.clone(),
            file,
            length,
            written: kept.last(),
            until: kept.first.saturating_sub(1),
        };
        Ok(Opened { file, kept, set_aside, lock })
    }

    /// Writes what changes in the spool on a thread of its own, until the spool is dropped.
    pub(super) fn keep(mut self, spool: Weak<Spool>, writer: Writer) -> Result<(), SpoolError> {
        let folder = self.folder.clone();
        let thread = std::thread::Builder::new().name("spool".to_owned());
        let started = thread.spawn(move || {
            loop {
                let is_changed = writer.wait();
                let Some(spool) = spool.upgrade() else { return };
                if let Err(error) = self.save(&spool, is_changed) {
                    spool.kept().failure =
                        Some(format!("cannot write the spool in {}: {error}", self.folder.display()));
                }
            }
        });
        started.map(drop).map_err(|source| SpoolError::Unusable { folder, source })
    }

    /// Appends what is new, or writes the file anew.
    fn save(&mut self, spool: &Spool, is_changed: bool) -> io::Result<()> {
        let (first, new, bytes) = {
            let kept = spool.kept();
            let known = self.written.saturating_add(1).saturating_sub(kept.first);
            let known = usize::try_from(known).unwrap_or(usize::MAX);
            let new: Vec<Entry> = kept.entries.iter().skip(known).cloned().collect();
            (kept.first, new, kept.bytes)
        };
        let needless = self.length.saturating_sub(bytes);
        if needless > bytes + SLACK {
            let kept = {
                let kept = spool.kept();
                Kept { entries: kept.entries.clone(), failure: None, ..*kept }
            };
            (self.file, self.length) = write_anew(&self.folder, &self.cluster, &self.clocks, &kept)?;
            (self.written, self.until) = (kept.last(), kept.first.saturating_sub(1));
            return Ok(());
        }
        let mut text = Vec::new();
        let first_new = self.written.saturating_add(1).max(first);
        for (number, entry) in (first_new..).zip(&new) {
            entry_record(&self.clocks, number, entry).put(&mut text);
        }
        let gone = first.saturating_sub(1);
        if gone > self.until || !is_changed {
            Record { until: gone, ..self.clocks.present(&spool.kept()) }.put(&mut text);
        }
        if text.is_empty() {
            return Ok(());
        }
        self.file.write_all(&text)?;
        self.file.sync_data()?;
        self.length += text.len();
        self.until = gone;
        self.written = self.written.max(first_new.saturating_sub(1) + new.len() as u64);
        Ok(())
    }
}

/// Writes a file with all entries in place of the one of before; returns it, and its length.
fn write_anew(folder: &Path, cluster: &str, clocks: &Clocks, kept: &Kept) -> io::Result<(File, usize)> {
    let mut text = Vec::new();
    let head = Head { spool: kept.spool, cluster: cluster.to_owned() };
    Record { head: Some(head), until: kept.first.saturating_sub(1), ..clocks.present(kept) }.put(&mut text);
    for (number, entry) in (kept.first..).zip(&kept.entries) {
        entry_record(clocks, number, entry).put(&mut text);
    }
    let path = folder.join(NAME);
    let new = path.with_extension("new");
    let mut file = private_files::create(&new)?;
    file.write_all(&text)?;
    file.sync_all()?;
    fs::rename(&new, &path)?;
    Ok((file, text.len()))
}

fn entry_record(clocks: &Clocks, number: u64, entry: &Entry) -> Record {
    let contents = SpoolEntry::decode(&*entry.encoded).unwrap_or_default();
    Record { number, entry: Some(contents), ..clocks.record(entry.at) }
}

fn checksum(bytes: &[u8]) -> [u8; 8] {
    let hash = Sha256::digest(bytes);
    hash.first_chunk().copied().unwrap_or_default()
}

impl Record {
    fn put(&self, text: &mut Vec<u8>) {
        let record = self.encode_to_vec();
        text.extend(u32::try_from(record.len()).unwrap_or(u32::MAX).to_le_bytes());
        text.extend(checksum(&record));
        text.extend(record);
    }
}

/// Reads the records of a file of `cluster`; `None` if it is damaged before its end, or of another cluster.
fn parse(mut bytes: &[u8], cluster: &ClusterId, clocks: &Clocks) -> Option<Kept> {
    let mut kept: Option<Kept> = None;
    let mut last: Option<Stamp> = None;
    while let Some((head, rest)) = bytes.split_first_chunk::<HEAD>() {
        let [a, b, c, d, sum @ ..] = head;
        let length = u32::from_le_bytes([*a, *b, *c, *d]) as usize;
        if length > MAX_RECORD {
            return None;
        }
        // What was not written whole.
        let Some((text, next)) = rest.split_at_checked(length) else { break };
        let record = match checksum(text) == *sum {
            true => Record::decode(text).ok()?,
            false if next.is_empty() => break,
            false => return None,
        };
        bytes = next;
        let at = clocks.stamp(&record);
        let found = match (&mut kept, record.head) {
            (None, Some(head)) if head.cluster == cluster.0 && head.spool != 0 => {
                let first = record.until.checked_add(1)?;
                kept.insert(Kept { spool: head.spool, first, ..Kept::new() })
            }
            (Some(kept), None) => kept,
            _ => return None,
        };
        if let Some(entry) = record.entry {
            if record.number < found.first {
                continue;
            }
            // The file lost entries that were dropped before they were written.
            if record.number != found.last() + 1 {
                while found.pop().is_some() {}
                found.first = record.number;
            }
            let encoded = SpoolEntry { age_millis: 0, ..entry }.encode_to_vec();
            found.add(Entry { at, encoded: encoded.into() });
        }
        while found.first <= record.until && found.pop().is_some() {}
        found.first = found.first.max(record.until.checked_add(1)?);
        // That of the first record is the last moment of an earlier run.
        last = Some(last.filter(|last| last.age < at.age).unwrap_or(at));
    }
    let mut kept = kept?;
    kept.stopped = last;
    debug_assert!(kept.bytes >= kept.entries.len() * OVERHEAD);
    Some(kept)
}

/// Wakes the thread that writes a file.
#[derive(Debug, Clone, Default)]
pub(super) struct Writer(Arc<(Mutex<bool>, Condvar)>);

impl Writer {
    pub(super) fn wake(&self) {
        let (is_changed, woken) = &*self.0;
        *is_changed.lock().unwrap_or_else(PoisonError::into_inner) = true;
        woken.notify_one();
    }

    /// Waits until something changed, or for [`ALIVE`]; returns true if something did.
    fn wait(&self) -> bool {
        let (is_changed, woken) = &*self.0;
        let held = is_changed.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = woken.wait_timeout_while(held, ALIVE, |is_changed| !*is_changed);
        let (mut held, _) = waited.unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *held)
    }
}

impl Drop for Spool {
    fn drop(&mut self) {
        // The thread then ends.
        self.writer.iter().for_each(Writer::wake);
    }
}
