//! The answers to questions of views: from what the hub follows, and where a view needs more, from a look at the clusters.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use taffrail_api::question::{View, ViewAnswer, ViewQuestion};
use taffrail_apps::ReadQuery;
use taffrail_hub::{Ask, AskError, Asking};
use taffrail_observe::{
    FleetMembers, FleetRules, FleetSnapshot, Inquiry, LookRequest, NO_EXTRA, TimeBudget, TimeLimits,
    absent_namespaces, for_each_cluster, look,
};
use tokio::sync::{Semaphore, mpsc, oneshot};

/// Maximum number of questions that wait for the fleet.
const WAITING: usize = 64;

/// Maximum number of looks at the clusters at one time.
const LOOKS: usize = 8;

/// The time for a look at clusters, and for each request of it.
const LOOK: TimeLimits = TimeLimits { total: TimeBudget::PerCluster(Duration::from_secs(8)), request: None };

/// The part of the hub that answers questions about the clusters that it follows.
pub(super) struct Asker {
    inquiries: mpsc::Sender<Inquiry>,
    members: FleetMembers,
    rules: Arc<dyn FleetRules>,
    looks: Semaphore,
}

impl Asker {
    /// Makes an asker for `members`, and the channel of its questions to the task that follows the clusters.
    pub(super) fn new(members: FleetMembers, rules: Arc<dyn FleetRules>) -> (Asker, mpsc::Receiver<Inquiry>) {
        let (inquiries, receiver) = mpsc::channel(WAITING);
        (Asker { inquiries, members, rules, looks: Semaphore::new(LOOKS) }, receiver)
    }

    /// Answers the question of a view.
    async fn answer<V: View<Answer: Send + 'static> + Clone + Send + 'static>(
        &self,
        view: V,
    ) -> Result<V::Answer, AskError> {
        let asked = view.reads();
        let mut answer = match is_followed(&asked) {
            true => {
                let view = view.clone();
                self.ask_followed(move |fleet| {
                    let mut answer = view.answer(fleet)?;
                    // The hub follows the apps of all namespaces.
                    if view.reads_more(&answer).is_some() {
                        view.complete(&mut answer, fleet);
                    }
                    Ok(answer)
                })
                .await?
            }
            false => view.answer(&self.look(asked).await?),
        }
        .map_err(AskError::Question)?;
        if let Some(unseen) = view.unseen_namespaces(&mut answer) {
            *unseen = self.not_existing(std::mem::take(unseen)).await?;
        }
        Ok(answer)
    }

    /// Calls `work` with the fleet that the hub follows.
    async fn ask_followed<T: Send + 'static>(
        &self,
        work: impl FnOnce(&FleetSnapshot) -> T + Send + 'static,
    ) -> Result<T, AskError> {
        let (sender, receiver) = oneshot::channel();
        let inquiry: Inquiry = Box::new(move |fleet| {
            // An asker that is gone costs nothing more.
            if !sender.is_closed() {
                let _ = sender.send(work(fleet));
            }
        });
        self.inquiries.send(inquiry).await.map_err(|_| AskError::Ended)?;
        receiver.await.map_err(|_| AskError::Ended)
    }

    /// Reads what `asked` needs of all clusters.
    async fn look(&self, asked: ReadQuery) -> Result<FleetSnapshot, AskError> {
        let _permit = self.looks.acquire().await.map_err(|_| AskError::Ended)?;
        let request = LookRequest {
            members: self.members.clone(),
            limits: LOOK,
            asked,
            now: Timestamp::now(),
            rules: Arc::clone(&self.rules),
            answered: Arc::new(|_| {}),
        };
        let (fleet, _) = look(request, NO_EXTRA).await.map_err(|_| AskError::Ended)?;
        Ok(fleet)
    }

    /// Returns those of `unseen`, namespaces of which nothing was read, that do not exist in any cluster.
    async fn not_existing(&self, unseen: Vec<String>) -> Result<Vec<String>, AskError> {
        if unseen.is_empty() {
            return Ok(unseen);
        }
        let (asked, now, rules): (Arc<[String]>, _, _) =
            (unseen.clone().into(), Timestamp::now(), Arc::clone(&self.rules));
        let absent = for_each_cluster(self.members.members.clone(), LOOK, move |live| {
            absent_namespaces(live, Arc::clone(&asked), now, Arc::clone(&rules))
        });
        let absent = absent.await.map_err(|_| AskError::Ended)?;
        Ok(unseen.into_iter().filter(|name| absent.iter().all(|absent| absent.contains(name))).collect())
    }
}

/// Returns true if a hub follows all that `asked` reads.
fn is_followed(asked: &ReadQuery) -> bool {
    ReadQuery { namespace: None, ..asked.clone() } == ReadQuery::default()
}

impl Ask for Asker {
    fn ask(&self, question: ViewQuestion) -> Asking<'_> {
        Box::pin(async move {
            match question {
                ViewQuestion::Apps(view) => self.answer(view).await.map(ViewAnswer::Apps),
                ViewQuestion::Clusters(view) => self.answer(view).await.map(ViewAnswer::Clusters),
                ViewQuestion::Resources(view) => match view.orphaned_in() {
                    Some(namespaces) if namespaces.is_empty() => {
                        let why = "objects that no app declares are searched in namespaces: name some";
                        Err(AskError::Invalid(why.to_owned()))
                    }
                    _ => self.answer(view).await.map(ViewAnswer::Resources),
                },
                ViewQuestion::App(view) => self.answer(view).await.map(ViewAnswer::App),
                ViewQuestion::Tree(view) => self.answer(view).await.map(ViewAnswer::Tree),
                ViewQuestion::Events(view) => self.answer(view).await.map(ViewAnswer::Events),
                ViewQuestion::Trust(view) => self.answer(view).await.map(ViewAnswer::Trust),
            }
        })
    }
}
