//! Answers as JSON, read back: nothing of a view is lost on a wire.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;
use taffrail_api::report::{ClusterView, HeldHalf, halves, join};
use taffrail_api::{
    AppDetailList, AppRow, ClusterList, EventList, Explanation, ExplanationList, List, ResourceList,
    TreeList, TreeOptions, TrustReport,
};
use taffrail_apps::trust::TrustShape;
use taffrail_apps::{App, ClusterId, Objects, Scope, apps};
use taffrail_status::ActiveRules;

use super::dump::NOW;
use super::golden::clusters;

fn comes_back<T: Serialize + DeserializeOwned + PartialEq + Debug>(view: &T) {
    let text = serde_json::to_string(view).unwrap();
    assert_eq!(serde_json::from_str::<T>(&text).unwrap(), *view);
}

fn views_come_back(case: &Path) {
    let snapshots = clusters(case);
    let clusters: Vec<&dyn Objects> = snapshots.iter().map(|snapshot| snapshot as &dyn Objects).collect();
    let rules = ActiveRules::default();
    let list = apps(&clusters, &rules, NOW);
    let asked: Vec<&App> = list.apps.iter().collect();
    comes_back(&List::<AppRow>::from(&list));
    comes_back(&ClusterList::new(&clusters, &list));
    comes_back(&ResourceList::from(&list));
    comes_back(&AppDetailList::new(&asked, &list, &clusters, &rules, NOW));
    comes_back(&TreeList::new(&asked, &list, &clusters, &rules, NOW, TreeOptions::default()));
    let events = EventList::new(&asked, &list, &clusters, &rules, NOW, None);
    comes_back(&events);
    comes_back(&events.together());
    let trust = TrustReport::new(&asked, &list, &clusters, NOW, TrustShape::default());
    comes_back(&trust);
    comes_back(&trust.together());
    let explained = asked.iter().map(|app| Explanation::new(app, None)).collect();
    comes_back(&ExplanationList::of(explained, &list.errors));
    list.apps.iter().for_each(|app| halves_come_back(app, &clusters));
}

/// A row that is split into the halves of a report, and put together by a hub, is the row of the direct answer.
fn halves_come_back(app: &App, clusters: &[&dyn Objects]) {
    let id = |name: &str| ClusterId(format!("id of {name}"));
    let (of, declared, observed) = halves(app, id, BTreeMap::new(), NOW);
    comes_back(&declared);
    comes_back(&observed);
    let view = |name| {
        let objects = clusters.iter().find(|objects| objects.name() == name).unwrap();
        let silence = objects.errors().iter().find(|error| error.scope == Scope::Cluster);
        let silence = silence.map(|error| &*error.message);
        ClusterView { name: objects.name(), is_live: objects.freshness().is_live(), silence }
    };
    let (home, target) = (view(&*app.app.home), view(&*app.app.target));
    let declared = HeldHalf { body: &declared, freshness: app.home_freshness, cluster: home };
    let observed = HeldHalf { body: &observed, freshness: app.freshness, cluster: target };
    assert_eq!(join(&of, declared, Some(observed), target, None, |id| Some(id.0.clone())), AppRow::from(app));
}

mod apps {
    golden_apps!(super::views_come_back);
}
