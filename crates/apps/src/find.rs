//! Search for the apps that a name given by the user matches.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::app::{App, AppList};
use crate::identity::{AppKey, AppRef, Delivery, UnknownDelivery};
use crate::reads::declaring::may_declare;
use crate::scope::{Scope, ScopeError};
use crate::snapshot::FORBIDDEN;
use crate::text::listed;

/// Maximum number of candidates that the message about an ambiguous name lists; it counts the others.
const MAX_LISTED_NAMES: usize = 20;

/// The name of an app as users write it: `[[CLUSTER/]DELIVERY/][NAMESPACE/]NAME`, or the key that its copies in all
/// clusters share. A name with a cluster has the namespace too, and may end in `@HOME`, the cluster that declares the
/// app.
///
/// In a name without a cluster, the delivery may also be named by the kind of the declaring object, in full or as the
/// tool's users shorten it: `kustomization`, `ks`, `hr`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppQuery {
    text: String,
    /// The name of the target cluster, if the text contains one.
    cluster: Option<String>,
    /// The name of the home cluster, if the text contains one.
    home: Option<String>,
    delivery: Option<Delivery>,
    namespace: Option<String>,
    /// The first of two parts if it is a word for a delivery, because it may be a namespace instead, as in
    /// `release/web`; else `None`.
    or_namespace: Option<String>,
    /// The name of the app; `None` where the text can only be an [`AppKey`].
    name: Option<String>,
}

/// The error for a text that cannot be the name of an app; holds the text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not the name of an app; write NAME, NAMESPACE/NAME or [CLUSTER/]DELIVERY/NAMESPACE/NAME")]
pub struct InvalidAppQuery(pub String);

impl FromStr for AppQuery {
    type Err = InvalidAppQuery;

    fn from_str(text: &str) -> Result<AppQuery, InvalidAppQuery> {
        // The names of clusters may contain `@`, that of an app does not.
        let mut homes = text.match_indices('@').map(|(at, _)| (&text[..at], &text[at + 1..]));
        let of_home = homes.find(|(name, home)| !home.is_empty() && in_cluster(name).is_some());
        if let Some((name, home)) = of_home {
            let query: AppQuery = name.parse()?;
            return Ok(AppQuery { text: text.to_owned(), home: Some(home.to_owned()), ..query });
        }
        // The names of clusters may contain slashes, the other parts do not.
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
            home: None,
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

/// Splits `CLUSTER/DELIVERY/NAMESPACE/NAME`, in which the delivery has its full name, into the cluster and the rest;
/// `None` if the text has another form.
fn in_cluster(text: &str) -> Option<(&str, &str)> {
    let namespaced = text.rsplit_once('/')?.0;
    let delivered = namespaced.rsplit_once('/')?.0;
    let (cluster, delivery) = delivered.rsplit_once('/')?;
    delivery.parse::<Delivery>().ok()?;
    Some((cluster, &text[cluster.len() + 1..])).filter(|_| !cluster.is_empty())
}

impl Delivery {
    /// Parses a word for a delivery: its full name, the short one shown in tables, or the kind of its
    /// declaring object.
    ///
    /// # Errors
    ///
    /// If the word stands for no delivery.
    pub fn of_word(word: &str) -> Result<Delivery, UnknownDelivery> {
        delivery(word).ok_or_else(|| UnknownDelivery(word.to_owned()))
    }
}

/// Returns the delivery that a word names; `None` if it names none.
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

/// The reason why a name does not select an app.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum FindError {
    /// The name matches several different apps.
    #[error("'{text}' names {} apps: {}", .candidates.len(), listed(.candidates, MAX_LISTED_NAMES))]
    Ambiguous {
        /// The name as given.
        text: String,
        /// Full names of the matching apps, sorted, each of which selects one.
        candidates: Vec<String>,
    },
    /// The name matches no app.
    #[error("there is no app '{text}'")]
    NotFound {
        /// The name as given.
        text: String,
        /// Full names of at most five apps with similar names, the nearest first.
        nearest: Vec<String>,
    },
}

impl AppQuery {
    /// Restricts the query to `namespace`, unless it is `None` or the text names a namespace.
    #[must_use]
    pub fn within(self, namespace: Option<&str>) -> AppQuery {
        let or_namespace = self.or_namespace.filter(|_| namespace.is_none());
        AppQuery { namespace: self.namespace.or(namespace.map(str::to_owned)), or_namespace, ..self }
    }

    /// Returns the delivery that the text names, if any.
    pub fn delivery(&self) -> Option<Delivery> {
        self.delivery
    }

    /// Returns the target cluster that the text names, if any.
    pub fn cluster(&self) -> Option<&str> {
        self.cluster.as_deref()
    }

    /// Returns the home cluster that the text names, if any.
    pub fn home(&self) -> Option<&str> {
        self.home.as_deref()
    }

    /// Returns delivery, namespace and name of a [full](AppQuery::is_full) name; the namespace may be empty. `None` for
    /// another name, which may stand for several apps.
    pub fn full_name(&self) -> Option<(Delivery, &str, &str)> {
        let namespace = self.namespace.as_deref().unwrap_or_default();
        Some((self.delivery?, namespace, self.name.as_deref()?)).filter(|_| self.is_full())
    }

    /// Iterates over the target and the home cluster that the text names, if any, so that first names can replace
    /// aliases; the text stays.
    pub fn clusters_mut(&mut self) -> impl Iterator<Item = &mut String> {
        self.cluster.iter_mut().chain(&mut self.home)
    }

    /// Returns true if the text is a full name `DELIVERY/NAMESPACE/NAME`, with or without a cluster.
    pub fn is_full(&self) -> bool {
        let (Some(delivery), Some(name)) = (self.delivery, &self.name) else { return false };
        let namespace = self.namespace.as_deref().unwrap_or_default();
        let home = self.home.as_ref().map(|home| format!("@{home}")).unwrap_or_default();
        let rest = self.text.strip_suffix(&format!("{delivery}/{namespace}/{name}{home}"));
        rest.is_some_and(|rest| rest.is_empty() || self.cluster.is_some() && rest.ends_with('/'))
    }

    /// Returns true if `error` may hide an app that the query matches: a kind that declares apps of `delivery`
    /// (`None`: any) could not be listed.
    ///
    /// A query that names a namespace cannot match an app of another tenant, and a kind that the user may not
    /// list is not taken to hide any.
    pub fn may_be_hidden(&self, error: &ScopeError, delivery: Option<Delivery>) -> bool {
        let Scope::Kind { kind, .. } = &error.scope else { return false };
        let is_possible = delivery.is_none() || self.delivery.is_none() || delivery == self.delivery;
        let is_failure = error.reason != FORBIDDEN;
        is_failure && is_possible && self.namespace.is_none() && may_declare(kind, delivery.or(self.delivery))
    }

    /// Returns true if the query matches an app of this key, delivery, namespace and name. Does not compare the
    /// clusters that the query names.
    pub(crate) fn means(&self, key: &AppKey, delivery: Delivery, namespace: &str, name: &str) -> bool {
        self.names(delivery, namespace, name) || self.calls(key, namespace)
    }

    /// Returns true if the text is `key`, the key that copies of an app share, without a cluster, and may match it in
    /// this namespace.
    ///
    /// Any author of a declaring object chooses that key, so it never matches a query for another namespace or for a
    /// delivery.
    fn calls(&self, key: &AppKey, namespace: &str) -> bool {
        let is_inside = self.namespace.as_deref().is_none_or(|own| own == namespace);
        let is_called = match key {
            AppKey::Named(name) => {
                self.name.as_deref() == Some(name.as_str())
                    && (self.delivery.is_none() && is_inside || self.is_in_word(namespace))
            }
            // The part before the slash is not a namespace.
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

    /// Returns true if the first part, which is a word for a delivery, may instead mean this namespace.
    fn is_in_word(&self, namespace: &str) -> bool {
        self.or_namespace.as_deref() == Some(namespace)
    }

    /// Finds the app that the query names, once for each cluster that it is in.
    ///
    /// # Errors
    /// If no app matches, or several that are not copies of one app.
    pub fn find<'l>(&self, list: &'l AppList) -> Result<Vec<&'l App>, FindError> {
        self.find_in(list, &[])
    }

    /// Finds the app that the query names among those in `clusters`; if it is in none of them or `clusters` is
    /// empty, in all clusters.
    ///
    /// An app with the same name in another cluster does not make the name ambiguous. An app that is in none
    /// of `clusters` is found where it is.
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

    /// Returns all apps that the query matches, by name or by key.
    ///
    /// Neither has precedence, because an author who may write into one namespace can give an app there any
    /// name and any key.
    ///
    /// # Errors
    /// If no app matches.
    pub fn all<'l>(&self, list: &'l AppList) -> Result<Vec<&'l App>, FindError> {
        let is_meant = |app: &&App| {
            self.means(&app.key, app.app.delivery, &app.app.namespace, &app.app.name)
                && self.cluster.as_ref().is_none_or(|cluster| *cluster == app.app.target)
                && self.home.as_ref().is_none_or(|home| *home == app.app.home)
        };
        let found: Vec<&App> = list.apps.iter().filter(is_meant).collect();
        match found.is_empty() {
            true => Err(FindError::NotFound { text: self.text.clone(), nearest: self.nearest(list) }),
            false => Ok(found),
        }
    }

    /// Returns the full names of at most five apps whose names are similar to that of the query, the most similar
    /// first. If the query names a cluster where it should name a namespace, its apps come first, named with the
    /// cluster.
    fn nearest(&self, list: &AppList) -> Vec<String> {
        const MAX_SUGGESTIONS: usize = 5;

        let wanted = self.name.as_deref().unwrap_or(&self.text);
        let wanted = wanted.rsplit('/').next().unwrap_or(wanted);
        let near = |app: &App| {
            let name = &app.app.name;
            let apart = distance(wanted, name);
            let similar = apart <= (wanted.chars().count() / 3).max(2);
            let inside = name.contains(wanted) || wanted.contains(name.as_str());
            let full = full_name(&app.app);
            let is_there = name == wanted && self.namespace.as_deref() == Some(&*app.app.target);
            let full = if is_there { format!("{}/{full}", app.app.target) } else { full };
            (similar || inside).then_some((!is_there, apart, full))
        };
        let names: BTreeSet<(bool, usize, String)> = list.apps.iter().filter_map(near).collect();
        names.into_iter().map(|(.., name)| name).take(MAX_SUGGESTIONS).collect()
    }
}

/// Returns true if the apps have the same key, and those with the same home cluster, or the same target cluster, are in
/// one namespace. Only then are they copies of one app, and not given that key by an author of some namespace.
fn are_joined(apps: &[&App]) -> bool {
    // Apps with one home, or with one target, must be in one namespace.
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

/// Returns the name that selects only this app in a cluster: `delivery/namespace/name`.
pub fn full_name(app: &AppRef) -> String {
    format!("{}/{}/{}", app.delivery, app.namespace, app.name)
}

/// Returns the edit distance (Levenshtein) of two words, by their first 253 characters.
fn distance(one: &str, other: &str) -> usize {
    // The API server accepts names of at most 253 characters.
    const MAX_NAME_LENGTH: usize = 253;

    let other: Vec<char> = other.chars().take(MAX_NAME_LENGTH).collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, letter) in one.chars().take(MAX_NAME_LENGTH).enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], at + 1);
        for (place, same) in other.iter().map(|candidate| *candidate == letter).enumerate() {
            let changed = diagonal + usize::from(!same);
            diagonal = row[place + 1];
            row[place + 1] = changed.min(row[place] + 1).min(diagonal + 1);
        }
    }
    row[other.len()]
}
