//! The target file of a dump.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::process::getpid;

use crate::output::answer::Console;

/// The place to which a dump is written: stdout or a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum DumpTarget {
    Stdout,
    File {
        path: PathBuf,
        /// True if the file is in the folder of `--output`, which gets a file for each cluster.
        in_folder: bool,
    },
}

/// Creates the folder `path` and missing ones above it, which only their owner can enter; does nothing if it exists.
pub(super) fn folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Paths of the temporary files of the dumps in progress.
static PARTS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn parts() -> MutexGuard<'static, Vec<PathBuf>> {
    PARTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Deletes the temporary files of all dumps in progress. No new one is created until the returned guard is dropped.
pub(super) fn abandon() -> MutexGuard<'static, Vec<PathBuf>> {
    let mut parts = parts();
    for part in parts.drain(..) {
        let _ = fs::remove_file(part);
    }
    parts
}

/// An open dump. A file is written under a temporary name in the same folder, and renamed when it is complete; if it is
/// dropped before, it is removed.
pub(super) enum Output {
    /// Stdout, a pipe or a device: it is written directly, since a rename would replace it.
    Stream(Box<dyn Write>),
    File {
        file: BufWriter<File>,
        beside: PathBuf,
        path: PathBuf,
        is_done: bool,
    },
}

impl Output {
    pub(super) fn open(target: &DumpTarget, console: &Console) -> io::Result<Output> {
        match target {
            DumpTarget::Stdout => Ok(Output::Stream(Box::new(console.programs()))),
            DumpTarget::File { path, .. } => {
                let there = fs::metadata(path);
                if there.as_ref().is_ok_and(|there| !there.is_file()) {
                    let stream = OpenOptions::new().write(true).open(path)?;
                    return Ok(Output::Stream(Box::new(BufWriter::new(stream))));
                }
                // A symbolic link stays; its target is replaced.
                let path = &there.and_then(|_| fs::canonicalize(path)).unwrap_or_else(|_| path.clone());
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                let beside = path.with_file_name(format!(".{name}.{}.part", getpid().as_raw_nonzero()));
                // A process of the same id may have left one.
                let _ = fs::remove_file(&beside);
                let mut parts = parts();
                let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
                parts.push(beside.clone());
                Ok(Output::File { file: BufWriter::new(file), beside, path: path.clone(), is_done: false })
            }
        }
    }

    pub(super) fn write(&mut self, text: &[u8]) -> io::Result<()> {
        match self {
            Output::Stream(out) => out.write_all(text),
            Output::File { file, .. } => file.write_all(text),
        }
    }

    /// Completes the dump: flushes it and renames the file to its final name.
    pub(super) fn finish(mut self) -> io::Result<()> {
        match &mut self {
            Output::Stream(out) => out.flush(),
            Output::File { file, beside, path, is_done } => {
                file.flush()?;
                file.get_ref().sync_all()?;
                fs::rename(&*beside, &*path)?;
                *is_done = true;
                Ok(())
            }
        }
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if let Output::File { beside, is_done, .. } = self {
            if !*is_done {
                let _ = fs::remove_file(&*beside);
            }
            parts().retain(|part| part != beside);
        }
    }
}
