//! The answers of an agent to questions of its hub: those that a hub of this cluster alone would give.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;
use taffrail_agent::{AnswerParts, AnswerQuestions, Answering, AskedQuestion};
use taffrail_api::agent_protocol::{AnswerFault, PlanRequest, QuestionKind};
use taffrail_api::logs::LogsQuestion;
use taffrail_api::operations::{ActionQuestion, OperationEvent, RunRequest, UncertainWrite};
use taffrail_api::question::ViewQuestion;
use taffrail_hub::{Ask as _, AskError, LogBounds, Operate as _, OperationRun};
use taffrail_observe::{FleetMembers, Inquiry};
use taffrail_status::Trust;
use tokio::sync::{mpsc, watch};

use super::{Asker, Deadline, operations};
use crate::rule_source::RulesWithOptions;

/// Maximum length of the lines of logs that are not followed, in bytes.
const MAX_LOGS: usize = 16 << 20;

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
    fn answer(&self, question: AskedQuestion, parts: AnswerParts) -> Answering {
        let asker = Arc::clone(&self.asker);
        let AskedQuestion { kind, question, patience } = question;
        Box::pin(async move {
            match kind {
                QuestionKind::View => {
                    let question: ViewQuestion = read(&question)?;
                    let answer = asker.ask(question, patience).await.map_err(fault)?;
                    parts.send_whole(&written(&answer)?).await
                }
                QuestionKind::Logs => logs(&asker, read(&question)?, patience, &parts).await,
                QuestionKind::Actions => {
                    let question: ActionQuestion = read(&question)?;
                    let answer = asker.actions(question, patience).await.map_err(fault)?;
                    parts.send_whole(&written(&answer)?).await
                }
                QuestionKind::Plan => {
                    let PlanRequest { question, planned_at } = read(&question)?;
                    let now = planned_at.unwrap_or_else(Timestamp::now);
                    let deadline = Deadline::of(patience);
                    let planned = operations::plan(&asker, question, now, deadline).await.map_err(fault)?;
                    parts.send_whole(&written(&planned.with_rights(deadline).await)?).await
                }
                QuestionKind::Run => run(&asker, read(&question)?, patience, &parts).await,
                QuestionKind::Trace => {
                    let writes: Vec<UncertainWrite> = read(&question)?;
                    let traces = asker.trace(writes, patience).await;
                    parts.send_whole(&written(&traces)?).await
                }
            }
        })
    }
}

fn read<T: DeserializeOwned>(question: &[u8]) -> Result<T, AnswerFault> {
    serde_json::from_slice(question).map_err(failed)
}

fn written(answer: &impl Serialize) -> Result<Vec<u8>, AnswerFault> {
    serde_json::to_vec(answer).map_err(failed)
}

fn failed(why: impl std::fmt::Display) -> AnswerFault {
    AnswerFault::Failed(why.to_string())
}

fn fault(error: AskError) -> AnswerFault {
    match error {
        AskError::Question(error) => AnswerFault::Question(error),
        AskError::Late => AnswerFault::Late,
        other => failed(other),
    }
}

/// Sends an event as a line of its own.
async fn send_line(parts: &AnswerParts, event: &impl Serialize) -> Result<(), AnswerFault> {
    let mut line = written(event)?;
    line.push(b'\n');
    parts.send(&line).await
}

async fn logs(
    asker: &Asker,
    question: LogsQuestion,
    patience: Duration,
    parts: &AnswerParts,
) -> Result<(), AnswerFault> {
    let bounds = LogBounds { patience, bytes: MAX_LOGS };
    let mut answer = asker.logs(question, bounds).await.map_err(fault)?;
    while let Some(event) = answer.next().await {
        send_line(parts, &event).await?;
    }
    Ok(())
}

async fn run(
    asker: &Asker,
    request: RunRequest,
    patience: Duration,
    parts: &AnswerParts,
) -> Result<(), AnswerFault> {
    let digest = request.digest.clone();
    // Who asked has gone after that time, and takes the run for one that never began.
    let prepared = tokio::time::timeout(patience, asker.prepare(request)).await;
    let OperationRun { answer, work } = prepared.map_err(|_| AnswerFault::Late)?.map_err(fault)?;
    if answer.digest != digest {
        let message = "the plan has changed since it was shown, so nothing was sent".to_owned();
        return send_line(parts, &OperationEvent::Refused { message, hint: None }).await;
    }
    let (sender, mut events) = mpsc::unbounded_channel();
    let telling = async {
        while let Some(event) = events.recv().await {
            send_line(parts, &event).await?;
        }
        Ok(())
    };
    // A hub that is gone ends the work at its next event.
    let (told, ()) = tokio::join!(telling, work(sender));
    told
}
