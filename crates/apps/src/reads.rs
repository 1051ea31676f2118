//! The plan of reads of a live cluster: what to read so that its apps are known, the same for every reader.
//!
//! The reader calls [`plan_reads`] repeatedly, and gives each answer to [`Snapshot::answer`], until the plan
//! is empty. Discovery is the reader's own task: it runs beside the first round, and its result is given to
//! [`Snapshot::set_kinds`] before the second.
//!
//! 1. The kinds that declare apps; this needs no discovery.
//! 2. The objects that declarations refer to: releases in Helm's storage, sources in other namespaces; and
//!    kinds that declare apps in another version than the guessed one, or that only discovery shows. If the
//!    apps of one namespace refer to very many objects, these come last of all, so that they do not use up
//!    the time of others.
//! 3. The declared objects, one list for each kind.
//! 4. The rest: bodies of objects whose kind was read by metadata; and the evidence about objects that are
//!    not well, in their namespaces. Where all is well there is nothing to read. Where an `argocd-cm` has
//!    scripts, also the objects that decide if its Argo CD is known.
//! 5. Sometimes the objects that this evidence names: a node that may be lost, a claim that is not bound. If
//!    changes are asked for, also the ConfigMaps and Secrets that a Pod uses, of which only metadata is read,
//!    and an exhausted quota.
//! 6. If asked for, the dependents of the declared objects of some apps, and the events about them; the
//!    controllers of an object; and the objects that show if nodes and controllers are alive.
//!
//! A reader that follows a cluster calls [`plan_watches`] instead. In both plans each stage waits for those
//! before it for a limited number of rounds only. Otherwise an author who keeps creating objects for one stage
//! could keep all later stages from being read.
//!
//! If one namespace is asked for, lists are limited to namespaces, and the sources of the apps there are read
//! by name. Where a declaration elsewhere may claim objects of that namespace that seem to be unowned, all
//! declarations of that tool are listed beside stage 3 (for Helm releases and Porch) or 4 (for label groups).
//!
//! Otherwise no kind is listed twice in a namespace, unless apps of another cluster, or evidence that leads into
//! other namespaces, turn out to need more of it. Lists of a kind by selectors of which no two choose the same
//! object count as one list. Values of Secrets are read only from Helm's storage, and from kubeconfigs and Argo
//! CD's cluster Secrets if apps are to be followed into other clusters.

mod cluster_status;
pub(crate) mod declaring;
mod dependents;
mod elsewhere;
mod evidence;
mod liveness;
mod named;
pub(crate) mod read;
mod stages;
mod turns;

use std::collections::{BTreeMap, BTreeSet};

use taffrail_status::{ActiveRules, ClusterState as _, Presence};

use declaring::{DECLARING, DECLARING_SELDOM};
pub use elsewhere::{Elsewhere, Excess, LeftOut, ReadMode, elsewhere, still_wanted, wanted_elsewhere};
pub use read::{Read, Target};
pub use stages::{NamedBy, ReadPlan, Rounds, plan_reads, plan_watches};
pub use turns::Turns;

use taffrail_object::{GroupKind, ObjectKey, Projection};

use crate::declaration::Declaration;
use crate::delivery::argo::installs;
use crate::delivery::{AppLabels, Declarations, flux, helm_storage, labels};
use crate::find::AppQuery;
use crate::identity::Delivery;
use crate::kinds::{self, KindCatalog, ServedKind};
use crate::objects::{Objects, suffices};
use crate::secret_clusters::{self, CLUSTER_API_GROUP, ClusterSecretTool};
use crate::snapshot::{Listed, Snapshot};
use crate::wait::Selection;

/// The request for a plan of reads: the parts of a cluster that a command needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadQuery {
    /// The namespace in which the apps are declared; `None` for all.
    pub namespace: Option<String>,
    /// True if undeclared objects are grouped by their labels. Unless [`ReadQuery::declarations`] is false, this lists,
    /// of every namespaced kind that tools may declare, the objects that carry one of [`ReadQuery::app_labels`].
    pub label_groups: bool,
    /// The labels by which undeclared objects are grouped into apps.
    pub app_labels: AppLabels,
    /// True if the objects of apps are looked up in other clusters too. To learn which clusters these are, kubeconfigs
    /// in Secrets and Argo CD's cluster Secrets are read.
    pub follow: bool,
    /// True if the kinds that declare apps are read, and the objects of these apps; otherwise only those that
    /// [`ReadQuery::objects`], [`ReadQuery::selections`] and [`ReadQuery::everything_in`] name.
    pub declarations: bool,
    /// True if only the kinds that declare apps are watched, Helm's storage and label groups left out, and Flux's
    /// sources: no objects of apps, no evidence, and nothing else that the query names. For [`plan_watches`] alone.
    pub declaring_only: bool,
    /// Objects to read, whether or not an app declares them.
    pub objects: Vec<ObjectKey>,
    /// The object to read in every namespace that has one of its kind and name; `None` for none.
    pub named: Option<NamedObject>,
    /// The apps whose objects are read together with their dependents.
    pub dependents: Dependents,
    /// Further namespaces in which dependents are read, because apps of other clusters deliver into them.
    pub dependents_in: BTreeSet<String>,
    /// True if all events are read in the namespaces in which dependents are read. [`ReadQuery::evidence`] reads the
    /// events that it needs in any case.
    pub events: bool,
    /// True if the events about those of [`ReadQuery::objects`] that exist are read, of at most 20 objects.
    pub events_about: bool,
    /// True if the Leases, workloads of delivery tools and CustomResourceDefinitions are read that show if nodes and
    /// controllers are alive.
    pub liveness: bool,
    /// True if the controllers of [`ReadQuery::objects`] are read too.
    pub owners: bool,
    /// True if the evidence about objects that are not well is read.
    pub evidence: bool,
    /// True if up to 20 objects of a kind and namespace are read one by one, by name, rather than by a list: `wait` on
    /// one object should not watch the others.
    pub by_name: bool,
    /// True if declared objects, [`ReadQuery::objects`] and [`ReadQuery::selections`] are read whole even if their
    /// status needs no body. Secrets are always read as metadata.
    pub whole: bool,
    /// Selections of objects to read, by kind, namespace and labels.
    pub selections: Vec<Selection>,
    /// The namespaces in which the objects of every kind that tools may declare are read, whether or not an app
    /// declares them.
    pub everything_in: BTreeSet<String>,
    /// The apps whose objects are read, with those of the apps that deliver in their place; empty for all.
    pub only: Vec<AppQuery>,
    /// The apps for which, while they are not well, Taffrail also reads the objects that show what changed before the
    /// failure. Unless it is [`Changes::None`], these are read for [`ReadQuery::objects`] too.
    pub changes: Changes,
    /// The tools of which everything is read that tells which Secrets give them access to other clusters; see
    /// [`cluster_secrets`](crate::cluster_secrets).
    pub cluster_secrets: Vec<ClusterSecretTool>,
    /// True if what tells of the cluster as a whole is read: its nodes, and its objects that stand for other clusters.
    /// Without effect if the query has a namespace.
    pub cluster_status: bool,
}

/// An object named as users do, in whichever namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedObject {
    /// The word for its kind, in any form that kubectl takes.
    pub kind: String,
    /// The name of the object.
    pub name: String,
}

impl From<(&str, &str)> for NamedObject {
    fn from((kind, name): (&str, &str)) -> NamedObject {
        NamedObject { kind: kind.to_owned(), name: name.to_owned() }
    }
}

/// A selection of apps for which the changes before a failure are read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Changes {
    /// No apps.
    #[default]
    None,
    /// The apps that match any of these queries.
    Of(Vec<AppQuery>),
    /// All apps.
    All,
}

/// A selection of apps whose dependents are read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Dependents {
    /// No apps.
    #[default]
    None,
    /// The apps that match this query, and the apps that these deliver.
    Of(AppQuery),
    /// All apps.
    All,
}

impl Default for ReadQuery {
    fn default() -> ReadQuery {
        ReadQuery {
            namespace: None,
            label_groups: true,
            app_labels: AppLabels::default(),
            follow: false,
            declarations: true,
            declaring_only: false,
            objects: Vec::new(),
            named: None,
            dependents: Dependents::None,
            dependents_in: BTreeSet::new(),
            events: false,
            events_about: false,
            liveness: false,
            owners: false,
            evidence: true,
            by_name: false,
            whole: false,
            selections: Vec::new(),
            everything_in: BTreeSet::new(),
            only: Vec::new(),
            changes: Changes::None,
            cluster_secrets: Vec::new(),
            cluster_status: false,
        }
    }
}

const CONFIG_MAP: &str = "ConfigMap";

/// The maximum number of pairs of a kind and a namespace that a query with a namespace lists one by one for its apps;
/// the kinds of further pairs are listed in all namespaces.
const MAX_NAMESPACED_LISTS: usize = 1000;

/// The maximum number of objects of a kind that are read one by one where a list of the kind would do; for more, the
/// kind is listed if it can be. If that list was already made in vain, more are not read at all.
const MAX_SINGLE_GETS: usize = 20;

/// The maximum number of controllers in one namespace that are read one by one if all namespaces together name more
/// than [`MAX_SINGLE_GETS`] of a kind; for more, the kind is listed in that namespace.
const MAX_SINGLE_GETS_PER_NAMESPACE: usize = 5;

/// A kind in a namespace: group, kind, namespace.
type Place<'k> = (&'k str, &'k str, &'k str);

fn place_of(key: &ObjectKey) -> Place<'_> {
    (&key.group, &key.kind, &key.namespace)
}

/// The state from which the next reads of a cluster are planned.
struct Plan<'p> {
    snapshot: &'p Snapshot,
    asked: &'p ReadQuery,
    namespace: Option<&'p str>,
}

impl<'p> Plan<'p> {
    /// Plans the lists of the kinds that declare apps and of their sources, of Secrets and of Helm's ConfigMaps, and
    /// the read of the Namespace `kube-system`, whose UID identifies the cluster. Without [`ReadQuery::declarations`]
    /// only that read.
    ///
    /// With [`ReadQuery::declaring_only`] the kinds are those that discovery shows, without Secrets and ConfigMaps.
    ///
    /// Secrets are listed without a selector, so that the list of their metadata serves Helm's storage, inventories and
    /// label groups alike; of ConfigMaps only those of Helm's storage, which are nearly always none.
    fn declaring(&self) -> Vec<Read> {
        let mut reads = Vec::new();
        let secrets = ("", "v1", "Secret", "secrets");
        let only = self.asked.declaring_only;
        // Each kind that is not served would be tried again and again.
        let is_to_read = self.asked.declarations && (!only || self.snapshot.kinds().is_some());
        let secrets = Some(secrets).filter(|_| !only);
        let declaring = DECLARING.into_iter().chain(secrets).filter(|_| is_to_read);
        for (group, version, kind, plural) in declaring {
            let id = GroupKind::new(group, kind);
            let catalog = self.snapshot.kinds();
            let missing = catalog.is_some_and(|catalog| !catalog.may_serve(&id));
            let projection = body_of(group, kind);
            if missing || self.snapshot.listed(&id, self.namespace, projection) != Listed::No {
                continue;
            }
            let served = catalog.and_then(|catalog| catalog.get(&id));
            reads.push(Read {
                group: group.to_owned(),
                version: served.map_or(version, |served| &served.version).to_owned(),
                kind: kind.to_owned(),
                plural: plural.to_owned(),
                namespace: self.asked.namespace.clone(),
                target: Target::List { labels: None, fields: None },
                projection,
            });
        }
        let maps = Target::List { labels: Some(helm_storage::SELECTOR.to_owned()), fields: None };
        let id = GroupKind::new("", CONFIG_MAP);
        let is_known = self.snapshot.was_selected(&id, self.namespace, &maps, Projection::Metadata);
        if self.asked.declarations && !only && !is_known {
            reads.push(Read {
                group: String::new(),
                version: "v1".to_owned(),
                kind: CONFIG_MAP.to_owned(),
                plural: "configmaps".to_owned(),
                namespace: self.asked.namespace.clone(),
                target: maps,
                projection: Projection::Metadata,
            });
        }
        let seldom = DECLARING_SELDOM.into_iter().filter(|_| self.asked.declarations);
        for served in
            seldom.filter_map(|(group, kind)| self.snapshot.kinds()?.get(&GroupKind::new(group, kind)))
        {
            let id = GroupKind::new(&*served.group, &*served.kind);
            let listed = self.snapshot.listed(&id, self.namespace, Projection::Full);
            if served.is_listable() && listed == Listed::No {
                reads.push(list(served, self.asked.namespace.clone(), None, Projection::Full));
            }
        }
        let identity = ObjectKey::new("", "Namespace", "", "kube-system");
        if self.snapshot.id().is_none() && !self.snapshot.was_read(&identity, Projection::Metadata) {
            reads.push(Read {
                group: String::new(),
                version: "v1".to_owned(),
                kind: identity.kind,
                plural: "namespaces".to_owned(),
                namespace: None,
                target: Target::Object(identity.name),
                projection: Projection::Metadata,
            });
        }
        reads
    }

    /// Returns if a kind was listed in full, only by selectors, or not at all, counting only lists with at least the
    /// projection `wanted`.
    ///
    /// The list of Helm's ConfigMaps does not count: it says nothing about the other ConfigMaps.
    fn listed(&self, kind: &GroupKind, namespace: Option<&str>, wanted: Projection) -> Listed {
        match self.snapshot.listed(kind, namespace, wanted) {
            Listed::Selected if kind.group.is_empty() && kind.kind == CONFIG_MAP => {
                let maps = Target::List { labels: Some(helm_storage::SELECTOR.to_owned()), fields: None };
                match self.snapshot.has_selection_but(kind, &maps) {
                    true => Listed::Selected,
                    false => Listed::No,
                }
            }
            listed => listed,
        }
    }

    /// Returns the apps whose objects the query needs: if [`ReadQuery::only`] is not empty, the apps that match it and
    /// those that deliver in their place; else all, if the query has no namespace.
    ///
    /// With a namespace in the query, these are its apps, those that deliver in their place, and, if dependents are
    /// wanted, those that they declare. Other apps were only read to know more about these.
    fn apps<'f>(&self, found: &'f Declarations) -> Vec<&'f Declaration> {
        let means = |app: &&Declaration, query: &AppQuery| {
            query.means(&app.key, app.delivery, &app.namespace, &app.name)
        };
        if !self.asked.only.is_empty() {
            let is_meant = |app: &&Declaration| self.asked.only.iter().any(|query| means(app, query));
            let meant = found.all().filter(is_meant);
            // The objects of an app that only states its wish are among those of the app that delivers it.
            let with_carrier = |app: &'f Declaration| {
                [Some(app), app.delivered_by.and_then(|place| found.get(place))].into_iter().flatten()
            };
            return meant.flat_map(with_carrier).collect();
        }
        let Some(namespace) = self.namespace else { return found.all().collect() };
        let places = || found.all().enumerate();
        let declaring: BTreeMap<&ObjectKey, usize> =
            places().filter_map(|(place, app)| Some((app.declaring.as_ref()?, place))).collect();
        let mut waiting: Vec<usize> =
            places().filter(|(_, app)| app.namespace == namespace).map(|(place, _)| place).collect();
        let mut wanted = BTreeSet::new();
        while let Some(place) = waiting.pop() {
            let Some(app) = found.get(place).filter(|_| wanted.insert(place)) else { continue };
            waiting.extend(app.delivered_by);
            if self.asked.dependents != Dependents::None {
                waiting.extend(app.objects.iter().filter_map(|key| declaring.get(key)));
            }
        }
        wanted.into_iter().filter_map(|place| found.get(place)).collect()
    }

    /// Returns the objects that the apps of [`Plan::apps`] declare, if their cluster was queried.
    fn objects_of<'f>(&self, found: &'f Declarations) -> impl Iterator<Item = &'f ObjectKey> {
        let here = self.apps(found).into_iter().filter(|app| app.cluster().is_some());
        here.flat_map(|app| &app.objects)
    }

    /// Returns the objects, not yet read whole, on which the apps of the query's namespace depend: the sources of Flux
    /// apps, and, if dependents are wanted, the Flux objects that deliver the declaring objects. Empty if the query has
    /// no namespace.
    fn origins(&self, found: &Declarations) -> Vec<ObjectKey> {
        let Some(namespace) = self.namespace else { return Vec::new() };
        let wants_parents = self.asked.dependents != Dependents::None;
        let inside = found.all().filter(|app| app.namespace == namespace);
        let declaring = inside.filter_map(|app| match self.snapshot.get(app.declaring.as_ref()?.as_ref()) {
            Presence::Present(observed) => Some((app.delivery, observed)),
            Presence::Absent | Presence::Unobserved(_) => None,
        });
        let origins = declaring.flat_map(|(delivery, observed)| {
            let is_flux = matches!(delivery, Delivery::FluxKustomization | Delivery::FluxHelmRelease);
            let sources = if is_flux { flux::sources(self.snapshot, &observed) } else { Vec::new() };
            sources
                .into_iter()
                .filter(flux::is_source)
                .chain(flux::owner(&observed.object).filter(|_| wants_parents))
        });
        origins.filter(|key| self.lacks(key, Projection::Full)).collect()
    }

    /// Plans the lists in all namespaces that are needed even for a query with a namespace, because that namespace has
    /// apps of one of `deliveries` that no other app delivers. Empty if the query has no namespace.
    ///
    /// A release may belong to a HelmRelease; Argo CD may have marked the objects of a label group by this label alone;
    /// and packages of Porch are delivered from any namespace.
    fn widened(&self, catalog: &KindCatalog, found: &Declarations, deliveries: &[Delivery]) -> Vec<Read> {
        let Some(namespace) = self.namespace else { return Vec::new() };
        let has = |delivery: Delivery| {
            let is_such = |app: &Declaration| {
                app.namespace == namespace && app.delivery == delivery && app.delivered_by.is_none()
            };
            deliveries.contains(&delivery) && found.all().any(is_such)
        };
        let kinds = DECLARING.into_iter().filter(|(_, _, kind, _)| match *kind {
            "Application" => has(Delivery::Label),
            "HelmRelease" => has(Delivery::Helm),
            "RootSync" | "RepoSync" | "Kustomization" | "GitRepository" => has(Delivery::Porch),
            _ => false,
        });
        let new = kinds.filter_map(|(group, _, kind, _)| {
            let id = GroupKind::new(group, kind);
            let listed = self.snapshot.listed(&id, None, body_of(group, kind));
            catalog.get(&id).filter(|_| listed == Listed::No)
        });
        new.map(|served| list(served, None, None, body_of(&served.group, &served.kind))).collect()
    }

    /// Plans the reads of the declared objects, of the objects of label groups, of the objects, selections and
    /// namespaces in the query, of the Clusters of Cluster API if their Secrets are wanted, of the
    /// CustomResourceDefinitions that HelmReleases apply, and of what tells of the cluster as a whole.
    fn declared(&self, catalog: &KindCatalog, found: &Declarations, rules: &ActiveRules<'_>) -> Vec<Read> {
        let whole = self.cluster_status(catalog, rules);
        let is_whole =
            |group: &str, kind: &str| whole.iter().any(|read| read.group == group && read.kind == kind);
        let mut wanted: BTreeMap<GroupKind, Vec<&ObjectKey>> = BTreeMap::new();
        let declared = self.objects_of(found);
        for key in declared.chain(&self.asked.objects) {
            if matches!(self.snapshot.get(key.as_ref()), Presence::Unobserved(_))
                && !is_whole(&key.group, &key.kind)
            {
                wanted.entry(key.group_kind()).or_default().push(key);
            }
        }
        let mut reads = self.selections(catalog);
        reads.extend(self.named(catalog));
        reads.extend(self.everything(catalog));
        reads.extend(self.cluster_api(catalog).filter(|read| !is_whole(&read.group, &read.kind)));
        let beyond = self.beyond(found);
        for (kind, keys) in &wanted {
            if let Some(served) = catalog.get(kind) {
                self.wanted(catalog, served, keys, &beyond, &mut reads);
            }
        }
        let definition = GroupKind::new("apiextensions.k8s.io", "CustomResourceDefinition");
        if !found.definitions.is_empty()
            && !wanted.contains_key(&definition)
            && self.snapshot.listed(&definition, None, Projection::Full) == Listed::No
            && let Some(served) = catalog.get(&definition)
        {
            reads.push(list(served, None, Some(labels::HELM_RELEASE.to_owned()), Projection::Full));
        }
        if self.asked.label_groups && self.asked.declarations {
            let labelled = catalog.iter().filter(|served| served.namespaced && served.is_listable());
            for served in labelled.filter(|served| !kinds::is_noise(&served.group, &served.kind)) {
                let kind = GroupKind::new(&*served.group, &*served.kind);
                let projection = body_of(&served.group, &served.kind);
                let is_known = self.listed(&kind, self.namespace, projection) != Listed::No;
                if is_known || wanted.contains_key(&kind) || is_whole(&served.group, &served.kind) {
                    continue;
                }
                for selector in self.asked.app_labels.selectors() {
                    // Few Pods are declared; the others are evidence, and read only where that is needed.
                    let is_made = labels::is_mostly_made(&served.group, &served.kind);
                    let selector = if is_made { labels::not_made(&selector) } else { selector };
                    reads.push(list(served, self.asked.namespace.clone(), Some(selector), projection));
                }
            }
        }
        reads.extend(whole);
        reads
    }

    /// Plans the lists for the selections of the query that have not been read yet.
    fn selections(&self, catalog: &KindCatalog) -> Vec<Read> {
        let wanted = self.asked.selections.iter().filter_map(|selection| {
            let Selection { kind, namespace, labels } = selection;
            let served = catalog.get(kind).filter(|served| served.is_listable())?;
            let namespace = namespace.clone().filter(|_| served.namespaced);
            let target = Target::List { labels: labels.clone(), fields: None };
            let projection = self.body(served);
            let is_read = self.snapshot.was_selected(kind, namespace.as_deref(), &target, projection)
                || self.snapshot.listed(kind, namespace.as_deref(), projection) == Listed::Done;
            (!is_read).then(|| list(served, namespace, labels.clone(), projection))
        });
        wanted.collect()
    }

    /// Plans the lists, in all namespaces, of the object that the query names.
    fn named(&self, catalog: &KindCatalog) -> Vec<Read> {
        let Some(NamedObject { kind, name }) = &self.asked.named else { return Vec::new() };
        let target = Target::List { labels: None, fields: Some(format!("metadata.name={name}")) };
        let read = |served: &ServedKind| {
            let id = GroupKind::new(&*served.group, &*served.kind);
            let projection = self.body(served);
            let is_read = self.snapshot.was_selected(&id, None, &target, projection)
                || self.snapshot.listed(&id, None, projection) == Listed::Done;
            (!is_read).then(|| Read { target: target.clone(), ..list(served, None, None, projection) })
        };
        catalog
            .iter()
            .filter(|served| served.is_called(kind) && served.is_listable())
            .filter_map(read)
            .collect()
    }

    /// Plans the list of the clusters that Cluster API manages, if the query wants their Secrets.
    fn cluster_api(&self, catalog: &KindCatalog) -> Option<Read> {
        let kind = GroupKind::new(CLUSTER_API_GROUP, "Cluster");
        let is_wanted = self.asked.cluster_secrets.contains(&ClusterSecretTool::ClusterApi)
            && self.snapshot.listed(&kind, self.namespace, Projection::Metadata) == Listed::No;
        let served = catalog.get(&kind).filter(|served| is_wanted && served.is_listable())?;
        Some(list(served, self.asked.namespace.clone(), None, Projection::Metadata))
    }

    /// Plans the lists of every kind that tools may declare in the namespaces of [`ReadQuery::everything_in`].
    fn everything(&self, catalog: &KindCatalog) -> Vec<Read> {
        let is_read = |served: &ServedKind, namespace: &str| {
            let kind = GroupKind::new(&*served.group, &*served.kind);
            let projection = body_of(&served.group, &served.kind);
            [Some(namespace), None]
                .into_iter()
                .any(|place| self.snapshot.listed(&kind, place, projection) == Listed::Done)
        };
        let kinds = catalog.iter().filter(|served| {
            served.namespaced && served.is_listable() && !kinds::is_noise(&served.group, &served.kind)
        });
        let lists = kinds.flat_map(|served| {
            let new = self.asked.everything_in.iter().filter(move |namespace| !is_read(served, namespace));
            new.map(|namespace| {
                list(served, Some(namespace.clone()), None, body_of(&served.group, &served.kind))
            })
        });
        lists.collect()
    }

    /// Returns the projection in which objects of a kind are read that are declared or that the query names: whole if
    /// the kind needs its body or the query sets `whole`, else metadata. Of Secrets always metadata.
    fn body(&self, served: &ServedKind) -> Projection {
        let is_secret = served.group.is_empty() && served.kind == "Secret";
        if self.asked.whole && !is_secret { Projection::Full } else { body_of(&served.group, &served.kind) }
    }

    /// Returns the kinds in namespaces beyond [`MAX_NAMESPACED_LISTS`], so that they are listed in all namespaces or
    /// not at all. Those of [`ReadQuery::objects`] are never among them.
    ///
    /// Apps that name few objects come first. Empty if the query has no namespace.
    fn beyond<'f>(&'f self, found: &'f Declarations) -> BTreeSet<Place<'f>> {
        let mut beyond = BTreeSet::new();
        if self.namespace.is_none() {
            return beyond;
        }
        let mut apps: Vec<&Declaration> =
            self.apps(found).into_iter().filter(|app| app.cluster().is_some()).collect();
        apps.sort_by_key(|app| app.objects.len());
        let mut within = BTreeSet::new();
        for place in apps.into_iter().flat_map(|app| &app.objects).map(place_of) {
            if within.len() < MAX_NAMESPACED_LISTS {
                within.insert(place);
            } else if !within.contains(&place) {
                beyond.insert(place);
            }
        }
        // The objects that apps of other clusters want here have a limit of their own.
        for key in &self.asked.objects {
            beyond.remove(&place_of(key));
        }
        beyond
    }

    /// Adds to `reads` the lists of the kind `served`, or the reads by name, that return the objects `keys`; a kind in
    /// a namespace of `beyond` is not listed there.
    fn wanted(
        &self,
        catalog: &KindCatalog,
        served: &ServedKind,
        keys: &[&ObjectKey],
        beyond: &BTreeSet<Place<'_>>,
        reads: &mut Vec<Read>,
    ) {
        let kind = GroupKind::new(&*served.group, &*served.kind);
        let projection = self.body(served);
        if self.asked.by_name {
            let mut places: BTreeMap<&str, Vec<&ObjectKey>> = BTreeMap::new();
            for key in keys {
                places.entry(&key.namespace).or_default().push(key);
            }
            for (namespace, keys) in places {
                let namespace = served.namespaced.then_some(namespace);
                let is_few = keys.len() <= MAX_SINGLE_GETS || !served.is_listable();
                match self.listed(&kind, namespace, projection) {
                    Listed::Done => {}
                    _ if is_few => {
                        reads.extend(keys.iter().filter_map(|key| self.object(catalog, key, projection)))
                    }
                    _ => reads.push(list(served, namespace.map(str::to_owned), None, projection)),
                }
            }
            return;
        }
        let is_beyond = |key: &ObjectKey| served.namespaced && beyond.contains(&place_of(key));
        let (more, few): (Vec<&ObjectKey>, Vec<&ObjectKey>) = keys.iter().partition(|key| is_beyond(key));
        let mut namespaces: BTreeSet<&str> = few.iter().map(|key| key.namespace.as_str()).collect();
        let groups = if self.asked.label_groups && self.asked.declarations { self.namespace } else { None };
        let scopes: Vec<Option<&str>> = match self.namespace {
            _ if !served.namespaced => vec![None],
            // A user who asks for one namespace may not be allowed to list all.
            Some(_) => {
                namespaces.extend(groups);
                let whole = (!more.is_empty()).then_some(None);
                namespaces.into_iter().map(Some).chain(whole).collect()
            }
            None if namespaces.len() == 1 && !self.asked.label_groups => {
                namespaces.into_iter().map(Some).collect()
            }
            None => vec![None],
        };
        for scope in scopes {
            let keys = if scope.is_none() && !more.is_empty() { &more } else { &few };
            let inside = || keys.iter().filter(|key| scope.is_none_or(|scope| scope == key.namespace));
            match self.listed(&kind, scope, projection) {
                // The list failed, since it told nothing of these. Who may not list a kind may often get an object.
                Listed::Done => {
                    let named = || inside().filter(|key| self.asked.objects.contains(key));
                    if named().count() <= MAX_SINGLE_GETS {
                        reads.extend(named().filter_map(|key| self.object(catalog, key, projection)));
                    }
                }
                Listed::Selected if inside().count() <= MAX_SINGLE_GETS => {
                    reads.extend(inside().filter_map(|key| self.object(catalog, key, projection)));
                }
                _ if served.is_listable() => {
                    reads.push(list(served, scope.map(str::to_owned), None, projection))
                }
                _ => reads.extend(inside().filter_map(|key| self.object(catalog, key, projection))),
            }
        }
    }

    /// Plans the whole reads of declared objects and of those in the query of which only metadata was read, where
    /// metadata is not enough to judge them, or, for those in the query, where it sets `whole`.
    fn left(&self, catalog: &KindCatalog, found: &Declarations) -> Vec<Read> {
        let asked: BTreeSet<&ObjectKey> = self.asked.objects.iter().filter(|_| self.asked.whole).collect();
        let is_wanted = |key: &ObjectKey| {
            asked.contains(key)
                && catalog.get(&key.group_kind()).is_some_and(|it| self.body(it) == Projection::Full)
        };
        let declared = self.objects_of(found);
        let mut keys: Vec<&ObjectKey> = declared.chain(&self.asked.objects).collect();
        keys.sort();
        keys.dedup();
        let lacks_body = |key: &&ObjectKey| match self.snapshot.get(key.as_ref()) {
            Presence::Present(observed) => {
                !suffices(&observed) || observed.projection != Projection::Full && is_wanted(key)
            }
            Presence::Absent | Presence::Unobserved(_) => false,
        };
        keys.into_iter()
            .filter(lacks_body)
            .filter_map(|key| self.object(catalog, key, Projection::Full))
            .collect()
    }

    /// Plans the reads that prove in which namespaces an Argo CD runs; none if that can change neither a verdict nor
    /// which of Argo CD's cluster Secrets count, if the query wants these.
    fn argo(&self, catalog: &KindCatalog, rules: &ActiveRules<'_>) -> Vec<Read> {
        let mut reads = Vec::new();
        let mut namespaces = installs::doubtful(self.snapshot, &rules.options.trust);
        if self.asked.cluster_secrets.contains(&ClusterSecretTool::ArgoCd) {
            namespaces.extend(secret_clusters::doubtful(self.snapshot, &rules.options.trust));
        }
        let mut list = |(group, kind): (&str, &str), namespace: Option<&str>, target: Target| {
            let id = GroupKind::new(group, kind);
            let served = catalog.get(&id).filter(|served| served.is_listable());
            // If such an object is declared, its kind is listed by metadata, which does not say what it
            // allows.
            let mut known = self.snapshot.of_kind(group, kind, None);
            let is_read = self.snapshot.was_selected(&id, namespace, &target, Projection::Full)
                || self.snapshot.listed(&id, namespace, Projection::Metadata) == Listed::Done
                    && known.all(|observed| observed.projection == Projection::Full);
            if let Some(served) = served.filter(|_| !is_read) {
                let read = list(served, namespace.map(str::to_owned), None, Projection::Full);
                reads.push(Read { target, ..read });
            }
        };
        // For many namespaces one list of all is cheaper.
        let places: Vec<Option<&str>> = match self.namespace.is_none() && namespaces.len() > MAX_SINGLE_GETS {
            true => vec![None],
            false => namespaces.iter().map(|namespace| Some(namespace.as_str())).collect(),
        };
        for namespace in places {
            for workload in installs::WORKLOADS {
                let labels = Some(installs::CONTROLLERS.to_owned());
                list(workload, namespace, Target::List { labels, fields: None });
            }
        }
        if !namespaces.is_empty() {
            for kind in [installs::BINDING, installs::ROLE] {
                let fields = Some(installs::ALL_BINDINGS.to_owned());
                list(kind, None, Target::List { labels: None, fields });
            }
        }
        reads
    }

    /// Plans reads of the controllers that labelled objects name as their owners, if the query groups by labels. An
    /// object whose controller does not exist is grouped by its own labels.
    ///
    /// Authors who label objects in a namespace choose what is read: many owners of a kind cause a list of that kind in
    /// that namespace, and it takes several namespaces to cause a list in all.
    fn controllers(&self, catalog: &KindCatalog, found: &Declarations) -> Vec<Read> {
        if !self.asked.label_groups {
            return Vec::new();
        }
        let projection = Projection::Metadata;
        let mut wanted: BTreeMap<GroupKind, BTreeMap<&str, Vec<&ObjectKey>>> = BTreeMap::new();
        for (_, key) in found.owners.iter().filter(|(_, key)| !self.snapshot.was_read(key, projection)) {
            wanted.entry(key.group_kind()).or_default().entry(&key.namespace).or_default().push(key);
        }
        let mut reads = Vec::new();
        for (kind, places) in wanted {
            let Some(served) = catalog.get(&kind) else { continue };
            let (mut all, mut shares) = (0, 0);
            for keys in places.values() {
                (all, shares) = (all + keys.len(), shares + keys.len().min(MAX_SINGLE_GETS_PER_NAMESPACE));
            }
            let few = if all > MAX_SINGLE_GETS { MAX_SINGLE_GETS_PER_NAMESPACE } else { MAX_SINGLE_GETS };
            if self.namespace.is_none()
                && served.namespaced
                && served.is_listable()
                && shares > MAX_SINGLE_GETS
            {
                if self.snapshot.listed(&kind, None, projection) != Listed::Done {
                    reads.push(list(served, None, None, projection));
                }
                continue;
            }
            for (namespace, keys) in places {
                let namespace = Some(namespace.to_owned()).filter(|_| served.namespaced);
                if keys.len() <= few || !served.is_listable() {
                    reads.extend(keys.iter().filter_map(|key| self.object(catalog, key, projection)));
                } else if self.snapshot.listed(&kind, namespace.as_deref(), projection) != Listed::Done {
                    reads.push(list(served, namespace, None, projection));
                }
            }
        }
        reads
    }

    /// Returns true if an object may exist and was not yet read with at least the projection `wanted`.
    fn lacks(&self, key: &ObjectKey, wanted: Projection) -> bool {
        match self.snapshot.get(key.as_ref()) {
            Presence::Present(observed) => !observed.projection.covers(wanted),
            Presence::Absent => false,
            Presence::Unobserved(_) => true,
        }
    }

    /// Returns the read of one object by name; `None` if it was read with this projection already, or its kind is not
    /// served or does not support `get`.
    fn object(&self, catalog: &KindCatalog, key: &ObjectKey, projection: Projection) -> Option<Read> {
        // A kind without the verb get, such as a review, would be refused at each attempt.
        let served =
            catalog.get(&key.group_kind()).filter(|served| served.verbs.iter().any(|it| it == "get"))?;
        let namespace = served.namespaced.then(|| key.namespace.clone());
        let read =
            Read { target: Target::Object(key.name.clone()), ..list(served, namespace, None, projection) };
        (!self.snapshot.was_read(key, projection)).then_some(read)
    }
}

fn body_of(group: &str, kind: &str) -> Projection {
    if kinds::needs_body(group, kind) { Projection::Full } else { Projection::Metadata }
}

fn list(
    served: &ServedKind,
    namespace: Option<String>,
    labels: Option<String>,
    projection: Projection,
) -> Read {
    let ServedKind { group, version, kind, plural, .. } = served.clone();
    Read {
        group,
        version,
        kind,
        plural,
        namespace,
        target: Target::List { labels, fields: None },
        projection,
    }
}
