//! Which files a command line means.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::complaint::Complaint;

/// What files in a folder must be called to be read.
const EXTENSIONS: [&str; 4] = ["yaml", "yml", "json", "jsonl"];

/// A file, or stdin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    Stdin,
    File(PathBuf),
}

impl Source {
    /// The name for messages.
    pub(crate) fn name(&self) -> String {
        match self {
            Source::Stdin => "stdin".to_owned(),
            Source::File(path) => path.display().to_string(),
        }
    }

    pub(crate) fn open(&self) -> Result<Box<dyn Read + Send>, Complaint> {
        match self {
            Source::Stdin => Ok(Box::new(io::stdin())),
            Source::File(path) => match File::open(path) {
                Ok(file) => Ok(Box::new(file)),
                Err(error) => Err(cannot_read(path, &error)),
            },
        }
    }
}

fn cannot_read(path: &Path, error: &io::Error) -> Complaint {
    Complaint::unreadable(format!("cannot read {}", path.display())).because(error)
}

/// The files that `paths` mean: folders stand for the manifests in them, in order of their names.
///
/// What cannot be read is complained of beside the rest.
pub(crate) fn sources(paths: &[PathBuf], recursive: bool) -> (Vec<Source>, Vec<Complaint>) {
    let mut found = Vec::new();
    let mut complaints = Vec::new();
    for path in paths {
        if path.as_os_str() == "-" {
            found.push(Source::Stdin);
        } else if path.is_dir() {
            let before = found.len();
            folder(path, recursive, &mut found, &mut complaints);
            if found.len() == before && complaints.is_empty() {
                let complaint = Complaint::unreadable(format!("no manifests in {}", path.display()));
                let hint =
                    "files ending in .yaml, .yml, .json or .jsonl are read; -R reads folders inside it too";
                complaints.push(complaint.hint(hint));
            }
        } else {
            found.push(Source::File(path.clone()));
        }
    }
    (found, complaints)
}

fn folder(path: &Path, recursive: bool, found: &mut Vec<Source>, complaints: &mut Vec<Complaint>) {
    let entries = match std::fs::read_dir(path).and_then(Iterator::collect::<io::Result<Vec<_>>>) {
        Ok(entries) => entries,
        Err(error) => return complaints.push(cannot_read(path, &error)),
    };
    let mut paths: Vec<PathBuf> = entries.into_iter().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        // A link to a folder may lead back here.
        if path.is_dir() {
            if recursive && !path.is_symlink() {
                folder(&path, recursive, found, complaints);
            }
        } else if path.extension().is_some_and(|extension| EXTENSIONS.iter().any(|known| extension == *known))
        {
            found.push(Source::File(path));
        }
    }
}
