//! The pages to which a client subscribes.

use taffrail_api::filter::SortField;

use crate::http::problem::Refusal;
use crate::http::query::{Query, cut};
use crate::index::AppFilter;

/// The greatest number of subscriptions of a stream; a request for more is refused.
const MAX_SUBSCRIPTIONS: usize = 20;

/// The greatest number of rows of one page of a stream; a subscription with a greater `limit` is refused.
const MAX_ROWS: usize = 100;

/// The greatest sum of the `limit`s of all pages of a stream; a request for more is refused.
const MAX_ALL_ROWS: usize = 1_000;

/// The query parameters that a subscription to apps or to counts accepts; of counts, `sort` and `limit` have no effect.
const FILTERS: &[&str] = &[
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
];

/// A page to which a client of a stream subscribes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Subscription {
    pub(crate) name: String,
    pub(crate) view: SubscribedView,
}

/// The contents of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SubscribedView {
    /// The first `limit` apps that match the filter, in order (none for counts), and the numbers of all that match.
    Apps { filter: Box<AppFilter>, sort: Option<SortField>, limit: usize },
    /// The numbers of live, stale and lost clusters; no rows.
    Clusters,
    /// No rows: only the version of the fleet, whenever an app or cluster changed.
    Changes,
}

impl Subscription {
    /// Parses the query of a stream: `subscribe=NAME:VIEW?QUERY`, once for each page. Refuses a malformed page, none
    /// and more than 20 pages, equal names, and more than 100 rows in a page or 1,000 in all.
    pub(crate) fn read_all(query: &str) -> Result<Vec<Subscription>, Refusal> {
        let mut found: Vec<Subscription> = Vec::new();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            if name != "subscribe" {
                let unknown = Refusal::parameter(&cut(&name), "the path has no such parameter");
                return Err(unknown.hint("this path of the hub has only the parameter 'subscribe'"));
            }
            let read = Subscription::read(&value)?;
            if found.iter().any(|other| other.name == read.name) {
                return Err(wrong(format!("the name '{}' is given twice", read.name)));
            }
            found.push(read);
        }
        let rows: usize = found.iter().map(Subscription::rows).sum();
        match found.len() {
            0 => Err(wrong("the query has no subscription")
                .hint("write for example subscribe=NAME:apps?status=Failed")),
            1..=MAX_SUBSCRIPTIONS if rows <= MAX_ALL_ROWS => Ok(found),
            1..=MAX_SUBSCRIPTIONS => {
                Err(wrong(format!("the subscriptions ask for more than {MAX_ALL_ROWS} rows together")))
            }
            _ => Err(wrong(format!("the query has more than {MAX_SUBSCRIPTIONS} subscriptions"))),
        }
    }

    fn read(text: &str) -> Result<Subscription, Refusal> {
        let form = || wrong(format!("'{}' is not NAME:VIEW?QUERY", cut(text)));
        let (name, view) = text.split_once(':').ok_or_else(form)?;
        let is_name = |name: &str| {
            let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
            (1..=32).contains(&name.len()) && name.bytes().all(allowed)
        };
        if !is_name(name) {
            return Err(wrong(format!("'{}' is not a name of up to 32 letters, digits, - and _", cut(name))));
        }
        let (view, query) = view.split_once('?').unwrap_or((view, ""));
        let view = match view {
            "clusters" => {
                Query::read(query, &[])?;
                SubscribedView::Clusters
            }
            "changes" => {
                Query::read(query, &[])?;
                SubscribedView::Changes
            }
            "apps" => {
                let Query { filter, sort, limit, .. } = Query::read(query, FILTERS)?;
                if limit > MAX_ROWS {
                    return Err(wrong(format!("the page '{name}' has more than {MAX_ROWS} rows")));
                }
                SubscribedView::Apps { filter: Box::new(filter), sort, limit }
            }
            "counts" => {
                let Query { filter, .. } = Query::read(query, FILTERS)?;
                SubscribedView::Apps { filter: Box::new(filter), sort: None, limit: 0 }
            }
            _ => {
                return Err(wrong(format!(
                    "there is no view '{}': there are apps, counts, clusters, changes",
                    cut(view)
                )));
            }
        };
        Ok(Subscription { name: name.to_owned(), view })
    }

    fn rows(&self) -> usize {
        match self.view {
            SubscribedView::Apps { limit, .. } => limit,
            SubscribedView::Clusters | SubscribedView::Changes => 0,
        }
    }
}

fn wrong(why: impl Into<String>) -> Refusal {
    Refusal::parameter("subscribe", why.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::endpoint::ENDPOINTS;

    fn read(query: &str) -> Result<Vec<Subscription>, String> {
        Subscription::read_all(query).map_err(|refusal| refusal.0.detail)
    }

    #[test]
    fn subscriptions_take_the_filters_of_the_list_of_apps() {
        let apps = ENDPOINTS.iter().find(|endpoint| endpoint.path == "/api/v1/apps").unwrap();
        let of_lists_alone = ["cursor", "fields", "group-by", "at"];
        let filters: Vec<&str> =
            apps.parameters.iter().copied().filter(|name| !of_lists_alone.contains(name)).collect();
        assert_eq!(filters, FILTERS);
    }

    #[test]
    fn subscriptions_have_a_name_a_view_and_a_filter() {
        let found = read(
            "subscribe=bad:apps%3Fstatus%3DFailed%26limit%3D7&subscribe=all:counts&subscribe=c:clusters",
        )
        .unwrap();
        let filter = AppFilter { status: Some("Failed".parse().unwrap()), ..AppFilter::default() };
        let apps = SubscribedView::Apps { filter: Box::new(filter), sort: None, limit: 7 };
        assert_eq!(found[0], Subscription { name: "bad".to_owned(), view: apps });
        assert_eq!(found.iter().map(Subscription::rows).collect::<Vec<_>>(), [7, 0, 0]);
    }

    #[test]
    fn wrong_subscriptions_are_refused_with_the_reason() {
        let many: Vec<String> = (0..21).map(|number| format!("subscribe=n{number}:counts")).collect();
        let full: Vec<String> = (0..11).map(|number| format!("subscribe=n{number}:apps?limit=100")).collect();
        for (query, why) in [
            ("", "the query has no subscription"),
            ("subscribe=a", "'a' is not NAME:VIEW?QUERY"),
            ("subscribe=a:trees", "there is no view 'trees': there are apps, counts, clusters, changes"),
            ("subscribe=a%20b:apps", "'a b' is not a name of up to 32 letters, digits, - and _"),
            ("subscribe=a:apps&subscribe=a:counts", "the name 'a' is given twice"),
            ("subscribe=a:apps?limit%3D101", "the page 'a' has more than 100 rows"),
            (&many.join("&"), "the query has more than 20 subscriptions"),
            (&full.join("&"), "the subscriptions ask for more than 1000 rows together"),
        ] {
            assert_eq!(read(query), Err(format!("parameter 'subscribe': {why}")), "{query}");
        }
        assert!(read("subscribe=a:apps?cursor%3Dx").unwrap_err().contains("no such parameter"));
    }
}
