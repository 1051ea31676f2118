//! Fields that actions write differently each time, so that cases cannot state them: times, and names built from times.

use serde_json::{Map, Value as Tree};

/// Groups, kinds, and the paths in their objects that contain or depend on a time.
const FIELDS: &[(&str, &[&str], &[&str])] = &[
    ("apps", &["DaemonSet", "Deployment", "StatefulSet"], &["spec", "template", "metadata", "annotations"]),
    ("apps", &["Deployment"], &["status"]),
    ("apps", &["Deployment"], &["metadata", "creationTimestamp"]),
    ("apps", &["Deployment"], &["metadata", "generation"]),
    ("argoproj.io", &["Rollout"], &["spec", "restartAt"]),
    ("argoproj.io", &["Workflow"], &["metadata", "resourceVersion"]),
    ("argoproj.io", &["Workflow"], &["metadata", "uid"]),
    ("argoproj.io", &["Workflow"], &["metadata", "annotations", "workflows.argoproj.io/scheduled-time"]),
    ("external-secrets.io", &["ExternalSecret", "PushSecret"], &["metadata", "annotations"]),
    ("postgresql.cnpg.io", &["Cluster"], &["metadata", "annotations", "cnpg.io/reloadedAt"]),
    ("postgresql.cnpg.io", &["Cluster"], &["metadata", "annotations", "kubectl.kubernetes.io/restartedAt"]),
    ("postgresql.cnpg.io", &["Cluster"], &["status", "targetPrimaryTimestamp"]),
    ("helm.toolkit.fluxcd.io", &["HelmRelease"], &["metadata", "annotations"]),
    (
        "source.toolkit.fluxcd.io",
        &["Bucket", "GitRepository", "HelmChart", "HelmRepository", "OCIRepository"],
        &["metadata", "annotations"],
    ),
    ("image.toolkit.fluxcd.io", &["ImageRepository", "ImageUpdateAutomation"], &["metadata", "annotations"]),
    ("kustomize.toolkit.fluxcd.io", &["Kustomization"], &["metadata", "annotations"]),
    ("notification.toolkit.fluxcd.io", &["Receiver"], &["metadata", "annotations"]),
];

/// Removes from an object its creation time, the fields in [`FIELDS`], and the times of a Job's condition
/// `FailureTarget`, as Argo CD's own tests ignore them.
pub(super) fn remove(object: &mut Tree) {
    let text = |key: &str| object.get(key).and_then(Tree::as_str).unwrap_or_default().to_owned();
    let (version, kind) = (text("apiVersion"), text("kind"));
    let group = version.split_once('/').map_or("", |(group, _)| group);
    if let Some(metadata) = at(object, &["metadata"]) {
        metadata.remove("creationTimestamp");
    }
    for (of_group, kinds, path) in FIELDS {
        if *of_group == group
            && kinds.contains(&&*kind)
            && let [path @ .., last] = *path
            && let Some(map) = at(object, path)
        {
            map.remove(*last);
        }
    }
    if (group, &*kind) == ("batch", "Job") {
        let conditions = at(object, &["status"]).and_then(|status| status.get_mut("conditions"));
        for condition in conditions.and_then(Tree::as_array_mut).into_iter().flatten() {
            if condition.get("type").is_some_and(|it| it == "FailureTarget")
                && let Some(condition) = condition.as_object_mut()
            {
                condition.remove("lastTransitionTime");
            }
        }
    }
}

/// Returns the map at a path of an object; `None` if a part of the path is missing or no map is there.
pub(super) fn at<'t>(object: &'t mut Tree, path: &[&str]) -> Option<&'t mut Map<String, Tree>> {
    path.iter().try_fold(object, |tree, key| tree.get_mut(*key))?.as_object_mut()
}
