//! The Pods of an object or app.

use std::collections::{BTreeSet, HashSet};

use futures::future::join_all;
use taffrail_apps::{App, Objects as _, dependents};
use taffrail_cluster::{ApiResource, Cluster, Discovery, ListRequest, ReadError};
use taffrail_object::json::{OwnedDocument, Value};
use taffrail_object::{LabelSelector, Object, ObjectKey, Projection};
use taffrail_status::{ClusterState as _, Presence};

use crate::error::Failure;
use crate::fleet::FleetSnapshot;
use crate::object_arg::{MAX_NAMESPACES, ObjectArg, beyond_namespaces};

/// The kinds, as group and kind, that can stand between an object and its Pods.
const BETWEEN: [(&str, &str); 6] = [
    ("apps", "DaemonSet"),
    ("apps", "Deployment"),
    ("apps", "ReplicaSet"),
    ("apps", "StatefulSet"),
    ("batch", "CronJob"),
    ("batch", "Job"),
];

/// An object that a user names, whose Pods are to be found in one cluster.
#[derive(Debug, Clone)]
pub struct PodsRequest {
    /// The object.
    pub object: ObjectArg,
    /// The namespace of an object named by kind and name; `None` for that of the context.
    pub namespace: Option<String>,
    /// True to find an object named by kind and name in all namespaces.
    pub all_namespaces: bool,
}

/// The Pods of the objects that a user named.
#[derive(Debug, Default)]
pub struct PodsOf {
    /// The objects of that name; empty if there is none, or if the server does not serve the kind.
    pub objects: Vec<ObjectKey>,
    /// True if the server serves the kind.
    pub is_served: bool,
    /// The Pods: the object itself, those that it selects, or those below it by owner references.
    pub pods: Vec<OwnedDocument>,
    /// A note about namespaces with an object of that name that were left out; `None` if there are none.
    pub note: Option<String>,
}

/// Finds the Pods of the object that `request` names.
///
/// # Errors
/// Fails if the cluster, the object or the Pods cannot be read.
pub async fn pods_of_object(cluster: &Cluster, request: &PodsRequest) -> Result<PodsOf, Failure> {
    let failed = |error: ReadError| Failure::of_read(&error);
    if let ObjectArg::Key { key, .. } = &request.object
        && (&*key.group, &*key.kind) == ("", "Pod")
    {
        let pod = cluster.get(&pods(), Some(&key.namespace), &key.name, Projection::Full).await;
        let pods: Vec<OwnedDocument> = pod.map_err(failed)?.into_iter().collect();
        let objects = pods.iter().map(|_| key.clone()).collect();
        return Ok(PodsOf { objects, is_served: true, pods, note: None });
    }
    let discovery = cluster.discover().await.map_err(failed)?;
    let (resource, namespace, name) = match &request.object {
        ObjectArg::Key { key, .. } => {
            let resource = discovery.kind(&key.group, &key.kind).map(|it| it.preferred());
            (resource, &*key.namespace, &*key.name)
        }
        ObjectArg::Named { kind, name } => {
            let namespace = request.namespace.as_deref().unwrap_or(cluster.namespace());
            (discovery.resolve(kind), namespace, &**name)
        }
    };
    let Some(resource) = resource else { return Ok(PodsOf::default()) };
    let is_everywhere =
        request.all_namespaces && resource.namespaced && matches!(request.object, ObjectArg::Named { .. });
    let namespaces = match is_everywhere {
        true => namespaces_of(cluster, &resource, name).await.map_err(failed)?,
        false => BTreeSet::from([namespace.to_owned()]),
    };
    let note = beyond_namespaces(name, namespaces.len());
    let mut found = PodsOf { is_served: true, note, ..PodsOf::default() };
    for namespace in namespaces.into_iter().take(MAX_NAMESPACES) {
        let projection = projection(&resource);
        let object = cluster.get(&resource, Some(&namespace), name, projection).await.map_err(failed)?;
        let Some(document) = object else { continue };
        let Ok(object) = Object::new(document.root()) else { continue };
        found.objects.push(ObjectKey::of(&object));
        if (&*resource.group, &*resource.kind) == ("", "Pod") {
            found.pods.push(document);
            continue;
        }
        let pods = pods();
        let pods = match selector(&object) {
            Some(selector) => selected(cluster, &pods, &namespace, &selector).await,
            None if resource.namespaced => owned(cluster, &discovery, &pods, &namespace, &object).await,
            None => Ok(Vec::new()),
        };
        found.pods.extend(pods.map_err(failed)?);
    }
    Ok(found)
}

/// Returns the Pods among the objects of an app and their dependents, as far as they were read; none if the app's
/// objects are in a cluster that was not read.
pub fn pods_of_app(fleet: &FleetSnapshot, app: &App) -> Vec<OwnedDocument> {
    let snapshot = fleet.snapshots.iter().find(|snapshot| snapshot.name() == app.app.target);
    let Some(snapshot) = snapshot.filter(|_| app.in_reach) else { return Vec::new() };
    let mut waiting: Vec<ObjectKey> = app.resources.iter().map(|resource| (*resource.key).clone()).collect();
    let mut seen = HashSet::new();
    let mut pods = Vec::new();
    while let Some(key) = waiting.pop() {
        if !seen.insert(key.clone()) {
            continue;
        }
        let Presence::Present(observed) = snapshot.get(key.as_ref()) else { continue };
        if (&*key.group, &*key.kind) == ("", "Pod") {
            pods.extend(observed.object.to_document().ok());
        }
        waiting.extend(dependents(snapshot, &observed).map(|below| below.key.to_owned()));
    }
    pods
}

/// Returns the resource of Pods, which every server has.
pub(super) fn pods() -> ApiResource {
    ApiResource {
        group: String::new(),
        version: "v1".to_owned(),
        kind: "Pod".to_owned(),
        plural: "pods".to_owned(),
        namespaced: true,
    }
}

fn kind(discovery: &Discovery, group: &str, kind: &str) -> Option<ApiResource> {
    Some(discovery.kind(group, kind)?.preferred())
}

/// Returns the part of an object that is read to find its Pods: of a Secret or ConfigMap the metadata, of all others
/// the whole.
fn projection(resource: &ApiResource) -> Projection {
    match (&*resource.group, &*resource.kind) {
        ("", "Secret" | "ConfigMap") => Projection::Metadata,
        _ => Projection::Full,
    }
}

async fn namespaces_of(
    cluster: &Cluster,
    resource: &ApiResource,
    name: &str,
) -> Result<BTreeSet<String>, ReadError> {
    let fields = format!("metadata.name={name}");
    let request = ListRequest {
        projection: Projection::Metadata,
        field_selector: Some(&fields),
        ..ListRequest::all(resource)
    };
    let listing = cluster.list(&request).await?;
    let namespace = |document: &OwnedDocument| {
        let object = Object::new(document.root()).ok()?;
        (object.name() == name).then(|| object.namespace().into_owned())
    };
    Ok(listing.objects.iter().filter_map(namespace).collect())
}

/// Returns the label selector in `spec.selector` of a Service, a PodDisruptionBudget, or an object of any kind with a
/// template of Pods, as that of its Pods; `None` for other objects, which may select volumes or Services, if there is
/// no selector, and for one that selects all Pods.
fn selector(object: &Object<'_>) -> Option<LabelSelector> {
    let own = object.at(&["spec", "selector"]).filter(|own| !own.is_null())?;
    let selector = match (object.group(), object.kind()) {
        ("", "Service" | "ReplicationController") => LabelSelector::of_labels(Some(own)),
        kind => {
            let has_template = object.at(&["spec", "template", "spec", "containers"]).is_some();
            let is_of_pods = has_template || kind == ("policy", "PodDisruptionBudget");
            is_of_pods.then(|| LabelSelector::of_object(Some(own)))?
        }
    };
    // An empty one would select all Pods of the namespace, whose logs are not meant.
    let is_bounded = selector.requirements().next().is_some();
    is_bounded.then_some(selector)
}

async fn selected(
    cluster: &Cluster,
    pods: &ApiResource,
    namespace: &str,
    selector: &LabelSelector,
) -> Result<Vec<OwnedDocument>, ReadError> {
    let labels = selector.to_string();
    let request =
        ListRequest { namespace: Some(namespace), label_selector: Some(&labels), ..ListRequest::all(pods) };
    Ok(cluster.list(&request).await?.objects)
}

/// Returns the Pods in `namespace` that `object` owns, itself or by objects of the kinds in [`BETWEEN`].
async fn owned(
    cluster: &Cluster,
    discovery: &Discovery,
    pods: &ApiResource,
    namespace: &str,
    object: &Object<'_>,
) -> Result<Vec<OwnedDocument>, ReadError> {
    let between: Vec<ApiResource> =
        BETWEEN.into_iter().filter_map(|(group, name)| kind(discovery, group, name)).collect();
    let list = |resource, projection| async move {
        let request = ListRequest { namespace: Some(namespace), projection, ..ListRequest::all(resource) };
        Ok::<_, ReadError>(cluster.list(&request).await?.objects)
    };
    let lists = between.iter().map(|resource| list(resource, Projection::Metadata));
    let (lists, pods) = futures::join!(join_all(lists), list(pods, Projection::Full));
    // A kind that may not be listed hides only what is below it.
    let between: Vec<OwnedDocument> = lists.into_iter().filter_map(Result::ok).flatten().collect();
    let mut above: HashSet<String> = HashSet::from([object.text(&["metadata", "uid"]).into_owned()]);
    above.remove("");
    loop {
        let before = above.len();
        for document in &between {
            let Ok(object) = Object::new(document.root()) else { continue };
            if is_below(&object, &above) {
                above.insert(object.text(&["metadata", "uid"]).into_owned());
            }
        }
        if above.len() == before {
            break;
        }
    }
    let is_below =
        |document: &OwnedDocument| Object::new(document.root()).is_ok_and(|object| is_below(&object, &above));
    Ok(pods?.into_iter().filter(is_below).collect())
}

fn is_below(object: &Object<'_>, above: &HashSet<String>) -> bool {
    let mut owners = object.at(&["metadata", "ownerReferences"]).and_then(Value::items).into_iter().flatten();
    owners.any(|owner| owner.get("uid").and_then(Value::as_str).is_some_and(|uid| above.contains(&*uid)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the selector of the Pods of an object of this API version and kind with this specification.
    fn selected_by(version: &str, kind: &str, spec: &str) -> Option<String> {
        let text = format!(r#"{{"apiVersion": "{version}", "kind": "{kind}", "spec": {spec}}}"#);
        let document = OwnedDocument::parse(text.into_bytes()).unwrap();
        selector(&Object::new(document.root()).unwrap()).map(|selector| selector.to_string())
    }

    #[test]
    fn only_selectors_of_pods_select_pods() {
        let labels = r#"{"selector": {"matchLabels": {"app": "web"}}}"#;
        for (version, kind) in
            [("v1", "PersistentVolumeClaim"), ("monitoring.coreos.com/v1", "ServiceMonitor")]
        {
            assert_eq!(selected_by(version, kind, labels), None, "{kind}");
        }
        let machines =
            r#"{"selector": {"matchLabels": {"app": "web"}}, "template": {"spec": {"version": "1"}}}"#;
        assert_eq!(selected_by("cluster.x-k8s.io/v1beta1", "MachineDeployment", machines), None);
        let pods =
            r#"{"selector": {"matchLabels": {"app": "web"}}, "template": {"spec": {"containers": []}}}"#;
        for (version, kind, spec) in [
            ("v1", "Service", r#"{"selector": {"app": "web"}}"#),
            ("policy/v1", "PodDisruptionBudget", labels),
            ("apps/v1", "Deployment", pods),
            ("argoproj.io/v1alpha1", "Rollout", pods),
        ] {
            assert_eq!(selected_by(version, kind, spec).as_deref(), Some("app=web"), "{kind}");
        }
    }
}
