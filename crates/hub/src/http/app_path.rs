//! The name of an app in the path of a request.

use taffrail_apps::Delivery;

use super::problem::Refusal;
use super::request::Request;
use crate::index::{AppFilter, ListedPair, Pair};

/// The app that a request names in its path: the cluster that holds its objects, delivery, namespace and name.
pub(super) struct AppPath<'r> {
    pub(super) cluster: &'r str,
    pub(super) delivery: Delivery,
    pub(super) namespace: &'r str,
    pub(super) name: &'r str,
}

impl<'r> AppPath<'r> {
    pub(super) fn of(request: &'r Request<'_>) -> Result<AppPath<'r>, Refusal> {
        let [cluster, delivery, namespace, name] = request.path.as_slice() else {
            return Err(Refusal::internal());
        };
        let delivery = Delivery::of_word(delivery).map_err(|error| Refusal::not_found(error.to_string()))?;
        // A path cannot have an empty part.
        let namespace = if namespace == "-" { "" } else { namespace };
        Ok(AppPath { cluster, delivery, namespace, name })
    }

    /// Returns the filter that keeps all apps in the cluster of this path.
    pub(super) fn filter(&self) -> AppFilter {
        AppFilter { clusters: vec![self.cluster.to_owned()], ..AppFilter::default() }
    }

    /// Calls `take` with each pair in the cluster that has this delivery, namespace and name, and the home of the query
    /// if that names one.
    pub(super) fn each<'v>(&self, request: &'v Request<'_>, mut take: impl FnMut(&'v Pair)) {
        let Request { view, query, .. } = request;
        view.each(&self.filter(), |_, ListedPair { pair, .. }, _| {
            let app = &pair.app.app;
            if (app.delivery, &*app.namespace, &*app.name) != (self.delivery, self.namespace, self.name) {
                return;
            }
            let home = view.fleet().cluster(pair.home.cluster);
            let is_wanted = |wanted: &String| home.is_some_and(|home| view.is_called(home, wanted));
            if query.home.as_ref().is_none_or(is_wanted) {
                take(pair);
            }
        });
    }

    /// Makes the 404 that says whether the cluster or the app is unknown, with a hint if the cluster is not wholly read
    /// and live.
    pub(super) fn not_found(&self, request: &Request<'_>) -> Refusal {
        let (view, cluster) = (&request.view, self.cluster);
        if view.called(cluster).next().is_none() {
            return Refusal::not_found(format!("the hub knows no cluster '{cluster}'"));
        }
        let name = format!("{}/{}/{}", self.delivery.as_str(), self.namespace, self.name);
        let refusal = Refusal::not_found(format!("cluster '{cluster}' has no app {name}"));
        match view.coverage(&self.filter()).missing.into_iter().next() {
            Some(missing) => {
                refusal.hint(format!("the app may appear later: cluster '{cluster}': {}", missing.message))
            }
            None => refusal,
        }
    }

    /// Makes the refusal (409) for a path that matches one app of each of `homes`, the clusters that declare them.
    pub(super) fn ambiguous(homes: &[String]) -> Refusal {
        let refusal = Refusal::ambiguous(format!(
            "the path names {} apps, which different clusters declare",
            homes.len()
        ));
        refusal.hint(format!(
            "choose the cluster that declares it with the parameter 'home': {}",
            homes.join(", ")
        ))
    }
}
