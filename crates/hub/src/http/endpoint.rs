//! The table of the API's paths, from which the router and the OpenAPI document are made.

use super::problem::Refusal;
use super::request::Request;
use super::{lists, operations, past};

/// A path of the API that answers a GET with one JSON document.
pub(crate) struct Endpoint {
    pub(crate) path: &'static str,
    /// The names of the query parameters that the path accepts.
    pub(crate) parameters: &'static [&'static str],
    #[cfg_attr(not(test), expect(dead_code, reason = "a test makes the OpenAPI document of it"))]
    pub(crate) about: About,
    pub(crate) answer: fn(&Request<'_>) -> Result<Vec<u8>, Refusal>,
}

/// The description of a path in the OpenAPI document.
#[cfg_attr(not(test), expect(dead_code, reason = "a test makes the OpenAPI document of it"))]
pub(crate) struct About {
    /// The name of the operation.
    pub(crate) id: &'static str,
    pub(crate) text: &'static str,
    /// The parameters in the path, with their meanings.
    pub(crate) parts: &'static [(&'static str, &'static str)],
    /// The names of the schemas of which a successful answer has one.
    pub(crate) answers: &'static [&'static str],
}

/// The four path parameters that name an app, each with its description.
const APP_PARTS: &[(&str, &str)] = &[
    ("cluster", "The name, alias or identity of the cluster that holds the objects."),
    ("delivery", "The delivery tool: `flux-kustomization` or `ks`, `helm`, …"),
    ("namespace", "The namespace of the declaring object; `-` if it has none."),
    ("name", "The name of the declaring object."),
];

/// All paths that answer a GET with one JSON document.
pub(crate) static ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        path: "/api/v1/clusters",
        parameters: &["status", "cluster", "cluster-selector", "text", "sort", "limit", "cursor", "at"],
        about: About {
            id: "listClusters",
            text: "Lists the clusters, with the summary of their apps.",
            parts: &[],
            answers: &["ClusterList", "PastClusterList"],
        },
        answer: lists::clusters,
    },
    Endpoint {
        path: "/api/v1/apps",
        parameters: &[
            "status",
            "problems",
            "sync",
            "check",
            "delivery",
            "suspended",
            "selector",
            "cluster",
            "cluster-selector",
            "namespace",
            "name",
            "text",
            "sort",
            "limit",
            "cursor",
            "fields",
            "group-by",
            "at",
        ],
        about: About {
            id: "listApps",
            text: "Lists the apps in their clusters, or counts them by a value that they share.",
            parts: &[],
            answers: &["AppList", "AppFieldsList", "AppGroupList", "PastAppList"],
        },
        answer: lists::apps,
    },
    Endpoint {
        path: "/api/v1/apps/{cluster}/{delivery}/{namespace}/{name}",
        parameters: &["home"],
        about: About {
            id: "getApp",
            text: "Returns one app in one cluster, as a list of one row.",
            parts: APP_PARTS,
            answers: &["AppList"],
        },
        answer: lists::app,
    },
    Endpoint {
        path: "/api/v1/history/{cluster}/{delivery}/{namespace}/{name}",
        parameters: &["home", "from", "to", "limit", "cursor"],
        about: About {
            id: "getHistory",
            text: "Returns the history of one app in one cluster, which may be gone: the changes of its state, and its syncs.",
            parts: APP_PARTS,
            answers: &["AppHistory"],
        },
        answer: past::history,
    },
    Endpoint {
        path: "/api/v1/matrix",
        parameters: &[
            "status",
            "problems",
            "sync",
            "check",
            "delivery",
            "suspended",
            "selector",
            "cluster",
            "cluster-selector",
            "namespace",
            "name",
            "text",
            "limit",
            "cursor",
            "label",
            "at",
        ],
        about: About {
            id: "getMatrix",
            text: "Returns the table of apps by clusters, one character a cell.",
            parts: &[],
            answers: &["Matrix"],
        },
        answer: lists::matrix,
    },
    Endpoint {
        path: "/api/v1/attention",
        parameters: &[
            "status",
            "problems",
            "sync",
            "check",
            "delivery",
            "suspended",
            "selector",
            "cluster",
            "cluster-selector",
            "namespace",
            "name",
            "text",
            "limit",
        ],
        about: About {
            id: "getAttention",
            text: "Returns the problems of the apps, grouped by cause.",
            parts: &[],
            answers: &["Attention"],
        },
        answer: lists::attention,
    },
    Endpoint {
        path: "/api/v1/changes",
        parameters: &["cluster", "cluster-selector", "namespace", "name", "delivery", "limit", "cursor"],
        about: About {
            id: "listChanges",
            text: "Lists the last changes of the state of apps since the hub began to run, the latest first.",
            parts: &[],
            answers: &["AppChangeList"],
        },
        answer: lists::changes,
    },
    Endpoint {
        path: "/api/v1/operations",
        parameters: &["limit"],
        about: About {
            id: "listOperations",
            text: "Lists the operations that were run last, the latest first: who asked for them, what was written, and the results.",
            parts: &[],
            answers: &["OperationList"],
        },
        answer: operations::list,
    },
    Endpoint {
        path: "/api/v1/operations/{id}",
        parameters: &[],
        about: About {
            id: "getOperation",
            text: "Returns one operation, as a list of one.",
            parts: &[("id", "The identifier of the run.")],
            answers: &["OperationList"],
        },
        answer: operations::one,
    },
];
