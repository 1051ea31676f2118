//! Parses URLs.

use std::borrow::Cow;

use http::Method;
use percent_encoding::percent_decode_str;

use crate::store::Store;
use crate::target::Target;

/// A parsed URL path.
#[derive(Debug, Clone)]
pub(crate) enum Path {
    /// Discovery: `/api`, `/apis`, `/apis/GROUP`, `/apis/GROUP/VERSION`.
    Discovery {
        group: Option<String>,
        version: Option<String>,
    },
    Resource(Resourceful),
    /// OpenAPI: holds the part of the path after `/openapi/v3/`, such as `apis/apps/v1`; empty for the index.
    OpenApi(String),
    OpenApiV2,
    Version,
    Health(String),
    Root,
    Unknown,
}

/// The path of objects of a resource, or of one object or subresource.
#[derive(Debug, Clone, Default)]
pub(crate) struct Resourceful {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) namespace: String,
    pub(crate) plural: String,
    pub(crate) name: String,
    pub(crate) subresource: String,
}

impl Path {
    pub(crate) fn parse(path: &str) -> Path {
        let decoded: Vec<Cow<'_, str>> = path
            .split('/')
            .filter(|part| !part.is_empty())
            .map(|part| percent_decode_str(part).decode_utf8_lossy())
            .collect();
        let parts: Vec<&str> = decoded.iter().map(|part| &**part).collect();
        let owned = |text: &str| Some(text.to_owned());
        match parts.as_slice() {
            [] => Path::Root,
            ["api"] => Path::Discovery { group: owned(""), version: None },
            ["api", version] => Path::Discovery { group: owned(""), version: owned(version) },
            ["apis"] => Path::Discovery { group: None, version: None },
            ["apis", group] => Path::Discovery { group: owned(group), version: None },
            ["apis", group, version] => Path::Discovery { group: owned(group), version: owned(version) },
            ["api", version, rest @ ..] => Path::resource("", version, rest),
            ["apis", group, version, rest @ ..] => Path::resource(group, version, rest),
            ["openapi", "v2"] => Path::OpenApiV2,
            ["openapi", "v3", rest @ ..] => Path::OpenApi(rest.join("/")),
            ["version"] => Path::Version,
            [name @ ("healthz" | "livez" | "readyz")] => Path::Health((*name).to_owned()),
            _ => Path::Unknown,
        }
    }

    fn resource(group: &str, version: &str, rest: &[&str]) -> Path {
        let (namespace, rest) = match rest {
            ["namespaces", _, "status" | "finalize"] => ("", rest),
            ["namespaces", namespace, inside @ ..] if !inside.is_empty() => (*namespace, inside),
            _ => ("", rest),
        };
        let part = |index: usize| rest.get(index).map(|part| (*part).to_owned()).unwrap_or_default();
        if rest.len() > 3 {
            return Path::Unknown;
        }
        Path::Resource(Resourceful {
            group: group.to_owned(),
            version: version.to_owned(),
            namespace: namespace.to_owned(),
            plural: part(0),
            name: part(1),
            subresource: part(2),
        })
    }

    /// Returns the verb of a request, as roles call it (empty for an unsupported method), and the full name of its
    /// resource; `get` and an empty name for a path that is not of a resource.
    pub(crate) fn named(&self, method: &Method, query: &Query) -> (&'static str, String) {
        let Path::Resource(wanted) = self else { return ("get", String::new()) };
        let resource = match wanted.group.as_str() {
            "" => wanted.plural.clone(),
            group => format!("{}.{group}", wanted.plural),
        };
        let verb = match (method, wanted.name.is_empty()) {
            (&Method::GET | &Method::HEAD, true) if query.is_true("watch") => "watch",
            (&Method::GET | &Method::HEAD, true) => "list",
            (&Method::GET | &Method::HEAD, false) => "get",
            (&Method::POST, _) => "create",
            (&Method::PUT, _) => "update",
            (&Method::PATCH, _) => "patch",
            (&Method::DELETE, true) => "deletecollection",
            (&Method::DELETE, false) => "delete",
            _ => "",
        };
        (verb, resource)
    }
}

impl Resourceful {
    /// Returns the object or collection at the path; `None` if the resource or its version is not served, or if the
    /// path has a namespace that the resource does not have, or names an object without the namespace that it needs.
    pub(crate) fn target(&self, store: &Store) -> Option<Target> {
        let (shelf, resource) = store.find(&self.group, &self.plural)?;
        let version = resource.version(&self.version).filter(|_| resource.served)?;
        if !self.namespace.is_empty() && !resource.namespaced {
            return None;
        }
        // An object in a namespace cannot be addressed without it.
        if self.namespace.is_empty() && resource.namespaced && !self.name.is_empty() {
            return None;
        }
        Some(Target {
            shelf,
            resource: resource.clone(),
            version: version.name.clone(),
            namespace: self.namespace.clone(),
            name: self.name.clone(),
        })
    }
}

/// The query parameters of a URL.
#[derive(Debug, Clone, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    pub(crate) fn parse(text: &str) -> Query {
        let decode =
            |text: &str| percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned();
        let pairs = text.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decode(key), decode(value))
        });
        Query(pairs.collect())
    }

    /// Returns the first value of a parameter; an empty text if it is not given.
    pub(crate) fn get(&self, key: &str) -> &str {
        self.0.iter().find(|(known, _)| known == key).map(|(_, value)| value.as_str()).unwrap_or_default()
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.0.iter().any(|(known, _)| known == key)
    }

    pub(crate) fn all<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(known, _)| known == key).map(|(_, value)| value.as_str())
    }

    /// Returns true if the parameter is given with any value except `false`, `0` and `f`, in any case of letters; a
    /// bare name counts.
    pub(crate) fn is_true(&self, key: &str) -> bool {
        self.has(key) && !matches!(self.get(key).to_lowercase().as_str(), "false" | "0" | "f")
    }
}
