//! The checks that apps of the fleet declare: those to evaluate, and their results.

use std::sync::Arc;

use taffrail_api::AppName;
use taffrail_api::checks::{CheckedApp, EvaluatedCheck, ToldChecks};
use taffrail_api::report::AppId;

use super::pair::{Pair, Place};
use super::{FleetIndex, lock};

/// The results of the checks of an app in a cluster.
#[derive(Debug, Clone)]
pub struct AppChecks {
    /// The name of the cluster that declares the app.
    pub home: String,
    /// The name of the cluster that holds its objects.
    pub cluster: String,
    /// The name of the app.
    pub app: AppName,
    /// The results.
    pub told: Arc<ToldChecks>,
}

impl FleetIndex {
    /// Sets that nothing evaluates checks in this hub. That they have no data is no problem then.
    pub fn switch_checks_off(&self) {
        let mut owner = lock(&self.owner);
        owner.fleet.checks.switch_off();
        let apps: Vec<AppId> = owner.checked.keys().cloned().collect();
        owner.apps.extend(apps);
        drop(owner);
        self.changed.notify_one();
    }

    /// Returns the apps that declare checks, without those whose target is another cluster that observes none of their
    /// objects: who declares an app could else ask about any cluster.
    pub fn checked_apps(&self) -> Vec<CheckedApp> {
        let owner = lock(&self.owner);
        if owner.checked.is_empty() {
            return Vec::new();
        }
        let names = owner.fleet.own_names();
        let none: Arc<[String]> = Arc::default();
        let app = |pair: &Arc<Pair>| {
            let declared = Arc::clone(&pair.declared.body);
            let target = declared.target.clone();
            let names = Arc::clone(names.get(&target).unwrap_or(&none));
            CheckedApp { app: Arc::clone(&pair.app), target, names, declared }
        };
        let is_there =
            |pair: &&Arc<Pair>| pair.declared.body.target == pair.app.home || pair.observed.is_some();
        owner.checked.values().filter(is_there).map(app).collect()
    }

    /// Returns the results of the checks of all apps that declare some, each with the names of the clusters that declare the app and
    /// hold its objects.
    pub fn told_checks(&self) -> Vec<AppChecks> {
        let pairs: Vec<Arc<Pair>> = lock(&self.owner).checked.values().cloned().collect();
        let view = self.last_view();
        let name = |place: Place| Some(view.name(view.fleet().cluster(place)?).to_owned());
        let told = |pair: Arc<Pair>| {
            Some(AppChecks {
                home: name(pair.home.cluster)?,
                cluster: name(pair.target?)?,
                app: pair.app.app.clone(),
                told: Arc::clone(pair.checks.as_ref()?),
            })
        };
        pairs.into_iter().filter_map(told).collect()
    }

    /// Takes results of checks, evaluated now. They become visible with the next publication.
    pub fn take_checks(&self, evaluated: impl IntoIterator<Item = EvaluatedCheck>) {
        let moment = self.clock.time();
        let mut owner = lock(&self.owner);
        for evaluated in evaluated {
            let app = Arc::clone(&evaluated.app);
            if owner.fleet.checks.take(evaluated, moment) {
                owner.apps.insert(AppId::clone(&app));
            }
        }
        drop(owner);
        self.changed.notify_one();
    }
}
