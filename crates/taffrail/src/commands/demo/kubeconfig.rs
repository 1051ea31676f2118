//! The file with the kubeconfig of the demo: nobody else's is touched, and it goes when the demo ends.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::process::{Pid, getpid, test_kill_process};

use crate::complaint::Complaint;

/// How a file of ours begins; the number of its process follows.
const MARK: &str = "# Written by taffrail demo, process ";

/// A file that only its owner can read. It is removed when this is dropped.
pub(super) struct PrivateFile {
    path: PathBuf,
    /// The folder that was made for it.
    folder: Option<PathBuf>,
}

impl PrivateFile {
    /// The file at `path`, or one in a folder of its own.
    pub(super) fn create(path: Option<&Path>) -> Result<PrivateFile, Complaint> {
        let file = match path {
            Some(path) => {
                may_be_written(path)?;
                // A relative path means another file elsewhere.
                let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
                PrivateFile { path, folder: None }
            }
            None => {
                let folder = folder()?;
                PrivateFile { path: folder.join("kubeconfig"), folder: Some(folder) }
            }
        };
        file.write("")?;
        Ok(file)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Replaces what it says.
    pub(super) fn write(&self, text: &str) -> Result<(), Complaint> {
        let write = || {
            // Whoever reads it meanwhile shall see all of it: it is written beside and moved to its place.
            let beside = self.path.with_extension(format!("{}.part", getpid().as_raw_nonzero()));
            let mut file = create_new(&beside)?;
            let marked = format!("{MARK}{}; it goes when that ends.\n{text}", getpid().as_raw_nonzero());
            file.write_all(marked.as_bytes())?;
            fs::rename(&beside, &self.path)
        };
        write().map_err(|error| {
            let complaint = Complaint::unreadable(format!("{} cannot be written", self.path.display()));
            complaint.because(&error).hint("--kubeconfig FILE names another place")
        })
    }
}

impl Drop for PrivateFile {
    fn drop(&mut self) {
        // Whoever removed it already, or wrote something of their own there, has had their reasons.
        if owner(&self.path).is_ok_and(|owner| owner == Some(getpid())) {
            let _ = fs::remove_file(&self.path);
        }
        if let Some(folder) = &self.folder {
            let _ = fs::remove_dir(folder);
        }
    }
}

fn create_new(path: &Path) -> io::Result<File> {
    // One that was left by a process of the same number.
    let _ = fs::remove_file(path);
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

/// A new folder that only its owner can enter.
fn folder() -> Result<PathBuf, Complaint> {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|folder| folder.is_dir());
    let base = runtime.unwrap_or_else(std::env::temp_dir);
    let id = getpid().as_raw_nonzero();
    let mut last = None;
    for number in 0..100 {
        let more = if number == 0 { String::new() } else { format!("-{number}") };
        let folder = base.join(format!("taffrail-demo-{id}{more}"));
        match DirBuilder::new().mode(0o700).create(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => last = Some(error),
            Err(error) => {
                last = Some(error);
                break;
            }
        }
    }
    let complaint = Complaint::unreadable(format!("no folder can be made in {}", base.display()));
    let complaint = complaint.hint("--kubeconfig FILE names another place");
    Err(match &last {
        Some(error) => complaint.because(error),
        None => complaint,
    })
}

/// The process that wrote a file of ours; `None` where it is somebody's own.
fn owner(path: &Path) -> io::Result<Option<Pid>> {
    let mut head = Vec::new();
    File::open(path)?.take(200).read_to_end(&mut head)?;
    let head = String::from_utf8_lossy(&head);
    let number = head.strip_prefix(MARK).and_then(|rest| rest.split(';').next());
    Ok(number.and_then(|number| Pid::from_raw(number.parse().ok()?)))
}

/// Refuses a file that is not ours, or another demo's.
fn may_be_written(path: &Path) -> Result<(), Complaint> {
    let shown = path.display();
    let owner = match owner(path) {
        Ok(owner) => owner,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => {
            return Err(Complaint::usage(format!("{shown} cannot be replaced")).because(&error));
        }
    };
    match owner {
        None => Err(Complaint::usage(format!("{shown} is there already, and not from a demo")).hint(
            "--kubeconfig takes a file that is not there yet; without it the demo finds a place itself",
        )),
        // It may belong to somebody else: then it lives, too.
        Some(process) if test_kill_process(process) != Err(rustix::io::Errno::SRCH) => {
            let what =
                format!("{shown} belongs to a demo that still runs, process {}", process.as_raw_nonzero());
            Err(Complaint::usage(what).hint("--kubeconfig names another file, or nothing at all"))
        }
        Some(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_demo_left_behind_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config");
        fs::write(&path, "apiVersion: v1\n").unwrap();
        assert!(PrivateFile::create(Some(&path)).is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "apiVersion: v1\n");

        // No process has this number.
        fs::write(&path, format!("{MARK}4194305; it goes when that ends.\n")).unwrap();
        let file = PrivateFile::create(Some(&path)).unwrap();
        file.write("kind: Config\n").unwrap();
        assert!(fs::read_to_string(&path).unwrap().ends_with("\nkind: Config\n"));
        assert!(PrivateFile::create(Some(&path)).is_err(), "it is in use");
        drop(file);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_somebody_wrote_there_meanwhile_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config");
        let file = PrivateFile::create(Some(&path)).unwrap();
        fs::write(&path, "mine").unwrap();
        drop(file);
        assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
    }

    #[test]
    fn nobody_else_can_read_it() {
        use std::os::unix::fs::PermissionsExt;
        let file = PrivateFile::create(None).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(file.path()), 0o600);
        let folder = file.path().parent().unwrap().to_owned();
        assert_eq!(mode(&folder), 0o700);
        drop(file);
        assert!(!folder.exists());
    }
}
