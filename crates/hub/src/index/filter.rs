//! Filters of the apps of a fleet.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::str::FromStr;

use taffrail_api::filter::{StatusFilter, SyncFilter};
use taffrail_apps::{Axis, Delivery};
use taffrail_object::LabelSelector;

use super::pair::{Pair, Place, Summary, lasting_problems};
use super::published::{PublishedCluster, is_named};
use super::view::{FleetView, PairNow};

/// The conditions that an app must meet; the default matches everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AppFilter {
    /// The present statuses of which an app must have one; `None` for any.
    pub status: Option<StatusFilter>,
    /// The axes of which an app must have a problem on one, notices included; an empty set stands for any axis. `None`
    /// keeps all apps.
    pub problems: Option<BTreeSet<Axis>>,
    /// The sync states of which an app must have one; `None` for any.
    pub sync: Option<SyncFilter>,
    /// The deliveries of which an app must have one; empty for any.
    pub deliveries: Vec<Delivery>,
    /// True to keep only apps whose delivery is suspended.
    pub suspended: bool,
    /// The selector for labels of the declaring object; `None` for any.
    pub labels: Option<LabelSelector>,
    /// The identities, names or aliases of the target clusters; empty for all.
    pub clusters: Vec<String>,
    /// The namespaces of declaring objects; empty for all.
    pub namespaces: Vec<String>,
    /// The names of which an app must have one; empty for all.
    pub names: Vec<NameFilter>,
    /// A text that the key, namespace, name, cluster or problem of an app must contain, in any case of letters; empty for
    /// any.
    pub text: String,
}

/// A name of apps: `NAME`, `NAMESPACE/NAME` or `DELIVERY/NAMESPACE/NAME`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameFilter {
    delivery: Option<Delivery>,
    namespace: Option<String>,
    name: String,
}

/// The error for a text that cannot be the name of an app; holds the text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not the name of an app; write NAME, NAMESPACE/NAME or DELIVERY/NAMESPACE/NAME")]
pub struct InvalidName(pub String);

impl FromStr for NameFilter {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<NameFilter, InvalidName> {
        let invalid = || InvalidName(text.to_owned());
        let parts: Vec<&str> = text.split('/').collect();
        let (delivery, namespace, name) = match parts.as_slice() {
            [name] => (None, None, *name),
            [namespace, name] => (None, Some(*namespace), *name),
            [delivery, namespace, name] => {
                let delivery = Delivery::of_word(delivery).map_err(|_| invalid())?;
                (Some(delivery), Some(*namespace), *name)
            }
            _ => return Err(invalid()),
        };
        let is_empty = name.is_empty() || namespace.is_some_and(str::is_empty);
        let filter = NameFilter { delivery, namespace: namespace.map(str::to_owned), name: name.to_owned() };
        if is_empty { Err(invalid()) } else { Ok(filter) }
    }
}

impl NameFilter {
    fn admits(&self, delivery: Delivery, namespace: &str, name: &str) -> bool {
        self.name == name
            && self.namespace.as_ref().is_none_or(|wanted| wanted == namespace)
            && self.delivery.is_none_or(|wanted| wanted == delivery)
    }
}

/// A filter in one cluster.
pub(crate) struct InCluster<'f> {
    filter: &'f AppFilter,
    place: Place,
    /// True if the filter admits the cluster.
    is_admitted: bool,
    /// For each pair whether a name of it contains the text; `None` if that need not be known.
    named: Option<Cow<'f, [bool]>>,
    text: String,
}

impl AppFilter {
    /// Returns true if apps of a cluster may match.
    pub(crate) fn admits_cluster(&self, view: &FleetView, cluster: &PublishedCluster) -> bool {
        self.clusters.is_empty() || self.clusters.iter().any(|name| view.is_called(cluster, name))
    }

    fn names_nothing(&self) -> bool {
        self.deliveries.is_empty() && self.namespaces.is_empty() && self.names.is_empty()
    }

    /// Returns true if an app of this name may match.
    pub(crate) fn admits_name(&self, delivery: Delivery, namespace: &str, name: &str) -> bool {
        (self.deliveries.is_empty() || self.deliveries.contains(&delivery))
            && (self.namespaces.is_empty() || self.namespaces.iter().any(|wanted| wanted == namespace))
            && (self.names.is_empty() || self.names.iter().any(|it| it.admits(delivery, namespace, name)))
    }

    /// Prepares the filter for the pairs of one cluster; `None` if none of them can match.
    pub(crate) fn within<'f>(
        &'f self,
        view: &FleetView,
        place: Place,
        cluster: &PublishedCluster,
    ) -> Option<InCluster<'f>> {
        let is_admitted = self.admits_cluster(view, cluster);
        if !is_admitted && cluster.pairs.strays == 0 {
            return None;
        }
        let text = self.text.to_lowercase();
        let is_any = text.is_empty() || view.name(cluster).to_lowercase().contains(&text);
        let named = (!is_any).then(|| Cow::Owned(cluster.pairs.named(&text)));
        Some(InCluster { filter: self, place, is_admitted, named, text })
    }

    /// Returns the present state of a pair if it matches, as [`within`](AppFilter::within) finds it among others.
    pub(crate) fn admits(
        &self,
        view: &FleetView,
        place: Place,
        pair: &Pair,
        summary: &Summary,
    ) -> Option<PairNow> {
        let cluster = view.fleet().cluster(place)?;
        let is_admitted = self.admits_cluster(view, cluster);
        let text = self.text.to_lowercase();
        let is_any = text.is_empty() || view.name(cluster).to_lowercase().contains(&text);
        let named = (!is_any).then(|| Cow::Owned(vec![is_named(pair, &text)]));
        InCluster { filter: self, place, is_admitted, named, text }.admits(view, 0, pair, summary)
    }
}

impl InCluster<'_> {
    /// Returns the present state of the pair at position `at` if it matches.
    pub(crate) fn admits(
        &self,
        view: &FleetView,
        at: usize,
        pair: &Pair,
        summary: &Summary,
    ) -> Option<PairNow> {
        let AppFilter { status, problems, sync, suspended, labels, clusters, .. } = self.filter;
        let now = view.now(self.place, summary);
        let has_problem = |axes: &BTreeSet<Axis>| match axes.is_empty() {
            true => !now.axes.is_empty(),
            false => axes.iter().any(|axis| now.axes.has(*axis)),
        };
        let label = |selector: &LabelSelector| {
            let labels = &pair.declared.body.labels;
            selector.matches(|key| labels.get(key).map(|value| Cow::Borrowed(value.as_str())))
        };
        let is_found = || match &self.named {
            None => true,
            Some(named) if named.get(at).copied().unwrap_or_default() => true,
            Some(_) => {
                let mut problems = lasting_problems(pair).into_iter();
                problems.any(|problem| problem.message.to_lowercase().contains(&self.text))
            }
        };
        let is_in = match summary.is_stray {
            true => clusters.is_empty() || clusters.contains(&pair.declared.body.target.0),
            false => self.is_admitted,
        };
        let matches = is_in
            && (!suspended || summary.is_suspended)
            && status.as_ref().is_none_or(|it| it.admits_row(now.effective, now.is_pressing()))
            && sync.as_ref().is_none_or(|it| it.admits_state(summary.delivery, now.sync))
            && problems.as_ref().is_none_or(has_problem)
            && (self.filter.names_nothing()
                || self.filter.admits_name(summary.delivery, &pair.app.app.namespace, &pair.app.app.name))
            && labels.as_ref().is_none_or(label)
            && is_found();
        matches.then_some(now)
    }
}
