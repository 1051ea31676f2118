//! Names of clusters and apps, and the ways in which apps are delivered.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use taffrail_object::{GroupKind, Object, names};

/// The identity of a cluster: the UID of its `kube-system` namespace. Contexts and names are only aliases.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ClusterId(pub String);

impl fmt::Display for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// The way in which an app gets into a cluster, which decides the kind of its declaring object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Delivery {
    /// Flux `Kustomization`.
    FluxKustomization,
    /// Flux `HelmRelease`.
    #[serde(rename = "flux-helmrelease")]
    FluxHelmRelease,
    /// Argo CD `Application`.
    ArgoApplication,
    /// Config Sync `RootSync` or `RepoSync`.
    ConfigSync,
    /// kpt `ResourceGroup`.
    Kpt,
    /// Porch: a package in a deployment repository, which Config Sync or Flux delivers.
    Porch,
    /// A release in Helm's storage that no HelmRelease declares.
    Helm,
    /// Objects of one namespace that no tool declares and whose app labels have the same value.
    Label,
    /// Objects that were declared to Taffrail itself.
    Taffrail,
}

impl Delivery {
    /// Returns true if apps of this delivery are read from objects of `kind`, too, beside their declaring objects: Flux
    /// sources, Helm's storage (for releases and HelmReleases), Config Sync's ResourceGroups, or Porch's Repositories.
    /// False for all kinds for other deliveries.
    pub(crate) fn reads(self, kind: &GroupKind) -> bool {
        let is_helm_storage = kind.group.is_empty() && matches!(&*kind.kind, "Secret" | "ConfigMap");
        match self {
            Delivery::FluxKustomization => kind.group == "source.toolkit.fluxcd.io",
            Delivery::FluxHelmRelease => kind.group == "source.toolkit.fluxcd.io" || is_helm_storage,
            Delivery::Helm => is_helm_storage,
            Delivery::ConfigSync => kind.group == "kpt.dev",
            Delivery::Porch => (&*kind.group, &*kind.kind) == ("config.porch.kpt.dev", "Repository"),
            _ => false,
        }
    }

    /// All deliveries.
    pub const ALL: [Delivery; 9] = [
        Delivery::FluxKustomization,
        Delivery::FluxHelmRelease,
        Delivery::ArgoApplication,
        Delivery::ConfigSync,
        Delivery::Kpt,
        Delivery::Porch,
        Delivery::Helm,
        Delivery::Label,
        Delivery::Taffrail,
    ];

    /// Returns the name used in commands, tables and JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Delivery::FluxKustomization => "flux-kustomization",
            Delivery::FluxHelmRelease => "flux-helmrelease",
            Delivery::ArgoApplication => "argo-application",
            Delivery::ConfigSync => "config-sync",
            Delivery::Kpt => "kpt",
            Delivery::Porch => "porch",
            Delivery::Helm => "helm",
            Delivery::Label => "label",
            Delivery::Taffrail => "taffrail",
        }
    }
}

impl fmt::Display for Delivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The error for a word that is not the name of a delivery; holds the word.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is not a way of delivery; write one of flux-kustomization (ks), flux-helmrelease (hr), argo-application \
     (argo), config-sync, \
     kpt, porch, helm, label, taffrail"
)]
pub struct UnknownDelivery(pub String);

impl FromStr for Delivery {
    type Err = UnknownDelivery;

    fn from_str(text: &str) -> Result<Delivery, UnknownDelivery> {
        let named = |delivery: &Delivery| delivery.as_str() == text;
        Delivery::ALL.into_iter().find(named).ok_or_else(|| UnknownDelivery(text.to_owned()))
    }
}

/// The name of one app: its home and target clusters, its delivery, namespace and name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AppRef {
    /// Name of the cluster that holds the declaring object.
    pub home: String,
    /// Name of the cluster that holds the app's objects; the same as `home` if that cluster was not queried.
    pub target: String,
    /// The way in which the app is delivered.
    pub delivery: Delivery,
    /// Namespace of the declaring object; without one, that of the release or of the labelled objects. Empty for
    /// objects that were declared to Taffrail.
    pub namespace: String,
    /// Name of the declaring object, for a package of Porch `REPOSITORY.PACKAGE`; without such an object, the name of
    /// the release or the value of the label.
    pub name: String,
}

impl AppRef {
    /// Returns the name of the cluster that declares the app; `None` if the same cluster holds its objects, or the one
    /// that holds them was not queried.
    pub fn other_home(&self) -> Option<&str> {
        Some(&*self.home).filter(|home| *home != self.target)
    }

    /// Returns the name for sentences, `delivery namespace/name`, followed by ` of HOME` if another cluster than
    /// `cluster` declares the app.
    pub fn title_in(&self, cluster: &str) -> String {
        if self.home == cluster { self.to_string() } else { format!("{self} of {}", self.home) }
    }
}

/// Formats as `delivery namespace/name`, for sentences; without a namespace as `delivery name`.
impl fmt::Display for AppRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            write!(f, "{} {}", self.delivery, self.name)
        } else {
            write!(f, "{} {}/{}", self.delivery, self.namespace, self.name)
        }
    }
}

/// The name of an app, without its cluster.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AppName {
    /// The delivery of the app, such as a Flux Kustomization.
    pub delivery: Delivery,
    /// Namespace of its declaring object; of an app without one, the namespace of its objects or its Helm release.
    pub namespace: String,
    /// Name of its declaring object; of an app without one, the value of the label or the name of the Helm release.
    pub name: String,
}

/// Formats as messages name an app: `flux-kustomization flux-system/shop`.
impl fmt::Display for AppName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let AppName { delivery, namespace, name } = self;
        let slash = if namespace.is_empty() { "" } else { "/" };
        write!(f, "{delivery} {namespace}{slash}{name}")
    }
}

impl From<&AppRef> for AppName {
    fn from(app: &AppRef) -> AppName {
        AppName { delivery: app.delivery, namespace: app.namespace.clone(), name: app.name.clone() }
    }
}

/// The annotation or label that joins apps of several clusters into one.
pub const APP_ANNOTATION: &str = "taffrail.dev/app";

/// The identity of an app across clusters: copies of one app in several clusters have the same key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AppKey {
    /// A name that the declaring object gives in [`APP_ANNOTATION`].
    Named(String),
    /// An Argo CD ApplicationSet, which made the app.
    ApplicationSet {
        /// Namespace of the ApplicationSet.
        namespace: String,
        /// Name of the ApplicationSet.
        name: String,
    },
    /// A package of kpt or Porch, by its name.
    Package(String),
    /// The app's own name: it has no copies in other clusters.
    Own {
        /// The way in which the app is delivered.
        delivery: Delivery,
        /// Namespace of the app, as in [`AppRef`].
        namespace: String,
        /// Name of the app, as in [`AppRef`].
        name: String,
    },
}

impl AppKey {
    /// Returns the key that an app shares with its copies in other clusters: the name that `declaring` gives in
    /// [`APP_ANNOTATION`], as an annotation or label, if the name is short and has no slash; else its ApplicationSet or
    /// package, else `delivery`, `namespace` and `name` alone.
    pub fn of(delivery: Delivery, namespace: &str, name: &str, declaring: Option<&Object<'_>>) -> AppKey {
        let own = || AppKey::Own { delivery, namespace: namespace.to_owned(), name: name.to_owned() };
        let Some(object) = declaring else { return own() };
        for place in ["annotations", "labels"] {
            let named = object.text(&["metadata", place, APP_ANNOTATION]);
            // With a slash it would look like the full name of an app, and any author could claim another's.
            if !named.is_empty() && !named.contains('/') && names::is_short(&named) {
                return AppKey::Named(named.into_owned());
            }
        }
        match delivery {
            Delivery::ArgoApplication => match application_set(object) {
                Some(name) => AppKey::ApplicationSet { namespace: object.namespace().into_owned(), name },
                None => own(),
            },
            Delivery::Kpt => match object.text(&["spec", "descriptor", "type"]) {
                package if package.is_empty() || !names::is_short(&package) => own(),
                package => AppKey::Package(package.into_owned()),
            },
            Delivery::Porch => match object.text(&["spec", "packageName"]) {
                package if package.is_empty() || !names::is_short(&package) => own(),
                package => AppKey::Package(package.into_owned()),
            },
            _ => own(),
        }
    }
}

/// Returns the name of the ApplicationSet that made an Application, from its owner references; `None` if none did.
pub(crate) fn application_set(application: &Object<'_>) -> Option<String> {
    let owners = application.at(&["metadata", "ownerReferences"])?.items()?;
    let text = |owner: &taffrail_object::json::Value<'_>, key| {
        owner.get(key)?.as_str().map(|text| text.into_owned())
    };
    owners
        .filter(|owner| owner.get("kind").is_some_and(|kind| kind.is_str("ApplicationSet")))
        .filter(|owner| text(owner, "apiVersion").is_some_and(|version| version.starts_with("argoproj.io/")))
        .find_map(|owner| text(&owner, "name"))
}

/// Formats keys of different variants differently: a name from the annotation as it is, otherwise
/// `applicationset/…`, `package/…` or `<delivery>/<namespace>/<name>`.
impl fmt::Display for AppKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AppKey::Named(name) => f.write_str(name),
            AppKey::ApplicationSet { namespace, name } => write!(f, "applicationset/{namespace}/{name}"),
            AppKey::Package(name) => write!(f, "package/{name}"),
            AppKey::Own { delivery, namespace, name } => write!(f, "{delivery}/{namespace}/{name}"),
        }
    }
}
