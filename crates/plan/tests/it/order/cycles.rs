//! Rules of kapp that contradict each other, and graphs at random.

use taffrail_plan::order::{Dialect, OrderError, Task};

use super::kapp::{GROUP, RULE, live};
use super::{manifest, ordered, set};

fn job(name: &str, rule: &str) -> String {
    manifest("batch/v1", "Job", name, &[(GROUP, &format!("g/{name}")), (RULE, rule)])
}

#[track_caller]
fn assert_circle(manifests: &[String], expected: &[&str]) {
    let errors = ordered(&set(&manifests.concat()), &[], Dialect::Kapp, &[]).unwrap_err();
    let [OrderError::Circle(edges)] = &errors[..] else { panic!("{errors:?}") };
    assert_eq!(edges.iter().map(ToString::to_string).collect::<Vec<_>>(), expected);
}

#[test]
fn circles_of_stated_rules_name_each_line() {
    let direct = [job("a", "upsert after upserting g/b"), job("b", "upsert after upserting g/a")];
    let told = [
        "deploy/all.yaml:7: batch/Job/shop/a comes after batch/Job/shop/b",
        "deploy/all.yaml:15: batch/Job/shop/b comes after batch/Job/shop/a",
    ];
    assert_circle(&direct, &told);
    // A rule with `before` stands on the object that comes first.
    let before = [job("a", "upsert before upserting g/b"), job("b", "upsert before upserting g/a")];
    let told = [
        "deploy/all.yaml:15: batch/Job/shop/a comes after batch/Job/shop/b",
        "deploy/all.yaml:7: batch/Job/shop/b comes after batch/Job/shop/a",
    ];
    assert_circle(&before, &told);
    let long = [
        job("a", "upsert after upserting g/c"),
        job("b", "upsert after upserting g/a"),
        job("c", "upsert after upserting g/b"),
        job("outside", "upsert after upserting g/a"),
    ];
    let told = [
        "deploy/all.yaml:7: batch/Job/shop/a comes after batch/Job/shop/c",
        "deploy/all.yaml:15: batch/Job/shop/b comes after batch/Job/shop/a",
        "deploy/all.yaml:23: batch/Job/shop/c comes after batch/Job/shop/b",
    ];
    assert_circle(&long, &told);
    assert_circle(
        &[job("a", "upsert before upserting g/a")],
        &["deploy/all.yaml:7: batch/Job/shop/a comes after batch/Job/shop/a"],
    );
}

#[test]
fn a_circle_through_a_deletion_is_one_too() {
    let first = [job("a", "upsert after deleting g/old"), job("b", "upsert before deleting g/old")];
    let after = manifest("batch/v1", "Job", "c", &[(GROUP, "g/b2"), (RULE, "upsert before deleting g/old")]);
    let old = live("batch/v1", "Job", "shop", "old", &[(GROUP, "g/old")]);
    let pruned = [old];
    let order = ordered(&set(&(first.concat() + &after)), &pruned, Dialect::Kapp, &[]).unwrap();
    assert_eq!(order.steps.len(), 3);
    let both = manifest(
        "batch/v1",
        "Job",
        "d",
        &[
            (RULE, "upsert after deleting g/old"),
            ("kapp.k14s.io/change-rule.x", "upsert before deleting g/old"),
        ],
    );
    let errors = ordered(&set(&both), &pruned, Dialect::Kapp, &[]).unwrap_err();
    assert!(matches!(&errors[..], [OrderError::Circle(edges)] if edges.len() == 2), "{errors:?}");
}

#[test]
fn a_rule_of_a_live_object_gives_way() {
    // Nobody can mend the live object in the manifests.
    let text = job("new", "upsert before deleting g/old");
    let stated = [(GROUP, "g/old"), (RULE, "delete before upserting g/new")];
    let pruned = [live("batch/v1", "Job", "shop", "old", &stated)];
    let order = ordered(&set(&text), &pruned, Dialect::Kapp, &[]).unwrap();
    let tasks: Vec<Task> =
        order.steps.iter().flat_map(|step| step.batches.iter().flatten()).copied().collect();
    assert_eq!(tasks, [Task::Apply(0), Task::Prune(0)]);
    // Two live ones against each other are deleted together, or one after another, but deleted.
    let against = |name: &str, other: &str| {
        let (group, rule) = (format!("g/{name}"), format!("delete after deleting g/{other}"));
        live("batch/v1", "Job", "shop", name, &[(GROUP, &group), (RULE, &rule)])
    };
    let pruned = [against("a", "b"), against("b", "a")];
    let order = ordered(&set(""), &pruned, Dialect::Kapp, &[]).unwrap();
    assert_eq!(order.steps.iter().flat_map(|step| step.batches.iter().flatten()).count(), 2);
}

#[test]
fn a_namespace_may_state_to_come_after_what_is_in_it() {
    let manifests = [
        manifest("v1", "Namespace", "shop", &[(RULE, "upsert after upserting g/a")]),
        manifest("v1", "ConfigMap", "a", &[(GROUP, "g/a")]),
    ];
    let order = ordered(&set(&manifests.concat()), &[], Dialect::Kapp, &[]).unwrap();
    assert_eq!(order.steps.len(), 2);
    assert_eq!(order.after, [vec![1], vec![]]);
}

#[test]
fn rules_about_too_many_pairs_are_an_error() {
    let all: String = (0..600)
        .map(|at| {
            let stated: &[(&str, &str)] =
                if at % 2 == 0 { &[(GROUP, "g")] } else { &[(RULE, "upsert after upserting g")] };
            manifest("v1", "Secret", &format!("s-{at}"), stated)
        })
        .collect();
    // 300 times 300 pairs are few enough.
    assert_eq!(ordered(&set(&all), &[], Dialect::Kapp, &[]).unwrap().steps.len(), 2);
    let more = all.repeat(2);
    let mut names = 0;
    let more: String = more
        .lines()
        .map(|line| match line.strip_prefix("  name: s-") {
            Some(_) => {
                names += 1;
                format!("  name: s-{names}\n")
            }
            None => format!("{line}\n"),
        })
        .collect();
    let errors = ordered(&set(&more), &[], Dialect::Kapp, &[]).unwrap_err();
    assert_eq!(errors, [OrderError::TooManyPairs]);
}

#[test]
fn many_objects_under_own_rules_are_ordered_in_time() {
    // Each of 10,000 comes after each of 10,000 others: 100 million pairs.
    let all: String = (0..20_000)
        .map(|at| {
            let kind = if at % 2 == 0 { "ConfigMap" } else { "Service" };
            manifest("v1", kind, &format!("a-{at}"), &[])
        })
        .collect();
    let set = set(&all);
    let began = std::time::Instant::now();
    let order = ordered(&set, &[], Dialect::Kapp, &[]).unwrap();
    assert!(began.elapsed().as_secs() < 10, "{:?}", began.elapsed());
    assert_eq!(order.steps.iter().map(|step| step.batches[0].len()).collect::<Vec<_>>(), [10_000, 10_000]);
}

#[test]
fn many_objects_that_wish_to_follow_each_other_are_ordered_in_time() {
    let all: String = (0..5_000)
        .map(|at| {
            let own = [(GROUP, "change-groups.kapp.k14s.io/pod-related")];
            manifest("v1", "Service", &format!("a-{at}"), &own)
        })
        .collect();
    let set = set(&all);
    let began = std::time::Instant::now();
    let order = ordered(&set, &[], Dialect::Kapp, &[]).unwrap();
    assert!(began.elapsed().as_secs() < 10, "{:?}", began.elapsed());
    assert_eq!(order.steps.iter().map(|step| step.batches[0].len()).sum::<usize>(), 5_000);
}

#[test]
fn random_sets_end_and_keep_every_stated_edge() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut circles, mut orders) = (0, 0);
    for _ in 0..300 {
        let kinds = [
            ("v1", "ConfigMap"),
            ("apps/v1", "Deployment"),
            ("v1", "Namespace"),
            ("example.com/v1", "Widget"),
        ];
        let rules = [
            "upsert after upserting",
            "upsert before upserting",
            "upsert after deleting",
            "upsert before deleting",
            "delete after upserting",
            "delete before upserting",
            "delete after deleting",
        ];
        let group = |random: &mut fastrand::Rng| format!("g/{}", random.u8(..5));
        let stated = |random: &mut fastrand::Rng| {
            let rule = format!("{} {}", rules[random.usize(..rules.len())], group(random));
            match random.u8(..3) {
                0 => vec![(GROUP, group(random))],
                1 => vec![(RULE, rule)],
                _ => vec![(GROUP, group(random)), (RULE, rule)],
            }
        };
        let (count, gone) = (random.usize(1..10), random.usize(..6));
        let mut text = String::new();
        let mut declared = Vec::new();
        for at in 0..count {
            let (version, kind) = kinds[random.usize(..kinds.len())];
            let own = stated(&mut random);
            let borrowed: Vec<(&str, &str)> = own.iter().map(|(key, value)| (*key, &**value)).collect();
            text += &manifest(version, kind, &format!("o-{at}"), &borrowed);
            declared.push(own);
        }
        let mut pruned = Vec::new();
        let mut groups_of_pruned = Vec::new();
        for at in 0..gone {
            let (version, kind) = kinds[random.usize(..kinds.len())];
            let own = stated(&mut random);
            let borrowed: Vec<(&str, &str)> = own.iter().map(|(key, value)| (*key, &**value)).collect();
            pruned.push(live(version, kind, "shop", &format!("p-{at}"), &borrowed));
            groups_of_pruned.push(own);
        }
        let set = set(&text);
        let order = match ordered(&set, &pruned, Dialect::Kapp, &[]) {
            Ok(order) => order,
            Err(errors) => {
                assert!(errors.iter().all(|it| matches!(it, OrderError::Circle(edges) if !edges.is_empty())));
                circles += 1;
                continue;
            }
        };
        orders += 1;
        let step_of = |task: Task| {
            let has = |step: &&_| {
                let step: &taffrail_plan::order::SyncStep = step;
                step.batches.iter().flatten().filter(|it| **it == task).count() == 1
            };
            let steps: Vec<usize> =
                order.steps.iter().enumerate().filter(|(_, step)| has(step)).map(|(at, _)| at).collect();
            assert_eq!(steps.len(), 1, "{task:?} {text}");
            steps[0]
        };
        let members = |own: &[Vec<(&str, String)>], group: &str| -> Vec<usize> {
            let is_in =
                |own: &Vec<(&str, String)>| own.iter().any(|(key, value)| *key == GROUP && value == group);
            (0..own.len()).filter(|at| is_in(&own[*at])).collect()
        };
        for (at, own) in declared.iter().enumerate() {
            for (_, rule) in own.iter().filter(|(key, _)| *key == RULE) {
                let words: Vec<&str> = rule.split(' ').collect();
                let [action, when, target, group] = words[..] else { panic!("{rule}") };
                if action == "delete" {
                    continue;
                }
                let others: Vec<Task> = match target {
                    "upserting" => members(&declared, group).into_iter().map(Task::Apply).collect(),
                    _ => members(&groups_of_pruned, group).into_iter().map(Task::Prune).collect(),
                };
                for other in others {
                    let (own, other) = (step_of(Task::Apply(at)), step_of(other));
                    assert!(
                        if when == "before" { own < other } else { other < own },
                        "{rule} on {at}: {text}"
                    );
                }
            }
        }
        // What is said to come first stands in an earlier step.
        for (at, firsts) in order.after.iter().enumerate() {
            assert!(
                firsts.iter().all(|first| step_of(Task::Apply(*first)) < step_of(Task::Apply(at))),
                "{text}"
            );
        }
        for (at, firsts) in order.pruned_after.iter().enumerate() {
            assert!(
                firsts.iter().all(|first| step_of(Task::Prune(*first)) < step_of(Task::Prune(at))),
                "{text}"
            );
        }
        assert!(order.across.iter().all(|pair| step_of(pair.first) < step_of(pair.later)), "{text}");
    }
    println!("{orders} ordered, {circles} in circles");
    assert!(orders > 50 && circles > 5);
}
