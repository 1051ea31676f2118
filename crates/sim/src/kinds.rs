//! The resources of API servers: the built-in ones of kube-apiserver 1.36, and custom ones.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use taffrail_object::JsonPath;
use taffrail_object::kinds::{self, BuiltInKind};

use crate::object_type::ObjectType;
use crate::schema::Schema;

/// One line for each column of `kubectl get`: resource, name, type, format, priority.
const COLUMNS: &str = include_str!("data/columns.tsv");

/// The verbs of a status or scale subresource.
pub(crate) const SUBRESOURCE_VERBS: [&str; 3] = ["get", "patch", "update"];

/// A resource that the API server serves, such as Pods, in all its versions.
#[derive(Debug)]
pub(crate) struct Resource {
    /// The API group; empty for the core group.
    pub(crate) group: Arc<str>,
    pub(crate) kind: Arc<str>,
    pub(crate) list_kind: Arc<str>,
    pub(crate) plural: Arc<str>,
    pub(crate) singular: Arc<str>,
    pub(crate) short_names: Vec<String>,
    pub(crate) categories: Vec<String>,
    pub(crate) namespaced: bool,
    pub(crate) verbs: Vec<&'static str>,
    /// The served versions, the preferred one first.
    pub(crate) versions: Vec<Version>,
    /// True if a CustomResourceDefinition defines the resource.
    pub(crate) custom: bool,
    /// True if requests for the resource are answered and discovery contains it; for a custom one only once it is
    /// established.
    pub(crate) served: bool,
}

/// The properties of a resource that may differ between its versions.
#[derive(Debug)]
pub(crate) struct Version {
    pub(crate) name: Arc<str>,
    /// True if the version has a status subresource.
    pub(crate) status: bool,
    pub(crate) scale: Option<Scale>,
    pub(crate) columns: Vec<Column>,
    pub(crate) schema: Option<Schema>,
    /// The fields that field selectors may use, besides name and namespace.
    pub(crate) selectable: Vec<String>,
    /// The warning for clients that use the version, such as its deprecation; `None` if there is none.
    pub(crate) warning: Option<String>,
    /// The type of its objects, once it was needed.
    pub(crate) object_type: OnceLock<ObjectType>,
}

/// The paths of the fields that the scale subresource reads and writes, each as keys.
#[derive(Debug)]
pub(crate) struct Scale {
    pub(crate) spec_replicas: Vec<String>,
    pub(crate) status_replicas: Vec<String>,
    pub(crate) selector: Option<Vec<String>>,
}

/// A column of a Table.
#[derive(Debug, Clone)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) format: String,
    pub(crate) description: String,
    pub(crate) priority: i64,
    /// The path to the value, for a column that a CustomResourceDefinition defines; `None` for other columns, or if
    /// the path cannot be parsed.
    pub(crate) json_path: Option<JsonPath>,
}

impl Resource {
    /// Returns the name with the group: `pods`, `deployments.apps`.
    pub(crate) fn full_name(&self) -> Cow<'_, str> {
        match &*self.group {
            "" => Cow::Borrowed(&self.plural),
            group => Cow::Owned(format!("{}.{group}", self.plural)),
        }
    }

    /// Returns the `apiVersion` of objects in this version.
    pub(crate) fn api_version(&self, version: &str) -> String {
        group_version(&self.group, version)
    }

    pub(crate) fn version(&self, name: &str) -> Option<&Version> {
        self.versions.iter().find(|version| &*version.name == name)
    }

    pub(crate) fn is(&self, group: &str, plural: &str) -> bool {
        &*self.group == group && &*self.plural == plural
    }

    /// Returns true if objects of the resource are stored; false for requests such as SelfSubjectAccessReview.
    pub(crate) fn is_stored(&self) -> bool {
        self.verbs.contains(&"list")
    }

    /// Returns true if the server counts changes of the spec in `metadata.generation`.
    pub(crate) fn has_generation(&self) -> bool {
        const WITHOUT: [&str; 31] = [
            "configmaps",
            "endpoints",
            "events",
            "limitranges",
            "namespaces",
            "nodes",
            "persistentvolumeclaims",
            "persistentvolumes",
            "ipaddresses",
            "servicecidrs",
            "apiservices",
            "storageclasses",
            "volumeattachments",
            "volumeattributesclasses",
            "csistoragecapacities",
            "runtimeclasses",
            "resourceclaims",
            "resourceclaimtemplates",
            "resourcequotas",
            "secrets",
            "serviceaccounts",
            "services",
            "controllerrevisions",
            "horizontalpodautoscalers",
            "certificatesigningrequests",
            "clusterrolebindings",
            "clusterroles",
            "rolebindings",
            "roles",
            "leases",
            "csinodes",
        ];
        self.custom || !WITHOUT.contains(&&*self.plural)
    }
}

/// Returns group and version as one text: `apps/v1`, or `v1` for the core group.
pub(crate) fn group_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

/// Splits `apps/v1` into `("apps", "v1")`, and `v1` into `("", "v1")`.
pub(crate) fn split_group_version(api_version: &str) -> (&str, &str) {
    api_version.split_once('/').unwrap_or(("", api_version))
}

/// Returns the resources that every server has; all clusters share them.
pub(crate) fn builtin() -> &'static [Arc<Resource>] {
    static BUILTIN: OnceLock<Vec<Arc<Resource>>> = OnceLock::new();
    BUILTIN.get_or_init(|| kinds::built_in().iter().map(resource).map(Arc::new).collect())
}

fn resource(built_in: &BuiltInKind) -> Resource {
    let BuiltInKind { group, version, plural, singular, kind, namespaced, .. } = *built_in;
    let texts = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    let path = |text: &str| text.split('.').map(str::to_owned).collect::<Vec<_>>();
    let scale = built_in.subresources.contains(&"scale").then(|| Scale {
        spec_replicas: path("spec.replicas"),
        status_replicas: path("status.replicas"),
        selector: Some(path("spec.selector")),
    });
    let name = if group.is_empty() { plural.to_owned() } else { format!("{plural}.{group}") };
    let version = Version {
        name: version.into(),
        status: built_in.subresources.contains(&"status"),
        scale,
        columns: COLUMNS.lines().filter_map(|line| column(line, &name)).collect(),
        schema: None,
        selectable: selectable(&name).iter().map(|field| (*field).to_owned()).collect(),
        warning: match &*name {
            "endpoints" => {
                Some("v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice".into())
            }
            _ => None,
        },
        object_type: OnceLock::new(),
    };
    Resource {
        group: group.into(),
        kind: kind.into(),
        list_kind: format!("{kind}List").into(),
        plural: plural.into(),
        singular: singular.into(),
        short_names: texts(&built_in.short_names),
        categories: texts(&built_in.categories),
        namespaced,
        verbs: built_in.verbs.clone(),
        versions: vec![version],
        custom: false,
        served: true,
    }
}

fn column(line: &str, resource: &str) -> Option<Column> {
    let mut fields = line.split('\t');
    if fields.next()? != resource {
        return None;
    }
    let (name, kind, format, priority) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
    Some(Column {
        name: name.to_owned(),
        kind: kind.to_owned(),
        format: if format == "-" { String::new() } else { format.to_owned() },
        description: String::new(),
        priority: priority.parse().ok()?,
        json_path: None,
    })
}

/// Returns the Table columns of a kind that defines none: name and age.
pub(crate) fn plain_columns() -> Vec<Column> {
    let column = |name: &str, kind: &str, format: &str| Column {
        name: name.to_owned(),
        kind: kind.to_owned(),
        format: format.to_owned(),
        description: String::new(),
        priority: 0,
        json_path: None,
    };
    vec![column("Name", "string", "name"), column("Age", "date", "")]
}

/// Returns the fields of a built-in kind that field selectors may use, besides name and namespace:
/// `AddFieldLabelConversionFunc` in Kubernetes' `pkg/apis/*/v1/conversion.go`.
fn selectable(resource: &str) -> &'static [&'static str] {
    match resource {
        "pods" => &[
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.podIPs",
            "status.nominatedNodeName",
        ],
        "events" => &[
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "source",
            "type",
        ],
        "secrets" => &["type"],
        "nodes" => &["spec.unschedulable"],
        "namespaces" => &["status.phase"],
        "services" => &["spec.clusterIP", "spec.type"],
        "replicasets.apps" | "replicationcontrollers" => &["status.replicas"],
        "jobs.batch" => &["status.successful"],
        "certificatesigningrequests.certificates.k8s.io" => &["spec.signerName"],
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_columns_table_is_parsed() {
        let columns: usize = builtin().iter().map(|resource| resource.versions[0].columns.len()).sum();
        assert_eq!(columns, COLUMNS.lines().count());
    }

    #[test]
    fn deployment_resource_has_its_properties() {
        let found =
            builtin().iter().find(|resource| resource.is("apps", "deployments")).expect("deployments");
        assert_eq!(&*found.kind, "Deployment");
        assert!(found.namespaced && found.versions[0].status && found.versions[0].scale.is_some());
    }
}
