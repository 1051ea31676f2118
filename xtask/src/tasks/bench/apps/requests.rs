//! Parses the output of `-vv` about the requests of a run.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};

/// The requests to one cluster.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Requests {
    /// Number of round trips one after the other.
    pub(super) rounds: usize,
    /// The size of all responses, in KB.
    pub(super) size: usize,
    /// The time to connect, in milliseconds.
    pub(super) connecting: u64,
    /// The path and query of each request.
    pub(super) paths: Vec<String>,
}

impl Requests {
    /// Parses the output of a run with `-vv` for the cluster of this context; an error if the output has no line about
    /// it.
    pub(super) fn parse(stderr: &str, context: &str) -> Result<Requests> {
        let head = format!("{context}: ");
        let sum = stderr
            .lines()
            .find_map(|line| line.strip_prefix(&head).filter(|rest| rest.contains(" to connect (")))
            .with_context(|| {
                format!("the output of `taffrail -vv` has no line about the requests to {context}:\n{stderr}")
            })?;
        // `34 requests in 2 rounds, 61 KB, 67 ms, and 45 ms to connect (HTTP/2)`
        let numbers: Vec<u64> = sum.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let &[_, rounds, size, _, connecting] = numbers.as_slice() else {
            anyhow::bail!("the line about requests does not have the form of `taffrail -vv`: {sum}");
        };
        let request = format!("request{{cluster={context:?} method=GET path=\"");
        let path = |line: &str| Some(line.strip_prefix(&request)?.split_once('"')?.0.to_owned());
        Ok(Requests {
            rounds: usize::try_from(rounds)?,
            size: usize::try_from(size)?,
            connecting,
            paths: stderr.lines().filter_map(path).collect(),
        })
    }

    /// Returns the kinds that were listed more than once. Further pages of a list do not count, nor do lists by labels
    /// that exclude each other's objects.
    pub(super) fn listed_twice(&self) -> Vec<String> {
        let mut lists: BTreeMap<String, Vec<Option<&str>>> = BTreeMap::new();
        for path in &self.paths {
            if let Some(kind) = listed(path) {
                lists.entry(kind).or_default().push(selector(path));
            }
        }
        let is_twice = |selectors: &[Option<&str>]| {
            let distinct: BTreeSet<_> = selectors.iter().collect();
            selectors.len() > 1 && (distinct.len() < selectors.len() || selectors.contains(&None))
        };
        lists.into_iter().filter(|(_, selectors)| is_twice(selectors)).map(|(kind, _)| kind).collect()
    }
}

fn selector(path: &str) -> Option<&str> {
    path.split_once('?')?.1.split('&').find_map(|part| part.strip_prefix("labelSelector="))
}

/// Returns the kind that a request lists, such as `deployments.apps`, whatever its version and namespace; `None` for
/// other requests and further pages.
fn listed(path: &str) -> Option<String> {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    if query.split('&').any(|part| part.starts_with("continue=")) {
        return None;
    }
    let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    let (group, rest) = match parts.as_slice() {
        ["api", _version, rest @ ..] => (None, rest),
        ["apis", group, _version, rest @ ..] => (Some(*group), rest),
        _ => return None,
    };
    match (rest, group) {
        ([plural] | ["namespaces", _, plural], None) => Some((*plural).to_owned()),
        ([plural] | ["namespaces", _, plural], Some(group)) => Some(format!("{plural}.{group}")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STDERR: &str = "\
request{cluster=\"other\" method=GET path=\"/version\" attempt=1}: answered status=200 bytes=9 round=1 at=0ns took=1ms
request{cluster=\"kube-1\" method=GET path=\"/apis\" attempt=1}: answered status=200 bytes=9
request{cluster=\"kube-1\" method=GET path=\"/apis/apps/v1/deployments?limit=500\" attempt=1}: answered status=200
request{cluster=\"kube-1\" method=GET path=\"/apis/apps/v1/deployments?limit=500&continue=…\" attempt=1}: answered status=200
request{cluster=\"kube-1\" method=GET path=\"/api/v1/namespaces/kube-system\" attempt=1}: answered status=200
request{cluster=\"kube-1\" method=GET path=\"/apis/apps/v1/namespaces/a/deployments\" attempt=1}: not answered round=2
other: 1 requests in 1 rounds, 1 KB, 1 ms, and 1 ms to connect (HTTP/2)
kube-1: 5 requests in 2 rounds, 61 KB, 67 ms, and 45 ms to connect (HTTP/2)
kube-1: something else
";

    #[test]
    fn requests_of_one_cluster() {
        let requests = Requests::parse(STDERR, "kube-1").expect("it is there");
        assert_eq!((requests.rounds, requests.size, requests.connecting), (2, 61, 45));
        assert_eq!(requests.paths.len(), 5);
        assert_eq!(requests.listed_twice(), ["deployments.apps"]);
        assert!(Requests::parse(STDERR, "kube-2").is_err());
    }
}
