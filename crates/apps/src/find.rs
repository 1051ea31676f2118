//! Which app does a person mean?

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::str::FromStr;

use crate::apps::{App, AppList};
use crate::identity::{AppKey, AppRef, Delivery, UnknownDelivery};
use crate::objects::{Scope, ScopeError};
use crate::reads::may_declare;
use crate::snapshot::FORBIDDEN;

/// The name of an app as people write it: `[[CLUSTER/]DELIVERY/][NAMESPACE/]NAME`, or what all clusters call it.
///
/// The delivery may also be named by the kind of the declaring object, in full or as the tool's users
/// shorten it: `kustomization`, `ks`, `hr`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppQuery {
    text: String,
    /// The cluster that it lands in.
    cluster: Option<String>,
    delivery: Option<Delivery>,
    namespace: Option<String>,
    /// The namespace that the first of two parts may name too, where it is the word for a delivery: `release/web`.
    or_namespace: Option<String>,
    /// `None` where the text can only be a key.
    name: Option<String>,
}

/// A text that names no app.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' names no app; write NAME, NAMESPACE/NAME or [CLUSTER/]DELIVERY/NAMESPACE/NAME")]
pub struct InvalidAppQuery(pub String);

impl FromStr for AppQuery {
    type Err = InvalidAppQuery;

    fn from_str(text: &str) -> Result<AppQuery, InvalidAppQuery> {
        // The names of clusters may have slashes, those of the rest have none.
        if let Some((cluster, rest)) = in_cluster(text) {
            let query: AppQuery = rest.parse()?;
            return Ok(AppQuery { text: text.to_owned(), cluster: Some(cluster.to_owned()), ..query });
        }
        let parts: Vec<&str> = text.split('/').collect();
        let (delivery, namespace, name) = match parts.as_slice() {
            [name] => (None, None, Some(*name)),
            [first, name] => match delivery(first) {
                Some(delivery) => (Some(delivery), None, Some(*name)),
                None => (None, Some(*first), Some(*name)),
            },
            [first, namespace, name] => match delivery(first) {
                Some(delivery) => (Some(delivery), Some(*namespace), Some(*name)),
                None => (None, None, None),
            },
            _ => (None, None, None),
        };
        if text.is_empty() || name.is_some_and(str::is_empty) {
            return Err(InvalidAppQuery(text.to_owned()));
        }
        let namespace = namespace.filter(|namespace| !namespace.is_empty());
        let or_namespace = parts.first().filter(|_| parts.len() == 2 && delivery.is_some());
        Ok(AppQuery {
            text: text.to_owned(),
            cluster: None,
            delivery,
            namespace: namespace.map(str::to_owned),
            or_namespace: or_namespace.map(|word| (*word).to_owned()),
            name: name.map(str::to_owned),
        })
    }
}

impl fmt::Display for AppQuery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

/// The cluster of a name in full, and the rest of it: `CLUSTER/DELIVERY/NAMESPACE/NAME`.
fn in_cluster(text: &str) -> Option<(&str, &str)> {
    let namespaced = text.rsplit_once('/')?.0;
    let delivered = namespaced.rsplit_once('/')?.0;
    let (cluster, delivery) = delivered.rsplit_once('/')?;
    delivery.parse::<Delivery>().ok()?;
    Some((cluster, &text[cluster.len() + 1..])).filter(|_| !cluster.is_empty())
}

impl Delivery {
    /// Returns the delivery that a word stands for: its name, the short one that tables show, or the kind that declares.
    ///
    /// # Errors
    /// Where it stands for none.
    pub fn of_word(word: &str) -> Result<Delivery, UnknownDelivery> {
        delivery(word).ok_or_else(|| UnknownDelivery(word.to_owned()))
    }
}

/// The delivery that a word stands for.
fn delivery(word: &str) -> Option<Delivery> {
    let word = word.to_ascii_lowercase();
    word.parse().ok().or(match word.as_str() {
        "kustomization" | "ks" => Some(Delivery::FluxKustomization),
        "helmrelease" | "hr" => Some(Delivery::FluxHelmRelease),
        "application" | "argo" => Some(Delivery::ArgoApplication),
        "rootsync" | "reposync" => Some(Delivery::ConfigSync),
        "resourcegroup" => Some(Delivery::Kpt),
        "packagerevision" | "rpkg" => Some(Delivery::Porch),
        "release" => Some(Delivery::Helm),
        _ => None,
    })
}

/// Why a name leads to no app.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FindError {
    /// It names several apps.
    #[error("'{text}' names {} apps: {}", .candidates.len(), listed(.candidates))]
    Ambiguous {
        /// What was asked for.
        text: String,
        /// Names that lead to one of them each.
        candidates: Vec<String>,
    },
    /// It names none.
    #[error("there is no app '{text}'")]
    NotFound {
        /// What was asked for.
        text: String,
        /// Names that are similar, the nearest first.
        nearest: Vec<String>,
    },
}

impl AppQuery {
    /// The same within a namespace, unless the name says one itself.
    #[must_use]
    pub fn within(self, namespace: Option<&str>) -> AppQuery {
        let or_namespace = self.or_namespace.filter(|_| namespace.is_none());
        AppQuery { namespace: self.namespace.or(namespace.map(str::to_owned)), or_namespace, ..self }
    }

    /// How the app that is meant is delivered, where the name says so.
    pub fn delivery(&self) -> Option<Delivery> {
        self.delivery
    }

    /// The cluster that the app lands in, where the name says so.
    pub fn cluster(&self) -> Option<&str> {
        self.cluster.as_deref()
    }

    /// Returns true for a name in full, as [`full_name`] gives it and lists print it, with or without its cluster.
    pub fn is_full(&self) -> bool {
        let (Some(delivery), Some(name)) = (self.delivery, &self.name) else { return false };
        let namespace = self.namespace.as_deref().unwrap_or_default();
        let rest = self.text.strip_suffix(&format!("{delivery}/{namespace}/{name}"));
        rest.is_some_and(|rest| rest.is_empty() || self.cluster.is_some() && rest.ends_with('/'))
    }

    /// Returns true if a failure to list what declares apps, of `delivery` or of any, may hide an app that is meant as well.
    /// Where the namespace is said, none of another tenant can be; and who may not list a kind does not mean its apps.
    pub fn may_be_hidden(&self, error: &ScopeError, delivery: Option<Delivery>) -> bool {
        let Scope::Kind { kind, .. } = &error.scope else { return false };
        let is_possible = delivery.is_none() || self.delivery.is_none() || delivery == self.delivery;
        let is_failure = error.reason != FORBIDDEN;
        is_failure && is_possible && self.namespace.is_none() && may_declare(kind, delivery.or(self.delivery))
    }

    /// Whether an app may be meant.
    pub(crate) fn means(&self, key: &AppKey, delivery: Delivery, namespace: &str, name: &str) -> bool {
        self.names(delivery, namespace, name) || self.calls(key, namespace)
    }

    /// Returns true if it is how people, or the maker of an app in `namespace`, call all its copies.
    ///
    /// Whoever writes a declaring object chooses that name, so it never answers for an app that is asked for in another
    /// namespace or by its delivery.
    fn calls(&self, key: &AppKey, namespace: &str) -> bool {
        let is_inside = self.namespace.as_deref().is_none_or(|own| own == namespace);
        let is_called = match key {
            AppKey::Named(name) => {
                self.name.as_deref() == Some(name.as_str())
                    && (self.delivery.is_none() && is_inside || self.is_in_word(namespace))
            }
            // What stands before its slash is no namespace.
            AppKey::Package(name) => {
                let of_text = self.text == format!("package/{name}");
                of_text && (is_inside || self.namespace.as_deref() == Some("package"))
            }
            AppKey::ApplicationSet { .. } => is_inside && key.to_string() == self.text,
            AppKey::Own { .. } => false,
        };
        is_called && self.cluster.is_none()
    }

    fn names(&self, delivery: Delivery, namespace: &str, name: &str) -> bool {
        let is_inside = self.delivery.is_none_or(|own| own == delivery)
            && self.namespace.as_deref().is_none_or(|own| own == namespace);
        self.name.as_deref() == Some(name) && (is_inside || self.is_in_word(namespace))
    }

    /// Returns true if the word for a delivery may also name this namespace.
    fn is_in_word(&self, namespace: &str) -> bool {
        self.or_namespace.as_deref() == Some(namespace)
    }

    /// The app that is meant, once for each cluster that it is in.
    ///
    /// # Errors
    /// When no app is meant, or several that nobody calls the same.
    pub fn find<'l>(&self, list: &'l AppList) -> Result<Vec<&'l App>, FindError> {
        self.find_in(list, &[])
    }

    /// As [`find`](AppQuery::find), in these clusters alone if any are named, so that an app of another cluster with the same name makes
    /// it no less clear which is meant. An app that is elsewhere only is found there.
    ///
    /// # Errors
    /// As [`find`](AppQuery::find).
    pub fn find_in<'l>(&self, list: &'l AppList, clusters: &[String]) -> Result<Vec<&'l App>, FindError> {
        let mut found = self.all(list)?;
        let is_inside = |app: &&App| clusters.contains(&app.app.target);
        if found.iter().any(is_inside) {
            found.retain(is_inside);
        }
        let names: BTreeSet<String> = found.iter().map(|app| full_name(&app.app)).collect();
        if names.len() > 1 && !are_joined(&found) {
            return Err(FindError::Ambiguous {
                text: self.text.clone(),
                candidates: names.into_iter().collect(),
            });
        }
        Ok(found)
    }

    /// All apps that may be meant: those of this name, and those that people call so. Neither goes before the other, because
    /// whoever may write into one namespace can give an app there any name and any key.
    ///
    /// # Errors
    /// When no app is meant.
    pub fn all<'l>(&self, list: &'l AppList) -> Result<Vec<&'l App>, FindError> {
        let is_meant = |app: &&App| {
            self.means(&app.key, app.app.delivery, &app.app.namespace, &app.app.name)
                && self.cluster.as_ref().is_none_or(|cluster| *cluster == app.app.target)
        };
        let found: Vec<&App> = list.apps.iter().filter(is_meant).collect();
        match found.is_empty() {
            true => Err(FindError::NotFound { text: self.text.clone(), nearest: self.nearest(list) }),
            false => Ok(found),
        }
    }

    /// The names that are most like this one.
    fn nearest(&self, list: &AppList) -> Vec<String> {
        const MOST: usize = 5;

        let wanted = self.name.as_deref().unwrap_or(&self.text);
        let wanted = wanted.rsplit('/').next().unwrap_or(wanted);
        let near = |app: &App| {
            let name = &app.app.name;
            let apart = distance(wanted, name);
            let similar = apart <= (wanted.chars().count() / 3).max(2);
            let inside = name.contains(wanted) || wanted.contains(name.as_str());
            (similar || inside).then(|| (apart, full_name(&app.app)))
        };
        let names: BTreeSet<(usize, String)> = list.apps.iter().filter_map(near).collect();
        names.into_iter().map(|(_, name)| name).take(MOST).collect()
    }
}

/// Returns true if apps are of one key, and no author of a single namespace can have made it so: any two of them are in one
/// namespace, or declared and delivered in different clusters.
fn are_joined(apps: &[&App]) -> bool {
    // Those of one home are in one namespace then, and those of one target are.
    let mut namespaces: [HashMap<&str, &str>; 2] = [HashMap::new(), HashMap::new()];
    apps.windows(2).all(|pair| pair[0].key == pair[1].key)
        && apps.iter().all(|app| {
            let AppRef { home, target, namespace, .. } = &app.app;
            let places = namespaces.iter_mut().zip([home, target]);
            places.fold(true, |is_joined, (known, cluster)| {
                is_joined && *known.entry(cluster).or_insert(namespace) == namespace.as_str()
            })
        })
}

/// The first of many names, and how many more there are.
fn listed(names: &[String]) -> String {
    const MOST: usize = 20;

    let told = names.iter().take(MOST).map(String::as_str).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(MOST) {
        0 => told,
        more => format!("{told} and {more} more"),
    }
}

/// The name that leads to this app and no other: `delivery/namespace/name`.
pub fn full_name(app: &AppRef) -> String {
    format!("{}/{}/{}", app.delivery, app.namespace, app.name)
}

/// How many letters must be changed, added or taken away to come from one word to the other.
fn distance(one: &str, other: &str) -> usize {
    // Names are at most 253 characters long; longer ones are like nothing.
    const LONGEST: usize = 253;

    let other: Vec<char> = other.chars().take(LONGEST).collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, letter) in one.chars().take(LONGEST).enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], at + 1);
        for (place, same) in other.iter().map(|candidate| *candidate == letter).enumerate() {
            let changed = diagonal + usize::from(!same);
            diagonal = row[place + 1];
            row[place + 1] = changed.min(row[place] + 1).min(diagonal + 1);
        }
    }
    row[other.len()]
}
