//! The files of a SQLite store: private modes, the lock, renames, backups and restores.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _};
use tokio::time::{Instant, sleep};

use super::error::{OpenError, failed};
use super::{options, schema};
use crate::store::StoreError;

/// The suffixes of the files that SQLite keeps beside a database.
const BESIDE: [&str; 2] = ["-wal", "-shm"];

/// The time for which [`Lock::take`] waits for another hub to release the lock.
const LOCK_TIMEOUT: Duration = Duration::from_millis(500);

/// The time between two attempts to take a lock.
const LOCK_PAUSE: Duration = Duration::from_millis(20);

/// The lock that lets only one hub use a store. It ends when this is dropped, or with the process.
#[derive(Debug)]
pub(super) struct Lock(#[expect(dead_code, reason = "the lock ends when the file is closed")] File);

impl Lock {
    /// Locks the file `PATH.lock` beside the store `path`. Waits up to 500 ms, because a hub may just be ending, or its
    /// child processes may still have the file open; fails with [`OpenError::InUse`] after that.
    pub(super) async fn take(path: &Path) -> Result<Lock, OpenError> {
        let end = Instant::now() + LOCK_TIMEOUT;
        loop {
            match Lock::try_take(path) {
                Err(OpenError::InUse { .. }) if Instant::now() < end => sleep(LOCK_PAUSE).await,
                outcome => return outcome,
            }
        }
    }

    /// Locks the file `PATH.lock` without waiting; fails with [`OpenError::InUse`] if it is locked.
    pub(super) fn try_take(path: &Path) -> Result<Lock, OpenError> {
        let beside = named(path, ".lock");
        let file = private().create(true).truncate(false).open(&beside);
        let file = file.map_err(OpenError::file("create", &beside))?;
        match file.try_lock() {
            Ok(()) => Ok(Lock(file)),
            Err(TryLockError::WouldBlock) => Err(OpenError::InUse { path: path.to_owned() }),
            Err(TryLockError::Error(error)) => Err(OpenError::file("lock", &beside)(error)),
        }
    }
}

/// Creates an empty file that only its owner can read; of an existing file, keeps the contents and removes the rights
/// of others.
pub(super) fn create_private(path: &Path) -> Result<(), OpenError> {
    let file = private().create(true).truncate(false).open(path).map_err(OpenError::file("open", path))?;
    restrict(&file).map_err(OpenError::file("restrict the rights to", path))?;
    sync_folder(path).map_err(OpenError::file("save the folder of", path))
}

/// Renames the store `path` and its log, so that a new store can be begun; `why` becomes part of the new name. Returns
/// the new path.
pub(super) fn set_aside(path: &Path, why: &str) -> Result<PathBuf, OpenError> {
    let to = aside(path, why);
    rename(path, &to)?;
    sync_folder(path).map_err(OpenError::file("save the folder of", path))?;
    Ok(to)
}

/// Returns the name that a store gets when it is set aside now.
fn aside(path: &Path, why: &str) -> PathBuf {
    let time = Timestamp::now().strftime("%Y%m%dT%H%M%S%6fZ");
    named(path, &format!(".{why}-{time}"))
}

/// Renames a store and its log. If one of the files cannot be renamed, those before it get their names back.
fn rename(from: &Path, to: &Path) -> Result<(), OpenError> {
    let mut renamed = Vec::new();
    // The log first: a log beside a new database would belong to no file.
    for suffix in BESIDE.into_iter().chain([""]) {
        let (old, new) = (named(from, suffix), named(to, suffix));
        match fs::rename(&old, &new) {
            Ok(()) => renamed.push((old, new)),
            Err(error) if error.kind() == io::ErrorKind::NotFound && !suffix.is_empty() => {}
            Err(error) => {
                // The first error is the one that counts.
                renamed.iter().for_each(|(old, new)| drop(fs::rename(new, old)));
                return Err(OpenError::file("rename", &old)(error));
            }
        }
    }
    Ok(())
}

/// Renames the file `part` to `to`, and before that the store `to`, if there is one, to another name, which is
/// returned. If `part` cannot be renamed, the store gets its name back.
pub(super) fn replace(part: &Path, to: &Path) -> Result<Option<PathBuf>, OpenError> {
    let former = to.exists().then(|| aside(to, "replaced"));
    if let Some(former) = &former {
        rename(to, former)?;
    }
    fs::rename(part, to).map_err(|error| {
        if let Some(former) = &former {
            // The first error is the one that counts.
            drop(rename(former, to));
        }
        OpenError::file("create", to)(error)
    })?;
    Ok(former)
}

/// Writes a copy of the database to the new file `to`; fails if that exists.
pub(super) async fn backup(from: SqliteConnectOptions, to: &Path) -> Result<(), StoreError> {
    if to.exists() {
        let exists = io::Error::from(io::ErrorKind::AlreadyExists);
        return Err(StoreError::file("create", to)(exists));
    }
    let part = named(to, ".part");
    let done = write_copy(from, &part).await.and_then(|()| {
        fs::rename(&part, to).map_err(StoreError::file("create", to))?;
        sync_folder(to).map_err(StoreError::file("save the folder of", to))
    });
    if done.is_err() {
        // What is left of it is of no use, and the error says that there is no backup.
        let _ = fs::remove_file(&part);
    }
    done
}

async fn write_copy(from: SqliteConnectOptions, part: &Path) -> Result<(), StoreError> {
    let file = private().create(true).truncate(true).open(part).map_err(StoreError::file("create", part))?;
    restrict(&file).map_err(StoreError::file("restrict the rights to", part))?;
    let mut connection = from.connect().await.map_err(failed("read for a backup"))?;
    let target = part.to_str().ok_or_else(|| {
        StoreError::file("create", part)(io::Error::new(io::ErrorKind::InvalidFilename, "it is not UTF-8"))
    })?;
    let copied = sqlx::query("VACUUM INTO ?1").bind(target).execute(&mut connection).await;
    // It only read.
    let _ = connection.close().await;
    copied.map_err(failed("write a backup"))?;
    file.sync_all().map_err(StoreError::file("save", part))
}

/// Puts the backup `from` in the place of the store `to`, which no hub may use meanwhile. Returns the path to which the
/// former store was renamed; `None` if there was none.
///
/// # Errors
/// If a hub uses the store, the backup is not a sound store of this or an older version of Taffrail, or a file cannot
/// be written. The store is then unchanged, except if its folder cannot be synced after the backup is in its place.
pub async fn restore(from: &Path, to: &Path) -> Result<Option<PathBuf>, OpenError> {
    let _lock = Lock::take(to).await?;
    let part = named(to, ".part");
    let replaced = copy(from, &part).await.and_then(|()| replace(&part, to));
    if replaced.is_err() {
        // Only the copy: the backup and the store are unchanged.
        let _ = fs::remove_file(&part);
    }
    let former = replaced?;
    sync_folder(to).map_err(OpenError::file("save the folder of", to))?;
    Ok(former)
}

/// Copies the store `from` to the file `part`, and fails if the copy is not a sound store.
async fn copy(from: &Path, part: &Path) -> Result<(), OpenError> {
    let mut source = File::open(from).map_err(OpenError::file("read", from))?;
    let target = private().create(true).truncate(true).open(part);
    let mut target = target.map_err(OpenError::file("create", part))?;
    restrict(&target).map_err(OpenError::file("restrict the rights to", part))?;
    io::copy(&mut source, &mut target).map_err(OpenError::file("write", part))?;
    target.sync_all().map_err(OpenError::file("save", part))?;
    let connection = options(part).read_only(true).immutable(true).connect().await;
    let mut connection = connection.map_err(|error| OpenError::of(part, error))?;
    let version = async {
        schema::check(&mut connection).await?;
        schema::version(&mut connection, from).await
    }
    .await;
    // It only read.
    let _ = connection.close().await;
    match version? {
        0 => Err(OpenError::Foreign { path: from.to_owned() }),
        _ => Ok(()),
    }
}

/// Returns the size in bytes of the store `path` with its log; a file whose size cannot be read counts as 0.
pub(super) fn size(path: &Path) -> u64 {
    let files = [path.to_owned(), named(path, "-wal")];
    files.iter().filter_map(|file| fs::metadata(file).ok()).map(|about| about.len()).sum()
}

/// Appends `suffix` to the name of a file.
pub(super) fn named(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Makes options that create files which only their owner can read.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

#[cfg(unix)]
fn restrict(file: &File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    match file.metadata()?.permissions().mode() & 0o077 {
        0 => Ok(()),
        _ => file.set_permissions(fs::Permissions::from_mode(0o600)),
    }
}

#[cfg(not(unix))]
fn restrict(_: &File) -> io::Result<()> {
    Ok(())
}

/// Syncs the folder of a file, so that the file's name is on the disk.
#[cfg(unix)]
fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

#[cfg(not(unix))]
fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}
