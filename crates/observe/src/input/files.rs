//! The files that the paths of a command line stand for.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::error::ObserveError;

/// Extensions of the files that are read in a folder.
const EXTENSIONS: [&str; 4] = ["yaml", "yml", "json", "jsonl"];

/// A file, or stdin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InputSource {
    /// The standard input.
    Stdin,
    /// A file.
    File(PathBuf),
}

impl InputSource {
    /// Returns the name of the source for messages.
    pub fn name(&self) -> String {
        match self {
            InputSource::Stdin => "stdin".to_owned(),
            InputSource::File(path) => path.display().to_string(),
        }
    }

    /// Opens the file or stdin for reading.
    ///
    /// # Errors
    /// Fails when the file cannot be opened.
    pub fn open(&self) -> Result<Box<dyn Read + Send>, ObserveError> {
        match self {
            InputSource::Stdin => Ok(Box::new(io::stdin())),
            InputSource::File(path) => match File::open(path) {
                Ok(file) => Ok(Box::new(file)),
                Err(error) => Err(cannot_read(path, error)),
            },
        }
    }
}

fn cannot_read(path: &Path, source: io::Error) -> ObserveError {
    ObserveError::File { path: path.to_owned(), source }
}

/// Returns the files to read for `paths`: each folder is replaced by the manifests in it, sorted by name; with
/// `recursive` also those in its subfolders, except linked ones. The path `-` stands for stdin.
///
/// The second value has the errors of folders that cannot be read or contain no manifests.
pub fn sources(paths: &[PathBuf], recursive: bool) -> (Vec<InputSource>, Vec<ObserveError>) {
    let mut found = Vec::new();
    let mut problems = Vec::new();
    for path in paths {
        if path.as_os_str() == "-" {
            found.push(InputSource::Stdin);
        } else if path.is_dir() {
            let before = (found.len(), problems.len());
            folder(path, recursive, &mut found, &mut problems);
            if (found.len(), problems.len()) == before {
                problems.push(ObserveError::NoManifests(path.clone()));
            }
        } else {
            found.push(InputSource::File(path.clone()));
        }
    }
    (found, problems)
}

fn folder(path: &Path, recursive: bool, found: &mut Vec<InputSource>, problems: &mut Vec<ObserveError>) {
    let entries = match std::fs::read_dir(path).and_then(Iterator::collect::<io::Result<Vec<_>>>) {
        Ok(entries) => entries,
        Err(error) => return problems.push(cannot_read(path, error)),
    };
    let mut paths: Vec<PathBuf> = entries.into_iter().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        // A link to a folder may lead back here.
        if path.is_dir() {
            if recursive && !path.is_symlink() {
                folder(&path, recursive, found, problems);
            }
        } else if path.extension().is_some_and(|extension| EXTENSIONS.iter().any(|known| extension == *known))
        {
            found.push(InputSource::File(path));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_empty_folder_is_told() {
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let paths = folders.each_ref().map(|folder| folder.path().to_owned());
        let (found, problems) = sources(&paths, true);
        assert!(found.is_empty());
        let told = problems.iter().filter(|it| matches!(it, ObserveError::NoManifests(_))).count();
        assert_eq!(told, 2, "{problems:?}");
    }
}
