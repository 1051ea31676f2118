//! Messages and chains about one object are stored once, and shown in full only a few times.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::{Value, json};
use taffrail_api::{
    ErrorRow, Explanation, ExplanationList, WaitChange, WaitSummary, explained_together, told_in_few,
};
use taffrail_apps::wait::{Options, Seen, Target, Wait};
use taffrail_apps::{AppList, Resource};
use taffrail_object::ObjectKey;
use taffrail_status::{ActiveRules, MAX_MESSAGE};

use super::dump::{NOW, apps_of, holding};

/// Number of apps with the same cause.
const MANY: usize = 200;

/// Number of objects in the chain to the cause.
const LONG: usize = 12;

fn custom(name: &str, names: &str, says: &str) -> Value {
    let names = json!({"apiVersion": "example.org/v1", "kind": "Custom", "name": names});
    json!({"apiVersion": "example.org/v1", "kind": "Custom", "metadata": {"namespace": "aaa", "name": name},
        "spec": {"resourceRef": names},
        "status": {"conditions": [{"type": "Ready", "status": "False", "reason": "Waits", "message": says}]}})
}

/// Returns objects that each refer to the next, with long messages.
fn chain() -> Vec<Value> {
    let says = |at: usize| format!("{at} {}", "waits ".repeat(600));
    (0..LONG).map(|at| custom(&format!("c{at}"), &format!("c{}", at + 1), &says(at))).collect()
}

fn lists(name: &str, object: &str) -> Value {
    json!({"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
        "metadata": {"namespace": "aaa", "name": name},
        "status": {"inventory": {"entries": [{"id": format!("aaa_{object}_example.org_Custom"), "v": "v1"}]}}})
}

/// Returns this number of apps that list the first object of the chain.
fn one_object_in(apps: usize) -> Vec<Value> {
    chain().into_iter().chain((0..apps).map(|at| lists(&format!("k{at}"), "c0"))).collect()
}

/// Returns many apps that each list an object of their own that leads to the chain.
fn many_objects() -> Vec<Value> {
    let own = |at: usize| {
        [
            custom(&format!("own{at}"), "c0", &format!("waits {at}")),
            lists(&format!("k{at}"), &format!("own{at}")),
        ]
    };
    chain().into_iter().chain((0..MANY).flat_map(own)).collect()
}

fn size(objects: &[Value]) -> usize {
    objects.iter().map(|object| object.to_string().len()).sum()
}

/// The allocations of the texts that are kept.
#[derive(Default)]
struct Kept(HashMap<*const u8, usize>);

impl Kept {
    fn text(&mut self, text: &str) {
        self.0.insert(text.as_ptr(), text.len());
    }

    fn object(&mut self, object: &Resource) {
        self.text(&object.message);
        for link in &object.chain {
            self.text(&link.message);
            link.facts.iter().for_each(|fact| self.text(fact));
        }
    }

    fn list(&mut self, list: &AppList) {
        for app in &list.apps {
            self.text(&app.message);
            app.problems.iter().for_each(|problem| self.text(&problem.message));
            app.resources.iter().chain(&app.speaker).for_each(|object| self.object(object));
        }
    }

    fn size(&self) -> usize {
        self.0.values().sum()
    }
}

fn explained(list: &AppList) -> Vec<Explanation> {
    let explained = list.apps.iter().map(|app| (app, Explanation::new(app, None))).collect();
    let mut told: Vec<Explanation> = explained_together(explained).into_iter().map(|(_, it)| it).collect();
    told_in_few(&mut told);
    told
}

#[test]
fn memory_for_an_object_does_not_grow_with_the_apps_that_list_it() {
    for objects in [one_object_in(MANY), many_objects()] {
        let list = apps_of(&holding("cluster", &objects));
        assert_eq!(list.apps.len(), MANY);
        assert!(list.apps.iter().all(|app| app.speaker.as_ref().unwrap().chain.len() >= LONG));
        let mut kept = Kept::default();
        kept.list(&list);
        assert!(kept.size() < 3 * size(&objects), "{} of {}", kept.size(), size(&objects));
        // Rows and explanations are of the same texts.
        let rows = taffrail_api::List::<taffrail_api::AppRow>::from(&list);
        let of_objects = taffrail_api::ResourceList::from(&list);
        for row in &rows.items {
            kept.text(&row.message);
            row.problem.iter().for_each(|problem| kept.text(&problem.message));
        }
        of_objects.items.iter().for_each(|row| kept.text(&row.message));
        let explanations = explained(&list);
        for explanation in &explanations {
            kept.text(&explanation.message);
            explanation.problems.iter().for_each(|problem| kept.text(&problem.message));
            for link in &explanation.chain {
                kept.text(&link.message);
                link.facts.iter().for_each(|fact| kept.text(fact));
            }
        }
        assert!(kept.size() < 4 * size(&objects), "{} of {}", kept.size(), size(&objects));
    }
}

#[test]
fn json_shows_a_shared_cause_in_full_only_a_few_times() {
    for objects in [one_object_in(MANY), many_objects()] {
        let list = apps_of(&holding("cluster", &objects));
        let told = explained(&list);
        assert_eq!(told.len(), MANY);
        let last = told.last().unwrap();
        // Where it begins and the cause stay.
        let [first, cause] = last.chain.as_slice() else { panic!("{} links", last.chain.len()) };
        assert_eq!(first.object.name, list.apps.last().unwrap().resources[0].key.name);
        assert_eq!(cause.object.name, format!("c{}", LONG - 1));
        assert!(cause.message.starts_with("11 waits waits") && cause.message.len() < 300);
        let fact = cause.facts.last().unwrap();
        let hidden = told[0].chain.len() - 2;
        let wanted = format!(
            "its full text, and {hidden} objects on the way to it, are shown at flux-kustomization aaa/k"
        );
        assert!(fact.starts_with(&wanted), "{fact}");
        let answer = serde_json::to_string(&ExplanationList::of(told, Vec::<ErrorRow>::new())).unwrap();
        let most = 20 * size(&chain()) + MANY * (2 * MAX_MESSAGE + 4_000);
        assert!(answer.len() < most, "{} of {most}", answer.len());
        let rows = serde_json::to_string(&taffrail_api::List::<taffrail_api::AppRow>::from(&list)).unwrap();
        assert!(rows.len() < MANY * (2 * MAX_MESSAGE + 2_000), "{}", rows.len());
    }
}

#[test]
fn a_few_apps_with_a_shared_cause_each_show_it_in_full() {
    let list = apps_of(&holding("cluster", &one_object_in(5)));
    let told = explained(&list);
    assert_eq!(told.len(), 5);
    for (own, app) in told.iter().zip(&list.apps) {
        let links: Vec<_> = own.chain.iter().map(|link| (&*link.message, &link.facts)).collect();
        let known = app.speaker.as_ref().unwrap().chain.iter();
        assert_eq!(links, known.map(|link| (&*link.message, &link.facts)).collect::<Vec<_>>());
        assert!(links.len() >= LONG);
    }
}

#[test]
fn the_wait_summary_shows_a_shared_cause_in_full_only_a_few_times() {
    let mut kept = Kept::default();
    let mut objects = many_objects();
    let ids = (0..MANY).map(|at| json!({"id": format!("aaa_own{at}_example.org_Custom"), "v": "v1"}));
    let mut all = lists("all", "c0");
    all["status"]["inventory"]["entries"] = ids.collect();
    objects.push(all);
    let cluster = holding("cluster", &objects);
    let key = ObjectKey::new("kustomize.toolkit.fluxcd.io", "Kustomization", "aaa", "all");
    let targets = [Target::Inventory(key)];
    let deadline = Duration::from_secs(9);
    let options = Options { stable_for: Duration::ZERO, fail_fast: false, deadline };
    let mut wait = Wait::new("current".parse().unwrap(), options, Vec::new());
    wait.learn(0, &cluster, &targets);
    let seen = Seen { snapshot: &cluster, targets: &targets, is_settled: true, is_lost: false };
    wait.look(&[seen], || apps_of(&cluster), &ActiveRules::default(), NOW, deadline);
    let end = wait.end(deadline).unwrap();
    for row in wait.rows() {
        kept.text(&row.judgement.message);
        row.judgement.chain.iter().for_each(|link| kept.text(&link.message));
    }
    assert!(kept.size() < 3 * size(&objects), "{} of {}", kept.size(), size(&objects));
    let items: Vec<_> = wait.rows().map(|row| WaitChange::new(row, NOW, None)).collect();
    assert!(items.len() >= MANY);
    let summary = WaitSummary::new(wait.until(), end, deadline, items, NOW);
    let answer = serde_json::to_string(&summary).unwrap();
    let most = 20 * size(&chain()) + summary.targets * (MAX_MESSAGE + 4_000);
    assert!(answer.len() < most, "{} of {most}", answer.len());
}
