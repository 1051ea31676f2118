//! Answers as JSON, read back: nothing of a view is lost on a wire.

use std::fmt::Debug;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;
use taffrail_api::{
    AppDetailList, AppRow, ClusterList, EventList, Explanation, ExplanationList, List, ResourceList,
    TreeList, TreeOptions, TrustReport,
};
use taffrail_apps::trust::TrustShape;
use taffrail_apps::{App, Objects, apps};
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
    let events = EventList::new(&asked, &list, &clusters, &rules, NOW);
    comes_back(&events);
    comes_back(&events.together());
    let trust = TrustReport::new(&asked, &list, &clusters, NOW, TrustShape::default());
    comes_back(&trust);
    comes_back(&trust.together());
    let explained = asked.iter().map(|app| Explanation::new(app, None)).collect();
    comes_back(&ExplanationList::of(explained, &list.errors));
}

mod apps {
    golden_apps!(super::views_come_back);
}
