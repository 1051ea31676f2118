//! Limits on the number of objects that an app, and all apps of a namespace, may claim, because long lists cause work
//! for every reader.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use taffrail_object::ObjectKey;

use super::{Declaration, Declarations, ObjectKeys};

/// The maximum number of objects of one app, or of one Helm release, that are read. Of a longer list only the first
/// count, and the app gets an error. The largest known have some hundreds.
pub(super) const MAX_OBJECTS: usize = 5_000;

/// The maximum number of objects and hooks of all apps of one namespace that are read. If they name more, the apps that
/// name most keep none, and get an error.
const MAX_OBJECTS_PER_NAMESPACE: usize = 100_000;

/// Collects the keys, each once, and stops after one more than [`MAX_OBJECTS`], by which the caller detects
/// the excess.
pub(super) fn gather(keys: impl Iterator<Item = ObjectKey>) -> Vec<ObjectKey> {
    let mut seen = HashSet::new();
    keys.filter(|key| seen.insert(key.clone())).take(MAX_OBJECTS + 1).collect()
}

/// Cuts the claims of the apps from index `first` on to the limits of each app and of each namespace. If a namespace
/// exceeds its limit, those of its apps that claim most lose all objects and hooks.
///
/// An app that loses objects gets an error, and its list counts as unreadable, if an object declares it. Objects that
/// apps share count for each of them, because they are judged and shown for each.
pub(super) fn bound_claims(found: &mut Declarations, first: usize) {
    let number = |app: &Arc<Declaration>| app.objects.len().min(MAX_OBJECTS) + app.claimant.hooks.len();
    let apps = || found.apps.iter().skip(first);
    if apps().all(|app| app.objects.len() <= MAX_OBJECTS)
        && apps().map(number).sum::<usize>() <= MAX_OBJECTS_PER_NAMESPACE
    {
        return;
    }
    let mut namespaces: BTreeMap<(usize, &str), Vec<usize>> = BTreeMap::new();
    let mut cuts: Vec<(usize, ObjectKeys, String)> = Vec::new();
    for (place, app) in found.apps.iter().enumerate().skip(first) {
        if app.objects.len() > MAX_OBJECTS {
            let kept = app.objects.iter().take(MAX_OBJECTS).cloned().collect();
            let why =
                format!("names more than {MAX_OBJECTS} objects: only the first {MAX_OBJECTS} are judged");
            cuts.push((place, kept, why));
        }
        namespaces.entry((app.home, &app.namespace)).or_default().push(place);
    }
    for ((_, namespace), mut places) in namespaces {
        let number = |place: &usize| found.apps.get(*place).map_or(0, number);
        if places.iter().map(number).sum::<usize>() <= MAX_OBJECTS_PER_NAMESPACE {
            continue;
        }
        places.sort_by_key(number);
        let mut left = MAX_OBJECTS_PER_NAMESPACE;
        for place in places {
            if number(&place) <= left {
                left -= number(&place);
                continue;
            }
            left = 0;
            let why = format!(
                "names too many objects, so they are not judged: the apps of namespace {namespace} name more than \
                 {MAX_OBJECTS_PER_NAMESPACE} in all, and this app is one of those that name most"
            );
            cuts.push((place, ObjectKeys::default(), why));
        }
    }
    for (place, kept, why) in cuts {
        let Some(app) = found.apps.get_mut(place).map(Arc::make_mut) else { continue };
        if kept.is_empty() {
            app.claimant.hooks = ObjectKeys::default();
        }
        app.objects = kept;
        let Some(key) = app.declaring.clone() else { continue };
        let (home, message) = (app.home, format!("{} {why}", app.declaring_name()));
        app.unreadable.get_or_insert_with(|| (key.clone(), message.clone()));
        found.complain(home, key.as_ref(), "OverLimit", &message);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::Delivery;
    use taffrail_object::Projection;

    fn app(namespace: &str, name: &str, number: usize) -> Declaration {
        let objects = (0..number).map(|at| ObjectKey::new("", "ConfigMap", namespace, format!("c{at}")));
        let objects = gather(objects);
        let own = ObjectKey::new("argoproj.io", "Application", namespace, name);
        let declared = Declaration::by_nobody(
            0,
            Delivery::ArgoApplication,
            namespace.to_owned(),
            name.to_owned(),
            objects,
        );
        Declaration { declaring: Some(own), ..declared }
    }

    #[test]
    fn the_largest_apps_of_a_namespace_lose_their_objects_first() {
        let mut apps: Vec<Declaration> = (0..20).map(|at| app("team-a", &format!("a{at}"), 5_000)).collect();
        apps.push(app("team-a", "small", 10));
        apps.push(app("team-b", "large", 5_000));
        let apps = apps.into_iter().map(Arc::new).collect();
        let mut found = Declarations { apps, ..Declarations::default() };
        bound_claims(&mut found, 0);
        let Declarations { mut apps, errors, .. } = found;
        assert_eq!(errors.len(), 1);
        let cut: Vec<&str> =
            apps.iter().filter(|app| app.unreadable.is_some()).map(|app| &*app.name).collect();
        assert_eq!(cut, ["a19"], "ties go by place");
        assert!(apps.iter().find(|app| app.name == "a19").is_some_and(|app| app.objects.is_empty()));
        let cut = apps.swap_remove(19);
        let (_, why) = cut.unreadable.as_ref().unwrap_or_else(|| panic!("it is cut"));
        assert!(why.contains("the apps of namespace team-a name more than 100000 in all"), "{why}");
    }

    const LISTED: usize = 5_000;

    fn declarations(objects: &[serde_json::Value]) -> Declarations {
        use taffrail_object::json::OwnedDocument;
        use taffrail_status::Trust;

        let mut snapshot = crate::Snapshot::dump("prod", jiff::Timestamp::UNIX_EPOCH);
        for object in objects {
            let document = OwnedDocument::parse(object.to_string().into_bytes());
            let inserted = document.map(|it| snapshot.insert(it, Projection::Full));
            assert!(matches!(inserted, Ok(Ok(_))), "{object}");
        }
        let clusters: [&dyn crate::Objects; 1] = [&snapshot];
        let fleet = crate::fleet::Fleet::new(&clusters);
        Declarations::of(
            &fleet,
            &super::super::AppLabels::default(),
            Trust::NONE,
            jiff::Timestamp::UNIX_EPOCH,
        )
    }

    fn of(found: &Declarations, delivery: Delivery) -> Vec<&Declaration> {
        found.apps.iter().map(|app| &**app).filter(|app| app.delivery == delivery).collect()
    }

    /// Checks that all apps share one list, and that those whose list was cut say so.
    fn check_shared(apps: &[&Declaration]) {
        let full: Vec<_> = apps.iter().filter(|app| !app.objects.is_empty()).collect();
        assert_eq!(full.len(), MAX_OBJECTS_PER_NAMESPACE / LISTED);
        let first = full.first().map(|app| app.objects.shared().as_ptr());
        assert!(full.iter().all(|app| Some(app.objects.shared().as_ptr()) == first), "a list was copied");
        assert!(apps.iter().all(|app| app.objects.is_empty() == app.unreadable.is_some()));
    }

    #[test]
    fn apps_of_one_release_share_its_list() {
        use base64::Engine as _;
        use base64::engine::general_purpose::STANDARD;
        use serde_json::json;

        let manifest: String = (0..LISTED)
            .map(|at| format!("---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c{at}\n"))
            .collect();
        let release = json!({"name": "r", "namespace": "aaa", "version": 1, "manifest": manifest,
            "info": {"status": "deployed"}, "chart": {"metadata": {"name": "r", "version": "1.0.0"}}});
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "type": "helm.sh/release.v1",
            "metadata": {"namespace": "aaa", "name": "sh.helm.release.v1.r.v1"},
            "data": {"release": STANDARD.encode(STANDARD.encode(release.to_string()))}});
        let app = |at: usize| {
            json!({"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
                "metadata": {"namespace": "aaa", "name": format!("h{at}")}, "spec": {"releaseName": "r"}})
        };
        let objects: Vec<_> = (0..25).map(app).chain([secret]).collect();
        let found = declarations(&objects);
        check_shared(&of(&found, Delivery::FluxHelmRelease));
    }

    #[test]
    fn packages_of_one_folder_share_its_list() {
        use serde_json::json;

        let url = "https://git.example/r.git";
        let entries: Vec<_> = (0..LISTED).map(|at| json!({"id": format!("aaa_c{at}__ConfigMap")})).collect();
        let package = |at: usize| {
            json!({"apiVersion": "porch.kpt.dev/v1alpha1", "kind": "PackageRevision",
                "metadata": {"namespace": "aaa", "name": format!("p{at}")},
                "spec": {"repository": "r", "packageName": format!("p{at}"), "revision": 1, "lifecycle": "Published"},
                "status": {"selfLock": {"git": {"directory": "x", "commit": "abc"}}}})
        };
        let others = [
            json!({"apiVersion": "config.porch.kpt.dev/v1alpha1", "kind": "Repository",
                "metadata": {"namespace": "aaa", "name": "r"},
                "spec": {"deployment": true, "git": {"repo": url, "branch": "main", "directory": "/"}}}),
            json!({"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
                "metadata": {"namespace": "aaa", "name": "r"},
                "spec": {"url": url, "ref": {"branch": "main"}}}),
            json!({"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
                "metadata": {"namespace": "aaa", "name": "k"},
                "spec": {"sourceRef": {"kind": "GitRepository", "name": "r"}, "path": "./x"},
                "status": {"inventory": {"entries": entries}}}),
        ];
        let objects: Vec<_> = (0..25).map(package).chain(others).collect();
        let found = declarations(&objects);
        check_shared(&of(&found, Delivery::Porch));
    }
}
