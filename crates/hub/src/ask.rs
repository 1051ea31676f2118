//! The interface through which the hub gets answers to views' questions that need reads of clusters.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use taffrail_api::question::{QuestionError, ViewAnswer, ViewQuestion};

/// Answers the questions of views (`get apps`, `tree`, `explain`, …) by reading clusters. The binary implements it; the
/// hub calls it for `/api/v1/questions`.
pub trait Ask: Send + Sync {
    /// Returns a future that answers `question` within `patience`. The answer leaves out, and says so, the data that
    /// clusters have not sent by then. Dropping the future ends the work for it.
    fn ask(&self, question: ViewQuestion, patience: Duration) -> Asking<'_>;
}

/// The boxed future that [`Ask::ask`] returns.
pub type Asking<'a> = Pin<Box<dyn Future<Output = Result<ViewAnswer, AskError>> + Send + 'a>>;

/// The reason why [`Ask::ask`] returned no answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// The question names something that the fleet does not have, or an app by a name that several apps have.
    #[error(transparent)]
    Question(#[from] QuestionError),
    /// The question has parameters with which a hub cannot answer it; holds the reason.
    #[error("the hub cannot answer this question of a view: {0}")]
    Invalid(String),
    /// The turn of the question at a cluster, which is read for a limited number of questions at one time, did not come
    /// in time; holds the name of the cluster.
    #[error("the hub already reads cluster {0} for as many questions as it may at one time")]
    Busy(String),
    /// The task that reads the clusters has ended, or failed.
    #[error("cannot answer the question: the hub no longer reads its clusters")]
    Ended,
}
