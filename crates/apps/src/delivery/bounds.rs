//! How many objects an app, and all apps of a namespace, may claim: whoever writes a list of them makes work for all who look.

use std::collections::{BTreeMap, HashSet};

use super::{Declaration, Declarations};
use crate::identity::ObjectKey;
use crate::objects::{Scope, ScopeError};

/// The most objects of one app that are looked at, and of one release of Helm. The fullest known have some hundreds.
pub(super) const MOST_OBJECTS: usize = 5_000;

/// The most objects that are looked at of all apps of one namespace.
const MOST_IN_NAMESPACE: usize = 100_000;

/// Collects keys, each once; where there are more than [`MOST_OBJECTS`], one more, by which that is seen.
pub(super) fn gather(keys: impl Iterator<Item = ObjectKey>) -> Vec<ObjectKey> {
    let mut seen = HashSet::new();
    keys.filter(|key| seen.insert(key.clone())).take(MOST_OBJECTS + 1).collect()
}

/// Cuts what the apps claim beyond the bounds. An app of which anything is cut is unknown and says why; in a namespace the
/// apps that claim most lose their objects first.
pub(super) fn bound_claims(found: &mut Declarations) {
    let Declarations { apps, errors, .. } = found;
    let mut namespaces: BTreeMap<(usize, String), Vec<usize>> = BTreeMap::new();
    for (place, app) in apps.iter_mut().enumerate() {
        if app.objects.len() > MOST_OBJECTS {
            app.objects.truncate(MOST_OBJECTS);
            cut(
                app,
                errors,
                &format!(
                    "names more than {MOST_OBJECTS} objects: only the first {MOST_OBJECTS} are looked at"
                ),
            );
        }
        namespaces.entry((app.home, app.namespace.clone())).or_default().push(place);
    }
    for ((_, namespace), mut places) in namespaces {
        let number = |place: &usize| apps.get(*place).map_or(0, |app| app.objects.len());
        if places.iter().map(number).sum::<usize>() <= MOST_IN_NAMESPACE {
            continue;
        }
        places.sort_by_key(number);
        let mut left = MOST_IN_NAMESPACE;
        for place in places {
            let Some(app) = apps.get_mut(place) else { continue };
            if app.objects.len() <= left {
                left -= app.objects.len();
                continue;
            }
            left = 0;
            app.objects = Vec::new();
            let why = format!(
                "names objects that are not looked at: the apps of namespace {namespace} name more than \
                 {MOST_IN_NAMESPACE} in all, and it is one of those that name most"
            );
            cut(app, errors, &why);
        }
    }
}

fn cut(app: &mut Declaration, errors: &mut Vec<(usize, ScopeError)>, why: &str) {
    let Some(key) = app.declaring.clone() else { return };
    let message = format!("{} {why}", app.declaring_name());
    let (scope, reason) = (Scope::Object(key.clone()), "OverLimit".to_owned());
    errors.push((app.home, ScopeError { scope, reason, message: message.clone() }));
    app.unreadable.get_or_insert((key, message));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::Delivery;

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
    fn the_apps_of_a_namespace_that_claim_most_lose_their_objects_first() {
        let mut apps: Vec<Declaration> = (0..20).map(|at| app("team-a", &format!("a{at}"), 5_000)).collect();
        apps.push(app("team-a", "small", 10));
        apps.push(app("team-b", "large", 5_000));
        let mut found = Declarations { apps, ..Declarations::default() };
        bound_claims(&mut found);
        let Declarations { mut apps, errors, .. } = found;
        assert_eq!(errors.len(), 1);
        let cut: Vec<&str> =
            apps.iter().filter(|app| app.unreadable.is_some()).map(|app| &*app.name).collect();
        assert_eq!(cut, ["a19"], "ties go by place");
        assert!(apps.iter().find(|app| app.name == "a19").is_some_and(|app| app.objects.is_empty()));
        let (_, why) = apps.swap_remove(19).unreadable.unwrap_or_else(|| panic!("it is cut"));
        assert!(why.contains("the apps of namespace team-a name more than 100000 in all"), "{why}");
    }
}
