//! Names: of objects, of clusters, and of apps.

use std::fmt;
use std::str::FromStr;

use taffrail_object::Object;

use crate::names;

/// What makes a cluster that cluster: the UID of its `kube-system` namespace. Contexts and names are aliases.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClusterId(pub String);

impl fmt::Display for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// How an app gets into a cluster, and so what its declaring object is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Delivery {
    /// Flux `Kustomization`.
    FluxKustomization,
    /// Flux `HelmRelease`.
    FluxHelmRelease,
    /// Argo CD `Application`.
    ArgoApplication,
    /// Config Sync `RootSync` or `RepoSync`.
    ConfigSync,
    /// kpt `ResourceGroup`.
    Kpt,
    /// Porch: a package in a deployment repository, which Config Sync or Flux delivers.
    Porch,
    /// A release in Helm's storage that nobody else declares.
    Helm,
    /// Objects that carry the same label.
    Label,
    /// Objects that were declared to Taffrail itself.
    Taffrail,
}

impl Delivery {
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

    /// The name used everywhere.
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

/// A word that names no delivery.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is no delivery; one of flux-kustomization (ks), flux-helmrelease (hr), argo-application (argo), config-sync, \
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

/// Names one app: where its declaring object lives, and where its objects live.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AppRef {
    /// Name of the cluster that holds the declaring object.
    pub home: String,
    /// Name of the cluster that the objects land in; the home, where that cluster is out of reach.
    pub target: String,
    /// How the app is delivered.
    pub delivery: Delivery,
    /// Namespace of the declaring object.
    pub namespace: String,
    /// Name of the declaring object.
    pub name: String,
}

/// Written `delivery namespace/name`, for sentences.
impl fmt::Display for AppRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            write!(f, "{} {}", self.delivery, self.name)
        } else {
            write!(f, "{} {}/{}", self.delivery, self.namespace, self.name)
        }
    }
}

/// The annotation, or label, by which people say that apps of several clusters are one.
pub const APP_ANNOTATION: &str = "taffrail.dev/app";

/// The row of an app × cluster matrix: what is the same app in several clusters has the same key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AppKey {
    /// Named by [`APP_ANNOTATION`].
    Named(String),
    /// Made by an Argo CD ApplicationSet.
    ApplicationSet {
        /// Namespace of the ApplicationSet.
        namespace: String,
        /// Name of the ApplicationSet.
        name: String,
    },
    /// A package of kpt or Porch.
    Package(String),
    /// Known by its declaring object alone.
    Own {
        /// How the app is delivered.
        delivery: Delivery,
        /// Namespace of the declaring object.
        namespace: String,
        /// Name of the declaring object.
        name: String,
    },
}

impl AppKey {
    /// The key of the app that `declaring` (where there is such an object) declares.
    pub fn of(delivery: Delivery, namespace: &str, name: &str, declaring: Option<&Object<'_>>) -> AppKey {
        let own = || AppKey::Own { delivery, namespace: namespace.to_owned(), name: name.to_owned() };
        let Some(object) = declaring else { return own() };
        for place in ["annotations", "labels"] {
            let named = object.text(&["metadata", place, APP_ANNOTATION]);
            // With a slash it would look like the name of an app in full, which anybody could give to theirs.
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

/// The name of the ApplicationSet that owns an Application; it is in the same namespace.
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

/// Written so that keys of different sorts differ: the name given by people as it is, else
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
