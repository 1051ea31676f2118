//! Reasons to doubt the green status of apps that were named.

use std::collections::HashMap;

use jiff::Timestamp;
use taffrail_apps::trust::TrustShape;
use taffrail_apps::{App, AppKey, AppList, AppRef, Objects};

use super::Subject;
use crate::TrustReport;

/// Maximum number of apps of one name in a cluster that get a report; the others are only counted. Each report scans
/// the whole cluster, and a tenant may give any number of apps the same name.
const MAX_REPORTS: usize = 100;

/// Returns, for each subject, a trust report with only the disagreements about the green app, and the number of apps
/// that got none because [`MAX_REPORTS`] of the same name in a cluster had one; `None` for these and for objects. With
/// `contexts`, commands name the context.
pub(super) fn each(
    subjects: &[Subject<'_>],
    list: &AppList,
    clusters: &[&dyn Objects],
    now: Timestamp,
    contexts: bool,
) -> (Vec<Option<TrustReport>>, usize) {
    let mut rows: HashMap<&AppRef, Vec<&App>> = HashMap::new();
    for app in &list.apps {
        rows.entry(&app.app).or_default().push(app);
    }
    let mut counts: HashMap<(&str, &AppKey), usize> = HashMap::new();
    let mut left = 0_usize;
    let mut selections: Vec<Vec<&App>> = Vec::new();
    let mut places: Vec<bool> = Vec::with_capacity(subjects.len());
    for subject in subjects {
        // An object has no green status of an app.
        let rows = rows.get(&subject.app.app).filter(|_| subject.belonging.is_none());
        let count = counts.entry((&subject.app.app.target, &subject.app.key)).or_default();
        *count += usize::from(rows.is_some());
        let told = rows.filter(|_| *count <= MAX_REPORTS);
        left += usize::from(rows.is_some() && told.is_none());
        places.push(told.is_some());
        selections.extend(told.cloned());
    }
    let shape = TrustShape { only_apps: true, contexts, contradictions: true };
    let mut reports = TrustReport::each(&selections, list, clusters, now, shape).into_iter();
    (places.into_iter().map(|is_told| if is_told { reports.next() } else { None }).collect(), left)
}
