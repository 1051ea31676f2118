//! The errors of kubeconfig files.

use std::io;
use std::path::PathBuf;

use crate::error::{BoxError, Reason};

/// The reason why a kubeconfig, or one of its contexts, cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KubeconfigError {
    /// There is no kubeconfig; holds the path of the usual file, `None` if the home folder is unknown.
    #[error("there is no kubeconfig{}", looked_for(.0))]
    NotConfigured(Option<PathBuf>),
    /// None of the named files exists.
    #[error("kubeconfig {} does not exist", file_list(.0))]
    Missing(Vec<PathBuf>),
    /// The file exists but cannot be read.
    #[error("cannot read kubeconfig {}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The file is not text.
    #[error("kubeconfig {} is not text", .0.display())]
    NotText(PathBuf),
    /// The file is empty.
    #[error("kubeconfig {} is empty", .0.display())]
    Empty(PathBuf),
    /// The file is not YAML, or does not have the structure of a kubeconfig.
    #[error("kubeconfig {}:{line}: {what}", file.display())]
    Malformed {
        /// The file.
        file: PathBuf,
        /// The line, from 1.
        line: u64,
        /// Description of the defect.
        what: String,
    },
    /// A file in a folder has a context with the name of another one.
    #[error("kubeconfig {}: its context \"{context}\" is left out: another one has this name", file.display())]
    Repeated {
        /// The name.
        context: String,
        /// The file.
        file: PathBuf,
    },
    /// A file in a folder is too large for a kubeconfig.
    #[error("kubeconfig {} is not read: it has more than {most} MiB", file.display())]
    TooLarge {
        /// The file.
        file: PathBuf,
        /// The greatest size, in MiB.
        most: u64,
    },
    /// The files have no contexts.
    #[error("kubeconfig {} has no contexts", file_list(.0))]
    NoContexts(Vec<PathBuf>),
    /// No context was selected, and the files set no current one.
    #[error("kubeconfig {} has no current context", file_list(.files))]
    NoCurrentContext {
        /// The files.
        files: Vec<PathBuf>,
        /// The names of the existing contexts.
        known: Vec<String>,
    },
    /// An unreadable file may have set another current context.
    #[error("the current context is not known: kubeconfig {} cannot be read", .0.display())]
    CurrentContextUnknown(PathBuf),
    /// There is no such context.
    #[error("there is no context \"{name}\"")]
    UnknownContext {
        /// The name that was given.
        name: String,
        /// The names of the existing contexts, most similar name first.
        known: Vec<String>,
    },
    /// The context cannot be used.
    #[error("context \"{context}\" ({}:{line}): {what}", file.display())]
    Unusable {
        /// The context's name.
        context: String,
        /// The file of the entry at fault.
        file: PathBuf,
        /// The line of the entry at fault, from 1.
        line: u64,
        /// Description of the defect.
        what: String,
        /// The underlying error, if there is one.
        source: Option<BoxError>,
    },
}

fn looked_for(file: &Option<PathBuf>) -> String {
    file.as_ref().map(|file| format!(": {} does not exist", file.display())).unwrap_or_default()
}

fn file_list(files: &[PathBuf]) -> String {
    files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join(", ")
}

impl KubeconfigError {
    /// Returns the same error, of a context that is called `name` outside of its file.
    pub(super) fn of_context(self, name: &str) -> KubeconfigError {
        match self {
            KubeconfigError::Unusable { file, line, what, source, .. } => {
                KubeconfigError::Unusable { context: name.to_owned(), file, line, what, source }
            }
            other => other,
        }
    }

    /// Returns the class of this failure: always [`Reason::BadKubeconfig`].
    pub fn reason(&self) -> Reason {
        Reason::BadKubeconfig
    }

    /// Returns what the user can do; `None` unless there is no kubeconfig, no current context or no such context, or
    /// the current context is not known.
    pub fn hint(&self) -> Option<String> {
        match self {
            KubeconfigError::NotConfigured(_) => {
                Some("name a file with --kubeconfig or KUBECONFIG".to_owned())
            }
            KubeconfigError::NoCurrentContext { known, .. } => {
                Some(format!("choose a context with --context: {}", some_of(known)))
            }
            KubeconfigError::CurrentContextUnknown(_) => Some("choose a context with --context".to_owned()),
            KubeconfigError::UnknownContext { known, .. } => {
                Some(format!("the contexts are: {}", some_of(known)))
            }
            _ => None,
        }
    }
}

/// Joins the first 10 names of a list with commas; then adds the number of further ones, if there are any.
fn some_of(names: &[String]) -> String {
    const SHOWN: usize = 10;
    let mut text = names.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    if let Some(more) = names.len().checked_sub(SHOWN).filter(|more| *more > 0) {
        text.push_str(&format!(" and {more} more"));
    }
    text
}
