//! The files of the demo: its kubeconfig, which replaces only the file of a demo that has ended, and the folder in which
//! its hub keeps data. All are removed when the demo ends.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::process::{Pid, getpid, test_kill_process};

use crate::command_error::CommandError;

/// The beginning of the first line of the demo's kubeconfig; the id of the demo's process follows.
const MARK: &str = "# Written by taffrail demo, process ";

/// The hint under an error about the kubeconfig file.
const NEW_FILE: &str = "name a file that does not exist yet with --kubeconfig FILE, or omit the flag: the demo then \
                        uses a new temporary file";

/// The name of the hub's folder in the private one.
const HUB: &str = "hub";

/// The kubeconfig file, which only its owner can read, and the private folder of the demo. On drop both are removed, but
/// not a kubeconfig that another file has replaced.
pub(super) struct PrivateFile {
    path: PathBuf,
    /// The folder that only its owner can enter; `None` if it could not be created, and the path was given.
    folder: Option<PathBuf>,
}

impl PrivateFile {
    /// Creates the file at `path`; without a path, in the private folder, which is a new one below `$XDG_RUNTIME_DIR` or
    /// the temporary folder. Fails if `path` exists, unless a demo that has ended wrote it.
    pub(super) fn create(path: Option<&Path>) -> Result<PrivateFile, CommandError> {
        let file = match path {
            Some(path) => {
                may_be_written(path)?;
                // The path must stay valid in another working directory.
                let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
                // Without the folder the hub keeps nothing; the demo shows its clusters all the same.
                PrivateFile { path, folder: folder().ok() }
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

    /// Returns the path of the folder in which the hub may keep data, which may not exist yet and is removed on drop with
    /// all that is in it; `None` if there is none.
    #[cfg(feature = "hub")]
    pub(super) fn hub_folder(&self) -> Option<PathBuf> {
        self.folder.as_ref().map(|folder| folder.join(HUB))
    }

    /// Replaces the content of the file by a first line with the process id, and `text`. Readers see either the old or
    /// the new content.
    pub(super) fn write(&self, text: &str) -> Result<(), CommandError> {
        let write = || {
            // Readers must see either the old or the new content, so it is written beside and renamed.
            let beside = self.path.with_extension(format!("{}.part", getpid().as_raw_nonzero()));
            let marked =
                format!("{MARK}{}; removed when that process ends.\n{text}", getpid().as_raw_nonzero());
            write_private(&beside, &marked)?;
            fs::rename(&beside, &self.path)
        };
        write().map_err(|error| {
            let complaint =
                CommandError::unreadable(format!("cannot write the kubeconfig {}", self.path.display()));
            complaint.with_source(&error).hint(NEW_FILE)
        })
    }
}

impl Drop for PrivateFile {
    fn drop(&mut self) {
        // The file may have been removed or replaced since; a file of other origin stays.
        if owner(&self.path).is_ok_and(|owner| owner == Some(getpid())) {
            let _ = fs::remove_file(&self.path);
        }
        if let Some(folder) = &self.folder {
            let _ = fs::remove_dir_all(folder.join(HUB));
            // It stays if anybody put something else there.
            let _ = fs::remove_dir(folder);
        }
    }
}

/// Writes a new file that only its owner can read, in place of one of this name.
pub(super) fn write_private(path: &Path, text: &str) -> io::Result<()> {
    // A process of the same id may have left one.
    let _ = fs::remove_file(path);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())
}

/// Creates a new folder that only its owner can enter, and returns its path.
fn folder() -> Result<PathBuf, CommandError> {
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
    let what = format!("cannot create a folder for the demo's files in {}", base.display());
    let complaint = CommandError::unreadable(what).hint(NEW_FILE);
    Err(match &last {
        Some(error) => complaint.with_source(error),
        None => complaint,
    })
}

/// Returns the id of the demo process that wrote the file at `path`; `None` for a file that no demo wrote. Fails if
/// the file cannot be read.
fn owner(path: &Path) -> io::Result<Option<Pid>> {
    let mut head = Vec::new();
    File::open(path)?.take(200).read_to_end(&mut head)?;
    let head = String::from_utf8_lossy(&head);
    let number = head.strip_prefix(MARK).and_then(|rest| rest.split(';').next());
    Ok(number.and_then(|number| Pid::from_raw(number.parse().ok()?)))
}

/// Checks that the demo may write a kubeconfig to `path`: the file does not exist, or a demo that has ended wrote
/// it.
fn may_be_written(path: &Path) -> Result<(), CommandError> {
    let shown = path.display();
    let owner = match owner(path) {
        Ok(owner) => owner,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => {
            return Err(CommandError::usage(format!(
                "cannot read {shown}, which --kubeconfig would replace"
            ))
            .with_source(&error));
        }
    };
    match owner {
        None => Err(CommandError::usage(format!("the file {shown} already exists, and no demo wrote it"))
            .hint(NEW_FILE)),
        // EPERM means another user's process: it runs, too.
        Some(process) if test_kill_process(process) != Err(rustix::io::Errno::SRCH) => {
            let what = format!(
                "the file {shown} belongs to a demo that still runs, process {}",
                process.as_raw_nonzero()
            );
            Err(CommandError::usage(what).hint(NEW_FILE))
        }
        Some(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_ended_demos_are_replaced() {
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
    fn foreign_content_in_the_kubeconfig_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config");
        let file = PrivateFile::create(Some(&path)).unwrap();
        fs::write(&path, "mine").unwrap();
        drop(file);
        assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
    }

    #[test]
    fn kubeconfig_is_readable_only_by_its_owner() {
        use std::os::unix::fs::PermissionsExt;
        let file = PrivateFile::create(None).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(file.path()), 0o600);
        let folder = file.path().parent().unwrap().to_owned();
        assert_eq!(mode(&folder), 0o700);
        // What the hub keeps there goes, too.
        fs::create_dir_all(folder.join(HUB).join("agents")).unwrap();
        write_private(&folder.join(HUB).join("hub.db"), "rows").unwrap();
        drop(file);
        assert!(!folder.exists());
    }
}
