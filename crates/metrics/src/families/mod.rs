//! Tells by the samples of each known tool what is known of an app.
//!
//! A [`Scope`] is a family of metrics, or one mapping of the configuration. It has selectors, whose samples its function
//! turns into [`Fact`]s: a status word, a sync state, a number, each of one app, with the time of its sample. `docs/metrics.md` has
//! the table of what each metric tells.

mod argo;
mod config_sync;
mod custom_resource;
mod flux;
mod mapped;
mod taffrail;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;

use taffrail_api::AppName;
use taffrail_api::report::MAX_NAME;
use taffrail_apps::{Delivery, Source, SyncState};
use taffrail_status::Status;
use taffrail_status::rollup::Counts;

use crate::config::{Family, ServerConfig};
use crate::sample::{KeptLabels, Sample, Series, Target};

pub(crate) use taffrail::{HubMemory, is_of_one_app};

/// A part of what a server is read for: all of it is whole, or may lack series.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Scope {
    /// A family whose meaning is known.
    Known(Family),
    /// A mapping of a metric, by its place in the configuration: several may be of one metric.
    Mapped(Arc<str>, usize),
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scope::Known(family) => write!(f, "metrics of {family}"),
            Scope::Mapped(metric, _) => write!(f, "metric {metric}"),
        }
    }
}

/// A selector of series.
#[derive(Debug, Clone)]
pub(crate) struct Selector {
    /// The name of the metric, or a regular expression for the names of several.
    pub(crate) name: Arc<str>,
    pub(crate) is_expression: bool,
    /// Further label matchers; may be empty.
    pub(crate) matchers: String,
}

impl Selector {
    fn of(name: &str) -> Selector {
        Selector { name: name.into(), is_expression: false, matchers: String::new() }
    }

    fn expression(name: &str, matchers: &str) -> Selector {
        Selector { name: name.into(), is_expression: true, matchers: matchers.to_owned() }
    }

    /// Returns the selector of the series, with `more` matchers, as a query.
    pub(crate) fn query(&self, more: &str) -> String {
        match self.is_expression {
            true => {
                let name = format!("__name__=~\"{}\"", self.name);
                format!("{{{}}}", joined([name.as_str(), &self.matchers, more]))
            }
            false => self.query_of(&self.name, more),
        }
    }

    /// Returns the selector of the series of one metric, with `more` matchers, as a query.
    pub(crate) fn query_of(&self, name: &str, more: &str) -> String {
        format!("{name}{{{}}}", joined([&self.matchers, more]))
    }
}

fn joined<'m>(matchers: impl IntoIterator<Item = &'m str>) -> String {
    let parts: Vec<&str> = matchers.into_iter().filter(|part| !part.trim().is_empty()).collect();
    parts.join(",")
}

/// The samples of one selector; those of a regular expression have the label with the name.
pub(crate) type Samples = Vec<Sample>;

/// The function that tells facts by the samples of each selector of a scope.
type TellFacts = fn(&[Option<Samples>], &mut Telling<'_>);

/// A scope with its selectors, and the function that tells facts by their samples; `None` stands for a selector that was not
/// answered.
pub(crate) struct ScopeReader {
    pub(crate) scope: Scope,
    pub(crate) selectors: Vec<Selector>,
    pub(crate) tell: TellFacts,
    /// The index of the mapping in the configuration.
    mapping: usize,
}

/// Returns the readers of all scopes of a server.
pub(crate) fn readers(config: &ServerConfig) -> Vec<ScopeReader> {
    let known = config.families.iter().map(|family| {
        let (selectors, tell): (_, TellFacts) = match family {
            Family::Taffrail => (taffrail::selectors(), taffrail::tell),
            Family::ArgoCd => (argo::selectors(), argo::tell),
            Family::Flux => (flux::selectors(), flux::tell),
            Family::ConfigSync => (config_sync::selectors(), config_sync::tell),
            Family::KubeStateMetrics => (custom_resource::selectors(), custom_resource::tell),
        };
        ScopeReader { scope: Scope::Known(*family), selectors, tell, mapping: 0 }
    });
    let mapped = config.mappings.iter().enumerate().map(|(place, mapping)| {
        let metric: Arc<str> = mapping.metric.value.as_str().into();
        let selector =
            Selector { name: Arc::clone(&metric), is_expression: false, matchers: mapping.matchers.clone() };
        ScopeReader {
            scope: Scope::Mapped(metric, place),
            selectors: vec![selector],
            tell: mapped::tell,
            mapping: place,
        }
    });
    known.chain(mapped).collect()
}

/// Returns the names of the labels that some scope or the configuration needs.
pub(crate) fn kept_labels(config: &ServerConfig) -> KeptLabels {
    const KNOWN: [&str; 30] = [
        "__name__",
        "job",
        "instance",
        "namespace",
        "name",
        "kind",
        "type",
        "status",
        "state",
        "app",
        "metric",
        "ready",
        "suspended",
        "revision",
        "phase",
        "dest_server",
        "sync_status",
        "health_status",
        "operation",
        "repo",
        "commit",
        "component",
        "resourcegroup",
        "configsync_sync_name",
        "configsync_sync_namespace",
        "customresource_kind",
        "customresource_group",
        "health",
        "url",
        "autosync_enabled",
    ];
    let mut names: Vec<&str> = KNOWN.to_vec();
    names.extend(["cluster", &config.cluster_label]);
    for mapping in &config.mappings {
        let labels = &mapping.labels;
        names.extend(
            [labels.cluster.as_deref(), labels.namespace.as_deref(), Some(&labels.name)]
                .into_iter()
                .flatten(),
        );
        names.extend(mapping.revision.as_deref());
        names.extend(mapping.health.as_ref().and_then(|word| word.label.as_deref()));
        names.extend(mapping.sync.as_ref().and_then(|word| word.label.as_deref()));
        names.extend(mapping.suspended.as_ref().and_then(|word| word.label.as_deref()));
    }
    let renamed = names.iter().map(|name| Arc::from(format!("exported_{name}")));
    let renamed: Vec<Arc<str>> = renamed.collect();
    names.into_iter().map(Arc::from).chain(renamed).collect()
}

/// The parts of a row that a sample tells; `None` for those that it does not tell.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Told {
    pub(crate) health: Option<ToldHealth>,
    pub(crate) sync: Option<SyncState>,
    pub(crate) applied: Option<String>,
    pub(crate) suspended: Option<bool>,
    pub(crate) counts: Option<Counts>,
    pub(crate) source: Option<Source>,
    pub(crate) syncs: Option<CountedSyncs>,
}

/// The health of an app as a sample tells it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ToldHealth {
    pub(crate) status: Status,
    /// True if the tool looked at the objects of the app; false if the sample is about the declaring object alone.
    pub(crate) is_of_objects: bool,
    /// The label or the value that tells the status, such as `health_status Degraded`.
    pub(crate) words: String,
}

/// The number of syncs that a tool counted since it started.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct CountedSyncs {
    pub(crate) succeeded: f64,
    pub(crate) failed: f64,
}

impl Told {
    /// Returns the rank of what is told; less is worse.
    fn rank(&self) -> (Status, u8) {
        let health = self.health.as_ref().map_or(Status::Current, |health| health.status);
        (health, self.sync.map_or(u8::MAX, sync_rank))
    }
}

/// Returns the rank of a sync state; less is worse.
pub(crate) fn sync_rank(state: SyncState) -> u8 {
    match state {
        SyncState::Failed => 0,
        SyncState::Unknown => 1,
        SyncState::OutOfSync => 2,
        SyncState::Syncing => 3,
        SyncState::Suspended => 4,
        SyncState::Synced => 5,
    }
}

/// A cluster label and an app, as series name them.
pub(crate) type AppPlace = (Box<str>, AppName);

/// A fact that the samples of one metric tell of one app.
#[derive(Debug, Clone)]
pub(crate) struct Fact {
    /// The time of the sample, in seconds by the server's clock.
    pub(crate) at: f64,
    pub(crate) target: Target,
    pub(crate) scope: Scope,
    /// The key of the app in all clusters, if it is not made of the delivery, the namespace and the name.
    pub(crate) key: Option<String>,
    /// The name of the cluster that holds the objects, if it is another one.
    pub(crate) destination: Option<Box<str>>,
    pub(crate) told: Told,
}

/// The metric and the job that tell a fact. Only the series of one job can be the same series twice: another job may be
/// somebody else's.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct FactName {
    pub(crate) metric: Box<str>,
    job: Box<str>,
}

/// The facts about one app.
pub(crate) type NamedFacts = BTreeMap<Arc<FactName>, Fact>;

/// The facts that one read of a server tells.
pub(crate) struct Telling<'t> {
    pub(crate) config: &'t ServerConfig,
    hashing: &'t RandomState,
    memory: &'t mut HubMemory,
    /// True if no selector of the scope may lack series.
    is_whole: bool,
    scope: Scope,
    mapping: usize,
    pub(crate) facts: HashMap<AppPlace, NamedFacts>,
    /// Clusters that samples name without an app, with the time of the newest of these.
    pub(crate) clusters: HashMap<Box<str>, f64>,
    /// The number of series that cannot be used, by the cluster, if it is known, and the reason.
    pub(crate) refused: BTreeMap<(Option<Box<str>>, &'static str), usize>,
    names: HashSet<Arc<FactName>>,
}

/// The maximum number of pairs of cluster and reason for which unusable series are counted apart.
const MAX_REFUSED: usize = 1_000;

/// Reasons why a series cannot be used.
const NO_CLUSTER: &str = "have no label with a cluster, or one that is not a name";
const NO_APP: &str = "do not name an app";
const NO_NUMBER: &str = "have a value that is not a number";

impl<'t> Telling<'t> {
    pub(crate) fn new(
        config: &'t ServerConfig,
        hashing: &'t RandomState,
        memory: &'t mut HubMemory,
    ) -> Telling<'t> {
        Telling {
            config,
            hashing,
            memory,
            is_whole: false,
            scope: Scope::Known(Family::Taffrail),
            mapping: 0,
            facts: HashMap::new(),
            clusters: HashMap::new(),
            refused: BTreeMap::new(),
            names: HashSet::new(),
        }
    }

    /// Tells the facts of one scope by the samples of its selectors; `is_whole` if none of these may lack series.
    pub(crate) fn tell(&mut self, reader: &ScopeReader, samples: &[Option<Samples>], is_whole: bool) {
        self.is_whole = is_whole && samples.iter().all(Option::is_some);
        (self.scope, self.mapping) = (reader.scope.clone(), reader.mapping);
        (reader.tell)(samples, self);
    }

    /// Counts a series about `cluster` as one that cannot be used; the cluster is not known if that is not a name.
    fn refuse(&mut self, cluster: &str, reason: &'static str) {
        let cluster = Some(cluster).filter(|name| is_name(name) && self.refused.len() < MAX_REFUSED);
        *self.refused.entry((cluster.map(Box::from), reason)).or_default() += 1;
    }

    /// Returns the cluster of a series: that of the configured label, else the one of the server.
    fn cluster(&mut self, series: &Series) -> Option<Box<str>> {
        let name = series.label(&self.config.cluster_label);
        let name = if name.is_empty() { self.config.cluster.as_deref().unwrap_or_default() } else { name };
        self.checked_cluster(name)
    }

    fn checked_cluster(&mut self, name: &str) -> Option<Box<str>> {
        if is_name(name) {
            return Some(name.into());
        }
        self.refuse("", NO_CLUSTER);
        None
    }

    /// Returns the app of `cluster` that these labels name; counts the series as refused if they do not name one.
    fn app(&mut self, cluster: &str, delivery: Delivery, namespace: &str, name: &str) -> Option<AppName> {
        if is_name(name) && (namespace.is_empty() || is_name(namespace)) {
            return Some(AppName { delivery, namespace: namespace.to_owned(), name: name.to_owned() });
        }
        self.refuse(cluster, NO_APP);
        None
    }

    /// Returns true if the value of a sample is a number; else counts the series as refused.
    fn is_number(&mut self, sample: &Sample) -> bool {
        if !sample.series.value.is_finite() {
            self.refuse(sample.series.label(&self.config.cluster_label), NO_NUMBER);
        }
        sample.series.value.is_finite()
    }

    /// Adds what `metric` tells of an app of `cluster` by a sample. Of several samples the newest counts, of equally new
    /// ones the worst.
    fn add(&mut self, sample: &Sample, metric: &str, place: AppPlace, told: Told) -> Option<&mut Fact> {
        let target = sample.series.target(&self.config.cluster_label);
        self.add_fact(metric, place, sample.at, target, told)
    }

    fn add_fact(
        &mut self,
        metric: &str,
        place: AppPlace,
        at: f64,
        target: Target,
        told: Told,
    ) -> Option<&mut Fact> {
        let name = FactName { metric: metric.into(), job: target.job.clone() };
        let name = match self.names.get(&name) {
            Some(name) => Arc::clone(name),
            None => {
                let name = Arc::new(name);
                self.names.insert(Arc::clone(&name));
                name
            }
        };
        let new = Fact { at, target, scope: self.scope.clone(), key: None, destination: None, told };
        let facts = self.facts.entry(place).or_default();
        if let Some(held) = facts.get(&name) {
            let is_better = match new.at.total_cmp(&held.at) {
                std::cmp::Ordering::Equal => new.told.rank() < held.told.rank(),
                order => order.is_gt(),
            };
            if !is_better {
                return None;
            }
        }
        facts.insert(Arc::clone(&name), new);
        facts.get_mut(&name)
    }

    /// Groups samples that differ in `label` alone, each of which says by its value 0 or 1 whether the label's value is so. Returns
    /// for each group a sample of it with the time of the oldest, and the one value that is so.
    fn states<'s>(&mut self, samples: &'s [Sample], label: &str) -> Vec<(Sample, &'s str)> {
        let mut groups: HashMap<u64, Vec<&'s Sample>> = HashMap::new();
        for sample in samples {
            if !self.is_number(sample) {
                continue;
            }
            let own = self.hashing.hash_one((label, sample.series.label(label)));
            groups.entry(sample.series.sum.wrapping_sub(own)).or_default().push(sample);
        }
        let state = |group: Vec<&'s Sample>| {
            let mut so = group.iter().filter(|sample| sample.series.value == 1.0);
            let (first, others) = (so.next()?, so.next());
            let at = group.iter().map(|sample| sample.at).fold(first.at, f64::min);
            others.is_none().then(|| (Sample { at, series: first.series.clone() }, first.series.label(label)))
        };
        groups.into_values().filter_map(state).collect()
    }
}

/// Returns true if a text can be the name of a cluster or of an object: neither empty nor too long, and without control
/// characters.
fn is_name(text: &str) -> bool {
    !text.is_empty() && text.len() <= MAX_NAME && !text.chars().any(char::is_control)
}

/// Returns the delivery of the apps that objects of this kind declare; `None` for other kinds.
fn delivery_of(kind: &str) -> Option<Delivery> {
    Some(match kind {
        "Kustomization" => Delivery::FluxKustomization,
        "HelmRelease" => Delivery::FluxHelmRelease,
        "Application" => Delivery::ArgoApplication,
        "RootSync" | "RepoSync" => Delivery::ConfigSync,
        "ResourceGroup" => Delivery::Kpt,
        _ => return None,
    })
}
