//! The namespaces of a cluster in which an Argo CD is installed.

use std::collections::BTreeMap;

use taffrail_object::ObjectKey;
use taffrail_status::{Presence, Trust};

use super::super::{AppLabel, text};
use super::installs::{INSTALLED, Namespaces, SETTINGS, Standing, argo_standing};
use crate::agreement::INSTANCE_LABEL;
use crate::objects::Objects;

/// The namespaces of a cluster in which an Argo CD is installed.
///
/// Marks name an Application in such a namespace by its bare name, which any author can give to an
/// Application elsewhere.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::delivery) struct Homes {
    /// The namespaces, each with the label by which its Argo CD tracks objects without a tracking id.
    pub(super) namespaces: BTreeMap<String, String>,
    /// The namespaces that hold Applications.
    pub(in crate::delivery) all: Namespaces,
}

impl Homes {
    /// Finds the namespaces with Applications that have a [known](Standing::Known) Argo CD; if there are none, takes
    /// `argocd`, that of the installer.
    ///
    /// Only the cluster's administrators create that one, not its tenants.
    pub(in crate::delivery) fn of(objects: &dyn Objects, trust: &Trust) -> Homes {
        let all = Namespaces::of(objects, trust);
        let mut namespaces = all.looked_into.clone();
        namespaces.retain(|namespace| argo_standing(objects, namespace, trust) == Standing::Known);
        if namespaces.is_empty() {
            namespaces.insert(INSTALLED.to_owned());
        }
        let with_label = |namespace: String| {
            let label = instance_label(objects, &namespace);
            (namespace, label)
        };
        Homes { namespaces: namespaces.into_iter().map(with_label).collect(), all }
    }
}

/// Returns the label by which the Argo CD in a namespace tracks objects without a tracking id: the one in its settings,
/// or the default if these name no valid label or were not read.
pub(super) fn instance_label(objects: &dyn Objects, namespace: &str) -> String {
    let settings = ObjectKey::new("", "ConfigMap", namespace, SETTINGS);
    let told = match objects.get(settings.as_ref()) {
        Presence::Present(settings) => {
            text(settings.object.root(), &["data", "application.instanceLabelKey"])
        }
        Presence::Absent | Presence::Unobserved(_) => None,
    };
    let told = told.filter(|label| label.parse::<AppLabel>().is_ok());
    told.unwrap_or_else(|| INSTANCE_LABEL.to_owned())
}
