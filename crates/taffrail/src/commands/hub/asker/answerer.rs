//! The answers of an agent to questions of its hub: those that a hub of this cluster alone would give.

use std::sync::Arc;
use std::time::Duration;

use taffrail_agent::{AnswerQuestions, Answering};
use taffrail_api::agent_protocol::AnswerFault;
use taffrail_api::question::ViewQuestion;
use taffrail_hub::{Ask as _, AskError};
use taffrail_observe::{FleetMembers, Inquiry};
use taffrail_status::Trust;
use tokio::sync::{mpsc, watch};

use super::Asker;
use crate::rule_source::RulesWithOptions;

/// Answers the questions of a hub.
struct Answerer {
    asker: Arc<Asker>,
    /// Held because the asker looks at them for as long as it lives.
    _members: watch::Sender<FleetMembers>,
}

/// Makes what answers the questions of a hub about the cluster in `members`, and the receiver of its inquiries, which the
/// task that follows the cluster must answer.
pub(crate) fn answerer(
    members: FleetMembers,
    rules: RulesWithOptions,
    trust: Trust,
) -> (Arc<dyn AnswerQuestions>, mpsc::Receiver<Inquiry>) {
    let (sender, members) = watch::channel(members);
    let (asker, inquiries) = Asker::new(members, rules, trust);
    (Arc::new(Answerer { asker: Arc::new(asker), _members: sender }), inquiries)
}

impl AnswerQuestions for Answerer {
    fn answer(&self, question: Vec<u8>, patience: Duration) -> Answering {
        let asker = Arc::clone(&self.asker);
        Box::pin(async move {
            let failed = |why: &dyn std::fmt::Display| AnswerFault::Failed(why.to_string());
            let question: ViewQuestion = serde_json::from_slice(&question).map_err(|error| failed(&error))?;
            let answer = asker.ask(question, patience).await.map_err(|error| match error {
                AskError::Question(error) => AnswerFault::Question(error),
                AskError::Late => AnswerFault::Late,
                other => failed(&other),
            })?;
            serde_json::to_vec(&answer).map_err(|error| failed(&error))
        })
    }
}
