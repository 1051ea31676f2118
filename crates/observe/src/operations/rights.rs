//! Asks the API servers whether they would allow the writes of a plan.

use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use serde_json::json;
use taffrail_api::operations::{OperationPlan, PlannedChange};
use taffrail_cluster::{Cluster, CreateRequest};
use taffrail_object::{ApiResource, Object, ObjectKey};

/// Maximum number of questions that are asked of all clusters at one time.
const AT_ONCE: usize = 16;

/// A write about whose permission its API server is asked: the place of its item in the plan, the connection, and the
/// resource.
pub(super) struct RightsQuestion {
    place: usize,
    cluster: Cluster,
    verb: &'static str,
    object: ObjectKey,
    resource: ApiResource,
}

/// Returns what the API servers are asked about a plan, each within `time`; `find` returns the connection to the cluster
/// of a write of the item at a place, and its resource.
pub(super) fn rights_questions<T>(
    plan: &OperationPlan<T>,
    time: Duration,
    find: impl Fn(usize, &ObjectKey) -> Option<(Cluster, ApiResource)>,
) -> Vec<RightsQuestion> {
    let mut questions = Vec::new();
    for (place, item) in plan.items.iter().enumerate() {
        for write in &item.writes {
            let verb = match write.change {
                PlannedChange::Patch { .. } => "patch",
                PlannedChange::Create { .. } => "create",
            };
            let object = write.object.clone();
            questions.extend(find(place, &object).map(|(cluster, resource)| {
                let cluster = cluster.within(time);
                RightsQuestion { place, cluster, verb, object, resource }
            }));
        }
    }
    questions
}

/// Asks the API servers whether they would allow the writes of a plan (by SelfSubjectAccessReviews, which store nothing),
/// and notes the refusals in the plan. A server that does not answer in time, or cannot be asked, refuses nothing.
pub(super) async fn note_refusals<T>(plan: &mut OperationPlan<T>, mut waiting: Vec<RightsQuestion>) {
    let mut asked = FuturesUnordered::new();
    loop {
        while asked.len() < AT_ONCE {
            let Some(next) = waiting.pop() else { break };
            asked.push(async move { (next.place, refusal(&next).await) });
        }
        let Some((place, refusal)) = asked.next().await else { return };
        if let (Some(item), Some(refusal)) = (plan.items.get_mut(place), refusal) {
            item.forbidden = Some(refusal);
        }
    }
}

/// Returns the reason why the server would refuse a request; `None` if it would not, or does not say.
async fn refusal(question: &RightsQuestion) -> Option<String> {
    let RightsQuestion { cluster, verb, object, resource, .. } = question;
    let reviews = ApiResource {
        group: "authorization.k8s.io".to_owned(),
        version: "v1".to_owned(),
        kind: "SelfSubjectAccessReview".to_owned(),
        plural: "selfsubjectaccessreviews".to_owned(),
        namespaced: false,
    };
    let attributes = json!({
        "verb": verb, "group": resource.group, "resource": resource.plural, "namespace": object.namespace,
        "name": object.name,
    });
    let body = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": reviews.kind, "spec": { "resourceAttributes": attributes },
    })
    .to_string();
    let request =
        CreateRequest { resource: &reviews, namespace: None, body: body.as_bytes(), dry_run: false };
    let answered = cluster.create(&request).await.ok()?;
    let review = Object::new(answered.root()).ok()?;
    if review.at(&["status", "allowed"])?.as_bool()? {
        return None;
    }
    let because = match &*review.text(&["status", "reason"]) {
        "" => String::new(),
        reason => format!(": {reason}"),
    };
    Some(format!("the API server does not allow to {verb} {} {}{because}", object.kind, object.path()))
}
