//! Runs of syncs: what is done in which order, what stops it, and what becomes of a run that is killed.

mod world;

use std::collections::BTreeSet;

use jiff::SignedDuration;
use taffrail_plan::manifests::DeclaredSet;
use taffrail_plan::order::Dialect;
use taffrail_plan::sync::{RunAction, RunEnd, RunPolicy, SyncRun, TaskState};

use crate::order::{HOOK, WAVE, manifest, set};
use world::{Driver, Live, World, begin, policy};

const DELETE_POLICY: &str = "argocd.argoproj.io/hook-delete-policy";

fn job(name: &str, phase: &str) -> String {
    manifest("batch/v1", "Job", name, &[(HOOK, phase)])
}

fn config(name: &str) -> String {
    manifest("v1", "ConfigMap", name, &[])
}

fn in_wave(name: &str, wave: &str) -> String {
    manifest("v1", "ConfigMap", name, &[(WAVE, wave)])
}

fn texts(parts: &[String]) -> DeclaredSet {
    set(&parts.concat())
}

/// Drives a set to its end by Argo CD's rules.
fn drive(world: &World, set: &DeclaredSet, pruned: &[(&str, i64)]) -> (RunEnd, SyncRun, Vec<String>) {
    let run = begin(world, set, pruned, Dialect::Argo, &policy(Dialect::Argo));
    let mut driver = Driver::new(world, &run);
    let (end, _) = driver.drive(None);
    (end, driver.run(), driver.waited_for)
}

fn state<'r>(run: &'r SyncRun, name: &str) -> &'r TaskState {
    &run.tasks.iter().find(|task| task.key.name == name).unwrap().state
}

fn failed(message: &str) -> RunEnd {
    RunEnd::Failed(message.to_owned())
}

#[test]
fn a_wave_begins_when_the_one_before_is_ready() {
    let world = World::new();
    let set = texts(&[
        in_wave("b", "1"),
        in_wave("a", "-1"),
        config("m"),
        job("pre", "PreSync"),
        job("post", "PostSync"),
    ]);
    let (end, _, waited_for) = drive(&world, &set, &[]);
    assert_eq!(end, RunEnd::Succeeded);
    assert_eq!(world.written(), ["hook pre", "create a", "create m", "create b", "hook post"]);
    assert_eq!(waited_for[..2], ["pre: it is being made", "a: it is being made"]);
    assert!(world.objects.borrow().values().all(|live| !live.has_finalizer), "hooks are released");
}

#[test]
fn a_single_wave_waits_for_health_unless_told_otherwise() {
    let set = texts(&[config("a")]);
    let mut world = World::new();
    world.failing.insert("a".to_owned());
    let (end, ..) = drive(&world, &set, &[]);
    assert_eq!(end, failed("ConfigMap shop/a: it broke"));
    let world = World { failing: BTreeSet::from(["a".to_owned()]), ..World::new() };
    let policy = RunPolicy { waits_at_end: false, ..policy(Dialect::Argo) };
    let run = begin(&world, &set, &[], Dialect::Argo, &policy);
    assert_eq!(Driver::new(&world, &run).drive(None).0, RunEnd::Succeeded);
}

#[test]
fn objects_that_are_as_declared_are_not_sent() {
    let world = World::new();
    let uid = world.add("a");
    let set = texts(&[config("a"), config("b")]);
    let (end, run, _) = drive(&world, &set, &[]);
    assert_eq!((end, world.written()), (RunEnd::Succeeded, vec!["create b".to_owned()]));
    assert!(matches!(state(&run, "a"), TaskState::Ready { uid: live, .. } if *live == uid));
    let run = begin(&world, &set, &[], Dialect::Argo, &policy(Dialect::Argo));
    let mut driver = Driver::new(&world, &run);
    assert_eq!(driver.drive(None).0, RunEnd::Succeeded);
    assert!(driver.saves <= 2, "an unchanged set writes its record {} times", driver.saves);
}

#[test]
fn a_failure_ends_the_run_after_its_step_and_runs_the_hooks_for_it() {
    let mut world = World::new();
    world.refused.insert("bad".to_owned());
    world.failing.insert("alarm".to_owned());
    let set = texts(&[
        config("bad"),
        config("good"),
        in_wave("later", "1"),
        job("alarm", "SyncFail"),
        job("tidy", "SyncFail"),
        job("post", "PostSync"),
    ]);
    let (end, run, _) = drive(&world, &set, &[]);
    assert_eq!(end, failed("ConfigMap shop/bad: the server refused it; Job shop/alarm: it broke"));
    assert_eq!(world.written(), ["create good", "hook alarm", "hook tidy"]);
    let skipped = TaskState::Skipped { message: "the run ended before its turn".to_owned() };
    assert_eq!((state(&run, "later"), state(&run, "post")), (&skipped, &skipped));
}

#[test]
fn hooks_for_failures_do_not_run_when_all_succeeds() {
    let world = World::new();
    let (end, ..) = drive(&world, &texts(&[config("a"), job("alarm", "SyncFail")]), &[]);
    assert_eq!((end, world.written()), (RunEnd::Succeeded, vec!["create a".to_owned()]));
}

#[test]
fn a_failing_hook_runs_the_hooks_for_failures() {
    let mut world = World::new();
    world.failing.insert("pre".to_owned());
    let (end, ..) =
        drive(&world, &texts(&[job("pre", "PreSync"), config("a"), job("alarm", "SyncFail")]), &[]);
    assert_eq!(
        (end, world.written()),
        (failed("Job shop/pre: it broke"), vec!["hook pre".to_owned(), "hook alarm".to_owned()])
    );
}

/// Returns the names of the hooks that are left after a run of one hook that succeeds and, if `fails`, one that fails.
fn left(policy: &str, fails: bool) -> Vec<String> {
    let mut world = World::new();
    if fails {
        world.failing.insert("two".to_owned());
    }
    let hook = |name: &str, wave: &str| {
        manifest("batch/v1", "Job", name, &[(HOOK, "PreSync"), (DELETE_POLICY, policy), (WAVE, wave)])
    };
    drive(&world, &texts(&[hook("one", "0"), hook("two", "1")]), &[]);
    assert!(world.objects.borrow().values().all(|live| !live.has_finalizer));
    world.settle();
    world.objects.borrow().keys().cloned().collect()
}

#[test]
fn hooks_are_deleted_at_the_end_of_the_run_by_their_policies() {
    assert_eq!(left("HookSucceeded", false), Vec::<String>::new());
    assert_eq!(left("HookSucceeded", true), ["one", "two"]);
    assert_eq!(left("HookFailed", true), Vec::<String>::new());
    assert_eq!(left("HookFailed", false), ["one", "two"]);
    assert_eq!(left("BeforeHookCreation", false), ["one", "two"]);
    assert_eq!(left("HookSucceeded,HookFailed", true), Vec::<String>::new());
}

#[test]
fn a_hook_of_an_earlier_run_is_deleted_before_it_is_created_again() {
    let world = World::new();
    world.add("pre");
    let (end, ..) = drive(&world, &texts(&[job("pre", "PreSync")]), &[]);
    assert_eq!(
        (end, world.written()),
        (RunEnd::Succeeded, vec!["delete pre".to_owned(), "hook pre".to_owned()])
    );
}

#[test]
fn a_hook_in_two_phases_is_created_in_each() {
    let world = World::new();
    let (end, ..) = drive(&world, &texts(&[job("twice", "PreSync,PostSync"), config("a")]), &[]);
    assert_eq!(end, RunEnd::Succeeded);
    assert_eq!(world.written(), ["hook twice", "create a", "delete twice", "hook twice"]);
}

#[test]
fn hooks_with_generated_names_have_the_revision_the_phase_and_the_time_in_them() {
    let text = "apiVersion: batch/v1\nkind: Job\nmetadata:\n  generateName: migrate-\n  annotations: {argocd.argoproj.io/hook: PreSync}\n";
    let world = World::new();
    let run = begin(&world, &set(text), &[], Dialect::Argo, &policy(Dialect::Argo));
    assert_eq!(run.tasks[0].key.name, "migrate-mainsha-presync-0");
}

#[test]
fn a_hook_that_vanishes_has_failed() {
    let mut world = World::new();
    world.slow.insert("pre".to_owned());
    let run = begin(&world, &texts(&[job("pre", "PreSync")]), &[], Dialect::Argo, &policy(Dialect::Argo));
    let driver = Driver::new(&world, &run);
    let run = driver.step(run, &[], false).run;
    let answer = world.carry_out(&run, &RunAction::RunHook(0));
    let run = driver.step(run, &[answer], false).run;
    world.objects.borrow_mut().clear();
    let stepped = driver.step(run, &[], false);
    assert!(
        matches!(state(&stepped.run, "pre"), TaskState::Failed { message, .. } if message == "the hook was deleted while it ran")
    );
}

#[test]
fn an_object_that_vanishes_fails_the_run_unless_it_is_a_job_with_a_time_to_live() {
    let ttl =
        "apiVersion: batch/v1\nkind: Job\nmetadata: {name: once}\nspec: {ttlSecondsAfterFinished: 0}\n---\n";
    let world = World::new();
    let declared = set(&format!("{ttl}{}", config("a")));
    let run = begin(&world, &declared, &[], Dialect::Argo, &policy(Dialect::Argo));
    let driver = Driver::new(&world, &run);
    let mut run = run;
    // Both are sent, each kind in a batch, and deleted by somebody else before they were seen as ready.
    for _ in 0..2 {
        let stepped = driver.step(run, &[], false);
        let answers: Vec<_> =
            stepped.actions.iter().map(|action| world.carry_out(&stepped.run, action)).collect();
        run = driver.step(stepped.run, &answers, false).run;
    }
    let answers: Vec<_> = (0..2).map(|at| world.carry_out(&run, &RunAction::Apply(at))).collect();
    run = driver.step(run, &answers, false).run;
    world.objects.borrow_mut().clear();
    let run = driver.step(run, &[], false).run;
    assert!(matches!(state(&run, "once"), TaskState::Ready { .. }), "{run:#?}");
    assert!(
        matches!(state(&run, "a"), TaskState::Failed { message, .. } if message == "it was deleted after it was applied")
    );
}

#[test]
fn an_object_that_cannot_change_in_place_is_deleted_and_created_again() {
    let mut world = World::new();
    world.immutable.insert("a".to_owned());
    world.add("a");
    world.objects.borrow_mut().get_mut("a").unwrap().uid = "old-1".to_owned();
    let (end, run, waited_for) = drive(&world, &texts(&[config("a")]), &[]);
    assert_eq!(
        (end, world.written()),
        (RunEnd::Succeeded, vec!["delete a".to_owned(), "create a".to_owned()])
    );
    assert!(matches!(
        state(&run, "a"),
        TaskState::Ready { outcome: taffrail_plan::sync::TaskOutcome::Replaced, .. }
    ));
    assert_eq!(waited_for, ["a: it is being deleted, to be created again", "a: it is being made"]);
}

#[test]
fn a_busy_server_is_asked_again_after_growing_delays() {
    let world = World::new();
    world.later.borrow_mut().insert("a".to_owned(), 3);
    let (end, _, waited_for) = drive(&world, &texts(&[config("a")]), &[]);
    assert_eq!((end, world.written()), (RunEnd::Succeeded, vec!["create a".to_owned()]));
    assert_eq!(waited_for[0], "a: the server is busy");
    world.later.borrow_mut().insert("b".to_owned(), 4);
    let (end, ..) = drive(&world, &texts(&[config("b")]), &[]);
    assert_eq!(end, failed("ConfigMap shop/b: the server is busy"));
}

#[test]
fn pruned_objects_are_gone_before_the_next_wave() {
    let world = World::new();
    for name in ["p0", "p1", "p2"] {
        world.add(name);
    }
    let (end, _, waited_for) = drive(&world, &texts(&[config("a")]), &[("p0", 0), ("p1", 1), ("p2", 2)]);
    assert_eq!(end, RunEnd::Succeeded);
    assert_eq!(world.written(), ["delete p2", "create a", "delete p1", "delete p0"]);
    assert!(waited_for.iter().any(|told| told.contains("p2: it is being deleted")), "{waited_for:?}");
}

#[test]
fn another_object_of_a_pruned_name_stays() {
    let world = World::new();
    world.add("p");
    let run = begin(&world, &texts(&[config("a")]), &[("p", 0)], Dialect::Argo, &policy(Dialect::Argo));
    let again = Live { uid: "again".to_owned(), ..world.objects.borrow()["p"].clone() };
    world.objects.borrow_mut().insert("p".to_owned(), again);
    assert_eq!(Driver::new(&world, &run).drive(None).0, RunEnd::Succeeded);
    assert_eq!(world.objects.borrow()["p"].uid, "again");
    assert_eq!(world.written(), ["create a"]);
}

#[test]
fn kpt_skips_what_depends_on_a_failed_object_and_goes_on_with_the_rest() {
    let mut world = World::new();
    world.refused.insert("base".to_owned());
    let depends = |name: &str, on: &str| {
        let on = format!("/namespaces/shop/ConfigMap/{on}");
        manifest("v1", "ConfigMap", name, &[("config.kubernetes.io/depends-on", &on)])
    };
    let set = texts(&[
        config("base"),
        depends("middle", "base"),
        depends("top", "middle"),
        config("other"),
        depends("next", "other"),
    ]);
    let run = begin(&world, &set, &[], Dialect::Kpt, &policy(Dialect::Kpt));
    let mut driver = Driver::new(&world, &run);
    assert_eq!(driver.drive(None).0, failed("ConfigMap shop/base: the server refused it"));
    assert_eq!(world.written(), ["create other", "create next"]);
    let skipped = |message: &str| TaskState::Skipped { message: message.to_owned() };
    let run = driver.run();
    assert_eq!(state(&run, "middle"), &skipped("ConfigMap shop/base, on which it depends, failed"));
    assert_eq!(state(&run, "top"), &skipped("ConfigMap shop/middle, on which it depends, was skipped"));
}

#[test]
fn a_deadline_names_what_the_run_waits_for() {
    let mut world = World::new();
    world.slow.insert("a".to_owned());
    let set = texts(&[config("a"), in_wave("b", "1")]);
    let limit = Some(SignedDuration::from_secs(90));
    let of_step = RunPolicy { step_deadline: limit, ..policy(Dialect::Argo) };
    let run = begin(&world, &set, &[], Dialect::Argo, &of_step);
    let end = Driver::new(&world, &run).drive(None).0;
    assert_eq!(end, failed("ConfigMap shop/a: not ready within 1m 30s: it is being made"));
    let of_run = RunPolicy { deadline: limit, ..policy(Dialect::Argo) };
    let run = begin(&world, &set, &[], Dialect::Argo, &of_run);
    let end = Driver::new(&world, &run).drive(None).0;
    assert_eq!(end, failed("not done within 1m 30s: waiting for ConfigMap shop/a: it is being made"));
}

#[test]
fn what_cannot_be_read_is_waited_for_with_the_reason() {
    let world = World { unseen: BTreeSet::from(["a".to_owned()]), ..World::new() };
    let policy = RunPolicy { step_deadline: Some(SignedDuration::from_secs(5)), ..policy(Dialect::Argo) };
    let run = begin(&world, &texts(&[config("a")]), &[], Dialect::Argo, &policy);
    let mut driver = Driver::new(&world, &run);
    assert_eq!(driver.drive(None).0, failed("ConfigMap shop/a: not ready within 5s: you may not read it"));
    assert_eq!(driver.waited_for, ["a: you may not read it"]);
}

#[test]
fn a_run_that_is_terminated_deletes_the_hooks_that_run() {
    let mut world = World::new();
    world.slow.insert("two".to_owned());
    let set = texts(&[job("one", "PreSync"), job("two", "PreSync"), config("a"), job("alarm", "SyncFail")]);
    let run = begin(&world, &set, &[], Dialect::Argo, &policy(Dialect::Argo));
    let mut driver = Driver::new(&world, &run);
    let mut run = run;
    let mut answers = Vec::new();
    for _ in 0..4 {
        let stepped = driver.step(run, &answers, false);
        run = stepped.run;
        answers = stepped.actions.iter().map(|action| world.carry_out(&run, action)).collect();
        world.pass();
    }
    driver.saved = serde_json::to_string(&driver.step(run, &answers, false).run).unwrap();
    driver.terminates = true;
    assert_eq!(driver.drive(None).0, RunEnd::Terminated);
    assert_eq!(world.written(), ["hook one", "hook two", "delete two"]);
    let run = driver.run();
    assert!(matches!(state(&run, "one"), TaskState::Ready { .. }));
    assert!(
        matches!(state(&run, "two"), TaskState::Failed { message, .. } if message == "the run ended while the hook ran")
    );
    assert!(world.objects.borrow().values().all(|live| !live.has_finalizer));
}

#[test]
fn a_newer_revision_takes_over_at_the_next_wave() {
    let world = World::new();
    let set = texts(&[config("a"), in_wave("b", "1")]);
    let run = begin(&world, &set, &[], Dialect::Argo, &policy(Dialect::Argo));
    let mut driver = Driver::new(&world, &run);
    let stepped = driver.step(run, &[], false);
    let answers: Vec<_> =
        stepped.actions.iter().map(|action| world.carry_out(&stepped.run, action)).collect();
    driver.saved = serde_json::to_string(&driver.step(stepped.run, &answers, false).run).unwrap();
    driver.is_superseded = true;
    assert_eq!(driver.drive(None).0, RunEnd::Superseded);
    assert_eq!(world.written(), ["create a"]);
}

/// The set of the test of kills: hooks of all phases and policies, waves, pruned objects, one that is replaced, one that the
/// server cannot take at first, and if `fails` one that it refuses.
fn killed_world(fails: bool) -> (World, DeclaredSet) {
    let mut world = World::new();
    world.immutable.insert("fixed".to_owned());
    world.later.borrow_mut().insert("busy".to_owned(), 1);
    for name in ["fixed", "old-hook", "p0", "p1", "same"] {
        world.add(name);
    }
    world.objects.borrow_mut().get_mut("fixed").unwrap().uid = "old-fixed".to_owned();
    if fails {
        world.refused.insert("bad".to_owned());
    }
    let hook = |name: &str, phase: &str, policy: &str| {
        manifest("batch/v1", "Job", name, &[(HOOK, phase), (DELETE_POLICY, policy)])
    };
    let mut parts = vec![
        hook("old-hook", "PreSync", "BeforeHookCreation"),
        hook("pre", "PreSync", "HookSucceeded"),
        hook("with", "Sync", "HookFailed"),
        hook("twice", "PreSync,PostSync", "HookSucceeded,HookFailed"),
        hook("post", "PostSync", "HookSucceeded"),
        hook("alarm", "SyncFail", "HookFailed"),
        config("busy"),
        config("fixed"),
        config("same"),
        in_wave("late", "1"),
        manifest("v1", "Service", "front", &[]),
    ];
    if fails {
        parts.push(in_wave("bad", "1"));
    }
    (world, texts(&parts))
}

#[test]
fn a_run_that_is_killed_anywhere_ends_as_one_that_is_not() {
    for fails in [false, true] {
        let outcome = |kill_at: Option<u32>| {
            let (world, set) = killed_world(fails);
            let run = begin(&world, &set, &[("p0", 0), ("p1", 1)], Dialect::Argo, &policy(Dialect::Argo));
            let mut driver = Driver::new(&world, &run);
            let (end, points) = driver.drive(kill_at);
            world.settle();
            let objects: Vec<(String, Live)> = world
                .objects
                .borrow()
                .iter()
                .map(|(name, live)| (name.clone(), Live { uid: String::new(), looks: 0, ..live.clone() }))
                .collect();
            let mut written = world.written();
            written.sort();
            (end, objects, written, points)
        };
        let (end, objects, written, points) = outcome(None);
        assert_eq!(matches!(end, RunEnd::Failed(_)), fails);
        println!("{points} points at which the run is killed");
        for kill_at in 1..=points {
            let (its_end, its_objects, its_written, _) = outcome(Some(kill_at));
            assert_eq!(
                (&its_end, &its_objects, &its_written),
                (&end, &objects, &written),
                "killed at point {kill_at}"
            );
        }
    }
}

#[test]
fn a_saved_run_that_was_edited_is_refused() {
    let world = World::new();
    let run = begin(&world, &texts(&[config("a")]), &[], Dialect::Argo, &policy(Dialect::Argo));
    let text = serde_json::to_string(&run).unwrap();
    let edited = text.replace("\"retries\"", "\"tries\"");
    assert!(serde_json::from_str::<SyncRun>(&edited).is_err());
    assert_eq!(serde_json::from_str::<SyncRun>(&text).unwrap(), run);
}

#[test]
fn a_run_whose_steps_name_tasks_that_are_not_there_ends() {
    let world = World::new();
    let run = begin(&world, &texts(&[config("a")]), &[], Dialect::Argo, &policy(Dialect::Argo));
    let text = serde_json::to_string(&run).unwrap();
    let edited = text.replace("\"batches\":[[0]]", "\"batches\":[[7,99999]]");
    assert_ne!(text, edited);
    let mut driver = Driver::new(&world, &run);
    driver.saved = edited;
    assert_eq!(driver.drive(None).0, RunEnd::Succeeded);
}
