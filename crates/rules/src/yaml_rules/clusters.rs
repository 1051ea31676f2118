//! The kinds whose objects stand for clusters, and the fields by which an object names its cluster.

use std::net::Ipv6Addr;
use std::ops::ControlFlow;

use taffrail_object::Object;
use taffrail_object::json::{Kind, Value};
use taffrail_status::{ClusterNames, NamedCluster};

use super::path::{self, Path};

/// The claim of Open Cluster Management, and property of the multicluster API, that holds the identity of a cluster.
const ID_CLAIM: &str = "id.k8s.io";

/// The fields by which the objects of a kind name the cluster for which they stand.
#[derive(Debug, Clone, Default)]
pub(crate) struct ClusterFields {
    pub(super) ids: Box<[Path]>,
    pub(super) addresses: Box<[Path]>,
    pub(super) names: Box<[Path]>,
}

impl ClusterFields {
    /// Returns the cluster that an object names.
    pub(crate) fn named(&self, object: &Object<'_>) -> NamedCluster {
        type Sort = fn(&mut ClusterNames) -> &mut Vec<String>;
        type Read = fn(Value<'_>) -> Option<String>;

        let mut named = NamedCluster::default();
        let sorts: [(&[Path], Sort, Read); 3] = [
            (&self.ids, |names| &mut names.ids, id),
            (&self.addresses, |names| &mut names.addresses, address),
            (&self.names, |names| &mut names.names, text),
        ];
        for (paths, sort, read) in sorts {
            for path in paths {
                let part = if path.is_of_status() { &mut named.observed } else { &mut named.claimed };
                let found = sort(part);
                let _ = path.visit(object.root(), &mut |value| {
                    if found.len() >= ClusterNames::MAX {
                        return ControlFlow::Break(());
                    }
                    let text = read(value).filter(|text| !text.is_empty());
                    found.extend(text.filter(|text| text.len() <= ClusterNames::MAX_LENGTH));
                    ControlFlow::Continue(())
                });
            }
        }
        named
    }
}

fn text(value: Value<'_>) -> Option<String> {
    path::text(value).map(Into::into)
}

/// Returns the identity in a text, or in a claim with a name and a value, if it is [`ID_CLAIM`].
fn id(value: Value<'_>) -> Option<String> {
    if value.kind() != Kind::Object {
        return text(value);
    }
    value.get("name").filter(|name| name.is_str(ID_CLAIM))?;
    text(value.get("value")?)
}

/// Returns the URL of an API server: of a text that is a URL or the name or address of a host, or of an object with the
/// members `host` and `port`.
fn address(value: Value<'_>) -> Option<String> {
    if value.kind() == Kind::Object {
        let host = value.get("host")?.as_str().filter(|host| !host.is_empty())?;
        return Some(format!("https://{}:{}", bracketed(&host), value.get("port")?.as_i64()?));
    }
    let text = value.as_str()?;
    match text.is_empty() || text.contains("://") {
        true => Some(text.into_owned()),
        false => Some(format!("https://{}", bracketed(&text))),
    }
}

/// Puts an IPv6 address in brackets, as in a URL.
fn bracketed(host: &str) -> String {
    match host.parse::<Ipv6Addr>() {
        Ok(_) => format!("[{host}]"),
        Err(_) => host.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_are_read_as_addresses_and_identities() {
        for (value, expected) in [
            (json!("https://eu.example.com:6443/"), "https://eu.example.com:6443/"),
            (json!("eu.example.com"), "https://eu.example.com"),
            (json!("eu.example.com:6443"), "https://eu.example.com:6443"),
            (json!("10.0.0.7"), "https://10.0.0.7"),
            (json!("fd00::7"), "https://[fd00::7]"),
            (json!({"host": "fd00::7", "port": 6443}), "https://[fd00::7]:6443"),
            (json!({"host": "", "port": 6443}), "-"),
            (json!({"host": "eu"}), "-"),
            (json!(7), "-"),
        ] {
            assert_eq!(address((&value).into()).as_deref().unwrap_or("-"), expected);
        }
        for (value, expected) in [
            (json!("u-1"), "u-1"),
            (json!({"name": "id.k8s.io", "value": "u-1"}), "u-1"),
            (json!({"name": "region", "value": "u-1"}), "-"),
        ] {
            assert_eq!(id((&value).into()).as_deref().unwrap_or("-"), expected);
        }
    }
}
