//! Whose is an object?

use crate::apps::{App, AppList};
use crate::identity::ObjectKey;
use crate::objects::Objects;
use crate::owners::controllers;

/// Whose an object is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Belonging<'l> {
    /// The objects that control it, the nearest first.
    pub owners: Vec<ObjectKey>,
    /// The apps that declare it, or else the nearest of its owners that any app declares.
    pub apps: Vec<&'l App>,
    /// The app that it declares itself.
    pub declares: Option<&'l App>,
}

impl AppList {
    /// Whose an object of `cluster` is, which is one of those that the list is of.
    pub fn belonging(&self, cluster: &dyn Objects, key: &ObjectKey) -> Belonging<'_> {
        let owners = controllers(cluster, key);
        let here = |app: &&App| app.in_reach && app.app.target == cluster.name();
        let claimants = |key: &ObjectKey| -> Vec<&App> {
            let apps = self.apps.iter().filter(here);
            apps.filter(|app| app.resources.iter().any(|resource| resource.key == *key)).collect()
        };
        let mut chain = std::iter::once(key).chain(&owners).map(claimants);
        let apps = chain.find(|apps| !apps.is_empty()).unwrap_or_default();
        let declares = |app: &&App| app.app.home == cluster.name() && app.declaring.as_ref() == Some(key);
        let declares = self.apps.iter().find(declares);
        Belonging { apps, declares, owners }
    }
}
