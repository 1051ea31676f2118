//! Results of checks, in the answers about clusters that the hub or an agent reads.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use jiff::Timestamp;
use taffrail_api::AppName;
use taffrail_api::checks::ToldChecks;
use taffrail_api::question::{AskedFleet, FleetProblem, ViewAnswer};
use taffrail_apps::{App, AppList, Axis, Objects, Problem};
use taffrail_hub::AppChecks;
use taffrail_object::ObjectKey;
use taffrail_status::ActiveRules;

/// The results of the checks of all apps, by the names of the clusters that declare and hold them.
#[derive(Debug, Default)]
pub(super) struct ResultsOfChecks(HashMap<(String, String, AppName), Arc<ToldChecks>>);

impl ResultsOfChecks {
    pub(super) fn new(all: Vec<AppChecks>) -> ResultsOfChecks {
        let keyed = |AppChecks { home, cluster, app, told }| ((home, cluster, app), told);
        ResultsOfChecks(all.into_iter().map(keyed).collect())
    }

    fn of(&self, app: &App) -> Option<&ToldChecks> {
        if app.checks.is_empty() {
            return None;
        }
        let name = AppName::from(&app.app);
        self.0.get(&(app.app.home.clone(), app.app.target.clone(), name)).map(|told| &**told)
    }

    /// Puts the results into the rows of an answer that an agent gave, in place of any that the agent told.
    pub(super) fn put_into(&self, answer: &mut ViewAnswer) {
        let ViewAnswer::App(answer) = answer else { return };
        for item in &mut answer.items {
            let row = &mut item.detail.app;
            let id = (row.home.clone(), row.cluster.clone(), row.app_name());
            let is_told = !row.checks.is_empty() || row.problems.iter().any(|it| it.axis == Axis::Check);
            let told = self.0.get(&id);
            if told.is_none() && !is_told {
                continue;
            }
            // Only a hub evaluates checks.
            row.set_checks(told.map_or(&ToldChecks::default(), |told| told));
            item.problems.clone_from(&row.problems);
            answer.is_well &= !row.problems.iter().any(Problem::is_pressing);
        }
    }
}

/// A fleet whose apps have the results of their checks.
pub(super) struct CheckedFleet<'f> {
    pub(super) fleet: &'f dyn AskedFleet,
    pub(super) results: &'f ResultsOfChecks,
}

impl AskedFleet for CheckedFleet<'_> {
    fn apps(&self, objects: &[ObjectKey]) -> AppList {
        let mut list = self.fleet.apps(objects);
        for app in &mut list.apps {
            if let Some(told) = self.results.of(app) {
                app.set_checks(told.results.clone(), told.problems.clone());
            }
        }
        list
    }

    fn orphans(&self, list: &AppList, namespaces: &BTreeSet<String>) -> AppList {
        self.fleet.orphans(list, namespaces)
    }

    fn clusters(&self) -> Vec<&dyn Objects> {
        self.fleet.clusters()
    }

    fn rules(&self) -> ActiveRules<'_> {
        self.fleet.rules()
    }

    fn now(&self) -> Timestamp {
        self.fleet.now()
    }

    fn problems(&self) -> Vec<FleetProblem> {
        self.fleet.problems()
    }
}
