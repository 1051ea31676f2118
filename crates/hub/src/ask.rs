//! The questions of views, answered by what follows the clusters.

use std::future::Future;
use std::pin::Pin;

use taffrail_api::question::{QuestionError, ViewAnswer, ViewQuestion};

/// The part of the program that reads the clusters, and answers the questions of views from them.
pub trait Ask: Send + Sync {
    /// Answers a question. The work for it ends when the future is dropped.
    fn ask(&self, question: ViewQuestion) -> Asking<'_>;
}

/// The future of an answer.
pub type Asking<'a> = Pin<Box<dyn Future<Output = Result<ViewAnswer, AskError>> + Send + 'a>>;

/// The reason why a question is not answered.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// The question names something that the fleet does not have.
    #[error(transparent)]
    Question(#[from] QuestionError),
    /// The question is not one for a hub; holds the reason.
    #[error("the hub cannot answer this question of a view: {0}")]
    Invalid(String),
    /// The hub already reads a cluster for as many questions as it may at one time; holds the cluster's name.
    #[error("the hub already reads cluster {0} for as many questions as it may at one time")]
    Busy(String),
    /// The task that reads the clusters has ended, or failed.
    #[error("cannot answer the question: the hub no longer reads its clusters")]
    Ended,
}
