//! A cluster of a few objects, and a driver that carries out a run's actions in it and may be killed at any point.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use taffrail_object::ObjectKey;
use taffrail_plan::manifests::{DeclaredObject, DeclaredSet, StatedChanges};
use taffrail_plan::order::{Dialect, OrderInput, PrunedObject, order};
use taffrail_plan::sync::{
    Answer, NewRun, Observation, ObservedObject, RunAction, RunEnd, RunPolicy, Stepped, SyncRun, TaskOutcome,
    TaskVerdict, TaskWork, step,
};

/// A live object.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Live {
    pub(super) uid: String,
    /// The run that created it as a hook.
    pub(super) hook_of: Option<String>,
    pub(super) has_finalizer: bool,
    pub(super) is_terminating: bool,
    /// The number of looks until it is ready; then the verdict holds.
    pub(super) looks: u32,
    pub(super) verdict: TaskVerdict,
}

/// The objects, and all writes that were made.
pub(super) struct World {
    pub(super) objects: RefCell<BTreeMap<String, Live>>,
    pub(super) log: RefCell<Vec<String>>,
    pub(super) next: RefCell<u32>,
    /// Objects that fail once they were written.
    pub(super) failing: BTreeSet<String>,
    /// Objects whose write the server refuses.
    pub(super) refused: BTreeSet<String>,
    /// Objects whose first writes the server cannot carry out: the number.
    pub(super) later: RefCell<BTreeMap<String, u32>>,
    /// Objects that must be deleted before they are applied.
    pub(super) immutable: BTreeSet<String>,
    /// Objects that never become ready.
    pub(super) slow: BTreeSet<String>,
    /// Objects that the run is not able to see.
    pub(super) unseen: BTreeSet<String>,
}

impl World {
    pub(super) fn new() -> World {
        World {
            objects: RefCell::default(),
            log: RefCell::default(),
            next: RefCell::new(0),
            failing: BTreeSet::new(),
            refused: BTreeSet::new(),
            later: RefCell::default(),
            immutable: BTreeSet::new(),
            slow: BTreeSet::new(),
            unseen: BTreeSet::new(),
        }
    }

    /// Adds an object that somebody else made, and returns its UID.
    pub(super) fn add(&self, name: &str) -> String {
        let live = self.live(name, None);
        let uid = live.uid.clone();
        self.objects.borrow_mut().insert(name.to_owned(), live);
        uid
    }

    fn live(&self, name: &str, hook_of: Option<String>) -> Live {
        *self.next.borrow_mut() += 1;
        let verdict = if self.failing.contains(name) { TaskVerdict::Failed } else { TaskVerdict::Ready };
        let looks = if self.slow.contains(name) { u32::MAX } else { 2 };
        let has_finalizer = hook_of.is_some();
        let uid = format!("uid-{}", self.next.borrow());
        Live { uid, hook_of, has_finalizer, is_terminating: false, looks, verdict }
    }

    fn write(&self, what: &str, name: &str) {
        self.log.borrow_mut().push(format!("{what} {name}"));
    }

    pub(super) fn written(&self) -> Vec<String> {
        self.log.borrow().clone()
    }

    /// Lets time pass: objects come nearer to be ready, and deleted ones go.
    pub(super) fn pass(&self) {
        let mut objects = self.objects.borrow_mut();
        objects.retain(|_, live| !live.is_terminating || live.has_finalizer || live.looks > 0);
        objects.values_mut().filter(|live| live.looks != u32::MAX).for_each(|live| {
            live.looks = live.looks.saturating_sub(1);
        });
    }

    /// Lets time pass until nothing changes any more.
    pub(super) fn settle(&self) {
        for _ in 0..3 {
            self.pass();
        }
    }

    pub(super) fn observed(&self, key: &ObjectKey) -> ObservedObject {
        if self.unseen.contains(&key.name) {
            return ObservedObject::Unknown("you may not read it".to_owned());
        }
        match self.objects.borrow().get(&key.name) {
            None => ObservedObject::Absent,
            Some(live) => ObservedObject::Present {
                uid: live.uid.clone(),
                verdict: if live.looks > 0 { TaskVerdict::Waiting } else { live.verdict },
                reason: if live.looks > 0 { "it is being made".to_owned() } else { "it broke".to_owned() },
                since: None,
            },
        }
    }

    fn put_off(&self, name: &str) -> Option<Answer> {
        let mut later = self.later.borrow_mut();
        let left = later.get_mut(name).filter(|left| **left > 0)?;
        *left -= 1;
        Some(Answer::Later("the server is busy".to_owned()))
    }

    /// Carries out an action as the engine does; one of a hook or a doubtful one is looked for first.
    pub(super) fn carry_out(&self, run: &SyncRun, action: &RunAction) -> (usize, Answer) {
        let (at, answer) = match action {
            RunAction::Apply(at) => (*at, self.apply(run, *at)),
            RunAction::RunHook(at) => (*at, self.run_hook(run, *at)),
            RunAction::Delete { task, uid } => (*task, self.delete(&run.tasks[*task].key.name, Some(uid))),
            RunAction::Release { task, uid, deletes } => {
                let name = &run.tasks[*task].key.name;
                (*task, self.release(name, uid.as_deref(), &run.id, *deletes))
            }
        };
        (at, answer)
    }

    fn apply(&self, run: &SyncRun, at: usize) -> Answer {
        let name = &run.tasks[at].key.name;
        if self.refused.contains(name) {
            return Answer::Failed("the server refused it".to_owned());
        }
        if let Some(later) = self.put_off(name) {
            return later;
        }
        let found = self.objects.borrow().get(name).cloned();
        match found {
            Some(live) if live.uid.starts_with("old") && self.immutable.contains(name) => {
                Answer::InTheWay { uid: live.uid, replaces: true }
            }
            Some(live) if !live.uid.starts_with("old") => {
                Answer::Written { uid: live.uid, outcome: TaskOutcome::Unchanged }
            }
            Some(live) => {
                self.write("change", name);
                let uid = format!("changed-{}", live.uid);
                self.objects.borrow_mut().insert(name.clone(), Live { uid: uid.clone(), looks: 2, ..live });
                Answer::Written { uid, outcome: TaskOutcome::Changed }
            }
            None => {
                self.write("create", name);
                let live = self.live(name, None);
                let uid = live.uid.clone();
                self.objects.borrow_mut().insert(name.clone(), live);
                Answer::Written { uid, outcome: TaskOutcome::Created }
            }
        }
    }

    fn run_hook(&self, run: &SyncRun, at: usize) -> Answer {
        let task = &run.tasks[at];
        let TaskWork::Hook(hook) = &task.work else { panic!("task {at} is not a hook") };
        let name = &task.key.name;
        if self.refused.contains(name) {
            return Answer::Failed("the server refused it".to_owned());
        }
        if let Some(later) = self.put_off(name) {
            return later;
        }
        let own = format!("{}/{}", run.id, hook.phase);
        let found = self.objects.borrow().get(name).cloned();
        match found {
            Some(live) if live.hook_of.as_ref() == Some(&own) => {
                Answer::Written { uid: live.uid, outcome: TaskOutcome::Created }
            }
            Some(live) => Answer::InTheWay { uid: live.uid, replaces: false },
            None => {
                self.write("hook", name);
                let live = self.live(name, Some(own));
                let uid = live.uid.clone();
                self.objects.borrow_mut().insert(name.clone(), live);
                Answer::Written { uid, outcome: TaskOutcome::Created }
            }
        }
    }

    fn delete(&self, name: &str, uid: Option<&String>) -> Answer {
        let mut objects = self.objects.borrow_mut();
        let Some(live) = objects.get_mut(name).filter(|live| uid.is_none_or(|uid| *uid == live.uid)) else {
            return Answer::Gone;
        };
        if !live.is_terminating {
            self.write("delete", name);
        }
        live.has_finalizer = false;
        live.is_terminating = true;
        live.looks = 2;
        Answer::Deleting
    }

    fn release(&self, name: &str, uid: Option<&str>, run: &str, deletes: bool) -> Answer {
        let is_own = |live: &Live| match uid {
            Some(uid) => live.uid == uid,
            None => live.hook_of.as_ref().is_some_and(|of| of.starts_with(&format!("{run}/"))),
        };
        let is_there = self.objects.borrow().get(name).is_some_and(is_own);
        if is_there {
            if let Some(live) = self.objects.borrow_mut().get_mut(name) {
                live.has_finalizer = false;
            }
            if deletes {
                self.delete(name, None);
            }
        }
        Answer::Released { deleted: deletes }
    }
}

pub(super) fn policy(dialect: Dialect) -> RunPolicy {
    RunPolicy {
        continues: dialect == Dialect::Kpt,
        waits_at_end: true,
        deadline: None,
        step_deadline: None,
        retries: 3,
    }
}

/// Begins a run of a set in the world; `pruned` are the names of ConfigMaps with their waves.
pub(super) fn begin(
    world: &World,
    set: &DeclaredSet,
    pruned: &[(&str, i64)],
    dialect: Dialect,
    policy: &RunPolicy,
) -> SyncRun {
    let gone: Vec<PrunedObject> = pruned
        .iter()
        .map(|(name, wave)| PrunedObject {
            key: ObjectKey::new("", "ConfigMap", "shop", *name),
            wave: *wave,
            is_last: false,
            depends_on: Vec::new(),
            defines: None,
            changes: StatedChanges::default(),
        })
        .collect();
    let exists = |key: &ObjectKey| world.objects.borrow().contains_key(&key.name);
    let input = OrderInput {
        objects: &set.objects,
        pruned: &gone,
        dialect,
        annotations: &[],
        destroys: false,
        exists: &exists,
    };
    let order = order(&input).unwrap();
    let uid = |name: &str| world.objects.borrow().get(name).map(|live| live.uid.clone()).unwrap_or_default();
    let pruned: Vec<(ObjectKey, String)> =
        gone.into_iter().map(|it| (it.key.clone(), uid(&it.key.name))).collect();
    let unchanged = |at: usize| {
        let object: &DeclaredObject = set.objects.get(at)?;
        let objects = world.objects.borrow();
        objects.get(&object.key.name).map(|live| live.uid.clone()).filter(|uid| uid.starts_with("uid"))
    };
    SyncRun::new(&NewRun {
        id: "run-1",
        digest: "digest",
        revision: "main@sha1:0123456789abcdef",
        started: Timestamp::UNIX_EPOCH,
        policy,
        order: &order,
        objects: &set.objects,
        pruned: &pruned,
        unchanged: &unchanged,
    })
}

/// The driver of one run.
pub(super) struct Driver<'w> {
    pub(super) world: &'w World,
    /// The run as it was last saved.
    pub(super) saved: String,
    pub(super) now: Timestamp,
    pub(super) saves: u32,
    /// The points passed, and the one at which the process is killed.
    points: u32,
    kill_at: Option<u32>,
    pub(super) waited_for: Vec<String>,
    pub(super) terminates: bool,
    pub(super) is_superseded: bool,
}

struct Killed;

impl<'w> Driver<'w> {
    pub(super) fn new(world: &'w World, run: &SyncRun) -> Driver<'w> {
        Driver {
            world,
            saved: serde_json::to_string(run).unwrap(),
            now: run.started,
            saves: 0,
            points: 0,
            kill_at: None,
            waited_for: Vec::new(),
            terminates: false,
            is_superseded: false,
        }
    }

    pub(super) fn run(&self) -> SyncRun {
        serde_json::from_str(&self.saved).unwrap()
    }

    fn point(&mut self) -> Result<(), Killed> {
        self.points += 1;
        if self.kill_at == Some(self.points) { Err(Killed) } else { Ok(()) }
    }

    /// Drives the run to its end, and returns that; begins again where it is killed. The number is that of the points passed.
    pub(super) fn drive(&mut self, kill_at: Option<u32>) -> (RunEnd, u32) {
        self.kill_at = kill_at;
        let mut restarted = false;
        loop {
            match self.process(restarted) {
                Ok(end) => return (end, self.points),
                Err(Killed) => restarted = true,
            }
        }
    }

    fn process(&mut self, mut restarted: bool) -> Result<RunEnd, Killed> {
        let mut run = self.run();
        let mut answers = Vec::new();
        for _ in 0..1_000 {
            let stepped = self.step(run, &answers, restarted);
            restarted = false;
            run = stepped.run;
            self.point()?;
            let text = serde_json::to_string(&run).unwrap();
            if text != self.saved {
                self.saved = text;
                self.saves += 1;
            }
            self.point()?;
            if let Some(end) = run.end() {
                return Ok(end.clone());
            }
            answers.clear();
            for action in &stepped.actions {
                answers.push(self.world.carry_out(&run, action));
                self.point()?;
            }
            let told = stepped.waiting_for.iter().map(|it| format!("{}: {}", it.key.name, it.reason));
            let told = told.collect::<Vec<_>>().join(", ");
            if !told.is_empty() && self.waited_for.last() != Some(&told) {
                self.waited_for.push(told);
            }
            self.world.pass();
            self.now = self.now.saturating_add(SignedDuration::from_secs(1)).unwrap();
        }
        panic!("the run does not end: waiting for {:?}, {run:#?}", self.waited_for.last());
    }

    pub(super) fn step(&self, run: SyncRun, answers: &[(usize, Answer)], restarted: bool) -> Stepped {
        let observation = Observation {
            answers,
            object: &|key| self.world.observed(key),
            terminates: self.terminates,
            is_superseded: self.is_superseded,
            restarted,
        };
        step(run, &observation, self.now)
    }
}
