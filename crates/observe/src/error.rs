//! The failure of one cluster, and the errors outside of any cluster.

use std::io;
use std::path::PathBuf;

use taffrail_api::question::{ErrorLevel, FleetProblem};
use taffrail_cluster::{KubeconfigError, ReadError, Reason, chain};

/// The reason why one cluster cannot be read.
#[derive(Debug, Clone)]
pub struct Failure {
    /// The reason in one CamelCase word, such as `Forbidden`.
    pub reason: String,
    /// The message in a sentence, for people.
    pub message: String,
}

impl Failure {
    /// Makes a failure with the message of `error` and its causes; appends `hint` in parentheses, unless it is
    /// [`Reason::hint`].
    pub fn new(reason: Reason, error: &dyn std::error::Error, hint: Option<&str>) -> Failure {
        // What the reason tells by itself is told once, below the answer.
        let own = hint.filter(|hint| *hint != reason.hint());
        let hint = own.map(|hint| format!(" ({hint})")).unwrap_or_default();
        Failure { reason: reason.as_str().to_owned(), message: format!("{}{hint}", chain(error)) }
    }

    /// Makes a failure from a failed read; its hint is not included.
    pub fn of_read(error: &ReadError) -> Failure {
        Failure { reason: error.reason().as_str().to_owned(), message: chain(error) }
    }
}

/// Returns true if the server refused a request of which it would refuse a repetition, too.
pub(crate) fn is_refusal(error: &ReadError) -> bool {
    matches!(error.reason(), Reason::Forbidden | Reason::NotFound | Reason::BadRequest | Reason::Invalid)
}

/// A failure outside of any cluster, such as in a kubeconfig or a file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ObserveError {
    /// No kubeconfig can be loaded; or no context was named, and the current one cannot be used.
    #[error("{}", no_cluster(.0))]
    NoCluster(#[source] KubeconfigError),
    /// A kubeconfig, or an entry of one, cannot be used; the other contexts can.
    #[error("cannot use a kubeconfig file, or an entry of one")]
    Kubeconfig(#[source] KubeconfigError),
    /// A pattern with `*` that the user gave matches no context.
    #[error("no context matches '{pattern}'")]
    NoContext {
        /// The pattern as the user gave it.
        pattern: String,
        /// The names of the first 10 contexts, in the order of the kubeconfigs.
        known: Vec<String>,
    },
    /// Something is wrong with a context, and its cluster was read all the same: the warning says why its answers
    /// deserve less trust.
    #[error("context \"{context}\": {warning}")]
    Doubtful {
        /// The name of the context.
        context: String,
        /// The warning, a sentence for people.
        warning: String,
    },
    /// The task that read a cluster panicked or was cancelled.
    #[error("cannot read a cluster: the task that read it panicked or was cancelled")]
    Task(#[from] tokio::task::JoinError),
    /// A file or folder cannot be read.
    #[error("cannot read {}", path.display())]
    File {
        /// The file or folder that cannot be read.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A folder holds no manifest files; holds its path.
    #[error("no manifests in {}", .0.display())]
    NoManifests(PathBuf),
}

/// Returns the step that failed because of the error of an [`ObserveError::NoCluster`]: the load of the kubeconfig, or
/// the use of the current context.
fn no_cluster(error: &KubeconfigError) -> &'static str {
    match error {
        KubeconfigError::NoCurrentContext { .. }
        | KubeconfigError::CurrentContextUnknown(_)
        | KubeconfigError::UnknownContext { .. }
        | KubeconfigError::Unusable { .. } => "no context was named, and the current context cannot be used",
        _ => "cannot load a kubeconfig",
    }
}

impl ObserveError {
    /// Returns `Warning` for a doubtful context, `Usage` for a pattern without a match, and `Unreadable` for all
    /// others.
    pub fn level(&self) -> ErrorLevel {
        match self {
            ObserveError::Doubtful { .. } => ErrorLevel::Warning,
            ObserveError::NoContext { .. } => ErrorLevel::Usage,
            _ => ErrorLevel::Unreadable,
        }
    }

    /// Returns the error as snapshots of fleets contain it: message with causes, severity and hint.
    pub fn told(&self) -> FleetProblem {
        FleetProblem { level: self.level(), message: chain(self), hint: self.hint() }
    }

    /// Returns what the user can do about the error: the hint of the kubeconfig's error if it has one, the first 10
    /// contexts, or which files of a folder are read; `None` for all other errors.
    pub fn hint(&self) -> Option<String> {
        match self {
            ObserveError::NoCluster(error) | ObserveError::Kubeconfig(error) => error.hint(),
            ObserveError::NoContext { known, .. } => {
                Some(format!("the contexts include: {}", known.join(", ")))
            }
            ObserveError::NoManifests(_) => Some(
                "of a folder, files that end in .yaml, .yml, .json or .jsonl are read; -R also reads the folders in it"
                    .to_owned(),
            ),
            ObserveError::Doubtful { .. } | ObserveError::Task(_) | ObserveError::File { .. } => None,
        }
    }
}
