//! Whether the API servers would allow the writes of a plan, as they say themselves.

use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use serde_json::json;
use taffrail_api::operations::{PlanAnswer, PlannedChange};
use taffrail_cluster::{Cluster, CreateRequest};
use taffrail_object::{ApiResource, Object, ObjectKey};

use super::verbs::{resource, snapshot};
use crate::follow::FleetWatcher;

/// Maximum number of questions that are asked of all clusters at one time.
const AT_ONCE: usize = 16;

/// Asks the API server of each write of a plan whether it would allow that (by a SelfSubjectAccessReview, which stores
/// nothing), and notes the refusals in the plan. Takes at most `time`; a server that does not answer by then, or cannot
/// be asked, refuses nothing.
pub async fn note_rights(answer: &mut PlanAnswer, follow: &mut FleetWatcher, time: Duration) {
    let fleet = follow.fleet();
    let mut questions = Vec::new();
    for (place, item) in answer.plan.items.iter().enumerate() {
        for write in &item.writes {
            let verb = match write.change {
                PlannedChange::Patch { .. } => "patch",
                PlannedChange::Create { .. } => "create",
            };
            let found = snapshot(fleet, &item.cluster).and_then(|snapshot| resource(snapshot, &write.object));
            questions.extend(
                found.map(|resource| (place, item.cluster.clone(), verb, write.object.clone(), resource)),
            );
        }
    }
    let asking = questions.into_iter().filter_map(|(place, cluster, verb, object, resource)| {
        let cluster = follow.cluster(&cluster)?.within(time);
        Some(async move { (place, refusal(&cluster, verb, &object, &resource).await) })
    });
    let mut waiting: Vec<_> = asking.collect();
    let mut asked = FuturesUnordered::new();
    loop {
        while asked.len() < AT_ONCE {
            let Some(next) = waiting.pop() else { break };
            asked.push(next);
        }
        let Some((place, refusal)) = asked.next().await else { return };
        if let (Some(item), Some(refusal)) = (answer.plan.items.get_mut(place), refusal) {
            item.forbidden = Some(refusal);
        }
    }
}

/// Returns the reason why the server would refuse a request; `None` if it would not, or does not say.
async fn refusal(
    cluster: &Cluster,
    verb: &str,
    object: &ObjectKey,
    resource: &ApiResource,
) -> Option<String> {
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
