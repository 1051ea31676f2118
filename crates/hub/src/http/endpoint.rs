//! The paths of the API: one table by which they are served and documented.

use super::lists;
use super::problem::Refusal;
use super::request::Request;

/// A path of the API that answers with a document.
pub(crate) struct Endpoint {
    pub(crate) path: &'static str,
    /// The name of the operation.
    pub(crate) id: &'static str,
    pub(crate) about: &'static str,
    /// The parameters in the path, with their meanings.
    pub(crate) parts: &'static [(&'static str, &'static str)],
    /// The names of the parameters of the query.
    pub(crate) parameters: &'static [&'static str],
    /// The names of the schemas of the possible answers.
    pub(crate) answers: &'static [&'static str],
    pub(crate) answer: fn(&Request<'_>) -> Result<Vec<u8>, Refusal>,
}

/// All paths that answer with a document.
pub(crate) static ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        path: "/api/v1/clusters",
        id: "listClusters",
        about: "Lists the clusters, with the summary of their apps.",
        parts: &[],
        parameters: &["status", "cluster", "text", "sort", "limit", "cursor"],
        answers: &["ClusterList"],
        answer: lists::clusters,
    },
    Endpoint {
        path: "/api/v1/apps",
        id: "listApps",
        about: "Lists the apps in their clusters, or counts them by a value that they share.",
        parts: &[],
        parameters: &[
            "status",
            "problems",
            "sync",
            "delivery",
            "suspended",
            "selector",
            "cluster",
            "namespace",
            "name",
            "text",
            "sort",
            "limit",
            "cursor",
            "fields",
            "group-by",
        ],
        answers: &["AppList", "AppGroupList"],
        answer: lists::apps,
    },
    Endpoint {
        path: "/api/v1/apps/{cluster}/{delivery}/{namespace}/{name}",
        id: "getApp",
        about: "Returns one app in one cluster, as a list of one row.",
        parts: &[
            ("cluster", "The name, alias or identity of the cluster that holds the objects."),
            ("delivery", "The delivery tool: `flux-kustomization` or `ks`, `helm`, …"),
            ("namespace", "The namespace of the declaring object; `-` if it has none."),
            ("name", "The name of the declaring object."),
        ],
        parameters: &["home"],
        answers: &["AppList"],
        answer: lists::app,
    },
    Endpoint {
        path: "/api/v1/matrix",
        id: "getMatrix",
        about: "Returns the table of apps by clusters, one character a cell.",
        parts: &[],
        parameters: &[
            "status",
            "problems",
            "sync",
            "delivery",
            "suspended",
            "selector",
            "cluster",
            "namespace",
            "name",
            "text",
            "limit",
            "cursor",
        ],
        answers: &["Matrix"],
        answer: lists::matrix,
    },
    Endpoint {
        path: "/api/v1/attention",
        id: "getAttention",
        about: "Returns the problems of the apps, grouped by cause.",
        parts: &[],
        parameters: &[
            "status",
            "problems",
            "sync",
            "delivery",
            "suspended",
            "selector",
            "cluster",
            "namespace",
            "name",
            "text",
            "limit",
        ],
        answers: &["Attention"],
        answer: lists::attention,
    },
    Endpoint {
        path: "/api/v1/changes",
        id: "listChanges",
        about: "Lists the last changes of the state of apps since the hub began to run, the latest first.",
        parts: &[],
        parameters: &["cluster", "namespace", "name", "delivery", "limit", "cursor"],
        answers: &["AppChangeList"],
        answer: lists::changes,
    },
];
