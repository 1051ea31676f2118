//! The questions of views, answered by what follows the clusters.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use taffrail_api::question::{QuestionError, ViewAnswer, ViewQuestion};

/// The part of the program that reads the clusters, and answers the questions of views from them.
pub trait Ask: Send + Sync {
    /// Answers a question within `patience`: what clusters have not answered by then is missing in the answer, which says
    /// so. The work for it ends when the future is dropped.
    fn ask(&self, question: ViewQuestion, patience: Duration) -> Asking<'_>;
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
    #[error("{0}")]
    Invalid(String),
    /// A cluster answers as many questions as it may; holds its name.
    #[error("cluster {0} answers as many questions as it may")]
    Busy(String),
    /// The clusters are not followed any more.
    #[error("the hub does not follow its clusters any more")]
    Ended,
}
