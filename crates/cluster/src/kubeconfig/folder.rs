//! Folders of kubeconfig files, each of which stands alone.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Kubeconfig, KubeconfigError};

/// The endings that are no part of a file's name in the names of its contexts.
const ENDINGS: [&str; 5] = ["yaml", "yml", "kubeconfig", "conf", "config"];

/// The endings of files that editors and people keep beside those that they change.
const COPIES: [&str; 2] = ["~", ".bak"];

/// The size of a file, in bytes, beyond which it is taken for another file than a kubeconfig.
const MAX_SIZE: u64 = 16 << 20;

/// A context of a file in a folder.
#[derive(Debug)]
pub(super) struct FolderContext {
    /// The name of the file without its ending, and, if the file has several contexts, `/` and the context's own name.
    pub(super) name: String,
    pub(super) file: Arc<Kubeconfig>,
    /// The name of the context in its file.
    pub(super) own: String,
}

/// Reads each file of `folder`, in the order of their names, and returns all contexts; adds the defects of files to
/// `problems`. Skips folders, files whose names begin with a dot, and those that end like copies of others.
pub(super) fn read(folder: &Path, problems: &mut Vec<KubeconfigError>) -> Vec<FolderContext> {
    let files = match files(folder) {
        Ok(files) => files,
        Err(source) => {
            problems.push(KubeconfigError::Unreadable { file: folder.to_owned(), source });
            return Vec::new();
        }
    };
    let mut contexts = Vec::new();
    for file in files {
        if file.metadata().is_ok_and(|file| file.len() > MAX_SIZE) {
            problems.push(KubeconfigError::TooLarge { file, most: MAX_SIZE >> 20 });
            continue;
        }
        let stem = stem(&file);
        let mut text = match Kubeconfig::merge(vec![file]) {
            Ok(text) => text,
            Err(problem) => {
                problems.push(problem);
                continue;
            }
        };
        problems.append(&mut text.problems);
        let names: Vec<String> = text.names().map(str::to_owned).collect();
        let text = Arc::new(text);
        let is_only = names.len() == 1;
        contexts.extend(names.into_iter().map(|own| {
            let name = if is_only { stem.clone() } else { format!("{stem}/{own}") };
            FolderContext { name, file: Arc::clone(&text), own }
        }));
    }
    contexts
}

fn files(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.as_encoded_bytes();
        let is_skipped = name.starts_with(b".") || COPIES.iter().any(|copy| name.ends_with(copy.as_bytes()));
        // The files of a mounted Secret are links.
        if !is_skipped && entry.path().is_file() {
            files.push(entry.path());
        }
    }
    files.sort();
    Ok(files)
}

/// Returns the name of a file without its ending, if that is usual for a kubeconfig.
fn stem(file: &Path) -> String {
    let is_usual = file.extension().is_some_and(|ending| ENDINGS.iter().any(|usual| ending == *usual));
    let name = if is_usual { file.file_stem() } else { file.file_name() };
    name.unwrap_or_default().to_string_lossy().into_owned()
}
