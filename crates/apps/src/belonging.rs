//! Whose is an object?

use crate::agreement::Mark;
use crate::apps::{App, AppList};
use crate::identity::{Delivery, ObjectKey};
use crate::objects::{Lookup, Objects};
use crate::owners::controllers;

/// Whose an object is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Belonging<'l> {
    /// The objects that control it, the nearest first.
    pub owners: Vec<ObjectKey>,
    /// The apps that declare it, or else the nearest of its owners that any app declares.
    pub apps: Vec<&'l App>,
    /// The apps that list it, or else the nearest of its owners that any app lists, and whose marks it does not carry.
    pub listed: Vec<&'l App>,
    /// The app that it declares itself.
    pub declares: Option<&'l App>,
    /// The apps that its marks name and that do not declare it, in words that tell whether they are shown.
    pub marked: Vec<String>,
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
        let is_unconfirmed = |app: &App, key: &ObjectKey| {
            app.resources.iter().any(|resource| resource.key == *key && resource.unconfirmed)
        };
        let mut chain = std::iter::once(key).chain(&owners).map(|key| (key, claimants(key)));
        let (claimed, all) = chain.find(|(_, apps)| !apps.is_empty()).unwrap_or((key, Vec::new()));
        let (listed, apps): (Vec<&App>, Vec<&App>) = all.iter().partition(|app| is_unconfirmed(app, claimed));
        let declares = |app: &&App| app.app.home == cluster.name() && app.declaring.as_ref() == Some(key);
        let declares = self.apps.iter().find(declares);
        let marked = self.marked(cluster, key, &all);
        Belonging { apps, listed, declares, owners, marked }
    }

    /// The apps that the marks of an object name beside those that it belongs to.
    fn marked(&self, cluster: &dyn Objects, key: &ObjectKey, apps: &[&App]) -> Vec<String> {
        let Lookup::Found(observed) = cluster.get(key) else { return Vec::new() };
        let is_it = |app: &App, mark: &Mark| {
            let (delivery, name) = mark.app();
            let own = format!("{}/{}", app.app.namespace, app.app.name);
            let is_named = match delivery {
                Some(Delivery::ArgoApplication) => name == own || name == app.app.name,
                Some(Delivery::FluxKustomization | Delivery::FluxHelmRelease) => name == own,
                // A HelmRelease and a sync are marked in other words than their names.
                Some(Delivery::Helm) => name == own || app.app.delivery == Delivery::FluxHelmRelease,
                _ => {
                    return matches!(
                        app.app.delivery,
                        Delivery::Kpt | Delivery::ConfigSync | Delivery::Taffrail
                    );
                }
            };
            let by = [delivery, Some(Delivery::FluxHelmRelease).filter(|_| delivery == Some(Delivery::Helm))];
            is_named && by.contains(&Some(app.app.delivery))
        };
        let marks = Mark::all(observed.key, &observed.object, &[]);
        let others = marks.iter().filter(|mark| mark.is_written_by_tool());
        let others = others.filter(|mark| !apps.iter().any(|app| is_it(app, mark)));
        let told = others.map(|mark| {
            let (delivery, name) = mark.app();
            let is_shown = self.apps.iter().any(|app| {
                app.app.target == cluster.name()
                    && Some(app.app.delivery) == delivery
                    && (name == format!("{}/{}", app.app.namespace, app.app.name) || name == app.app.name)
            });
            let why = if is_shown { "which does not list it" } else { "which is not shown" };
            format!("{mark}, {why}")
        });
        told.collect()
    }
}
