//! Seeded faults of simulated clusters, several at a time.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use jiff::SignedDuration;
use taffrail_sim::{Fault, Trouble};
use taffrail_testkit::proxy::{DeadAnswer, Line, Manner};

use crate::ground::Ground;
use crate::hub::{AgentTrouble, Hub, Way};
use crate::judge::{Judge, Tally, describe};
use crate::world::{Harm, SIDES, Side, World};

/// The average time for which a side stays well, or unwell, in seconds.
const STAYS: u32 = 80;

/// The average time between two faults of a cluster, in seconds.
const WITHOUT_FAULT: u32 = 40;

/// The average time between two sleeps of the hub, in seconds.
const AWAKE: u32 = 400;

/// The maximum time until everything is green after the last fault.
const HEALED_WITHIN: Duration = Duration::from_secs(240);

/// The time after a silent watch for which its longer window holds on: until then, events of its time may still come.
const SETTLES: Duration = Duration::from_secs(45);

#[derive(Clone)]
enum Cause {
    Line,
    Manner(Manner),
    Server(Trouble),
    Agent(AgentTrouble),
}

/// Returns the name of a random fault, its cause, and true if it cuts a cluster off.
fn random(random: &mut fastrand::Rng, way: Way) -> (&'static str, Cause, bool) {
    let hour = SignedDuration::from_hours(if random.bool() { 1 } else { -1 });
    let manner = |name, manner, cuts| (name, Cause::Manner(manner), cuts);
    let server = |name, trouble, cuts| (name, Cause::Server(trouble), cuts);
    let agent = |name, trouble| (name, Cause::Agent(trouble), true);
    let kinds = if way == Way::Agents { 22 } else { 18 };
    match random.u8(0..kinds) {
        0 => ("bytes swallowed", Cause::Line, true),
        1 => manner("silent watch of objects", Manner::Swallowing("widgets"), false),
        2 => manner("silent watch of apps", Manner::Swallowing("kustomizations"), false),
        3 => manner("dead behind a proxy, hangs", Manner::Dead(DeadAnswer::Hang), true),
        4 => manner("dead behind a proxy, 502", Manner::Dead(DeadAnswer::BadGateway), true),
        5 => manner("dead behind a proxy, page", Manner::Dead(DeadAnswer::Page), true),
        6 => manner("dead behind a proxy, empty", Manner::Dead(DeadAnswer::Empty), true),
        7 => manner("unauthorized", Manner::Unauthorized, true),
        8 => manner("an hour off", Manner::Moved(hour), false),
        9 => server("unreachable", Trouble::Unreachable, true),
        10 => server("black hole", Trouble::Blackhole, true),
        11 => server("server hangs", Trouble::Hang, false),
        12 => server("server errors", Trouble::ServerError("etcdserver: leader changed".to_owned()), false),
        13 => server("garbage", Trouble::Garbage, false),
        14 => server("expired watches", Trouble::Expired, false),
        15 => server("too many requests", Trouble::TooManyRequests(1), false),
        16 => manner("dead behind a proxy, 404", Manner::Dead(DeadAnswer::NotFound), true),
        18 => agent("agent stopped", AgentTrouble::Stopped),
        19 => agent("agent killed", AgentTrouble::Killed),
        20 => agent("bytes of the agent swallowed", AgentTrouble::Swallowed),
        21 => agent("agent cut off", AgentTrouble::Closed),
        _ => server("delayed", Trouble::Latency(Duration::from_millis(random.u64(50..2000))), false),
    }
}

impl Cause {
    fn begin(&self, ground: &Ground, hub: &mut Hub, cluster: usize) -> Result<()> {
        let door = &ground.doors[cluster];
        match self {
            Cause::Line => door.line.set(Line::Dead),
            Cause::Manner(manner) => door.gate.set(manner.clone()),
            Cause::Server(trouble) => {
                let cluster = ground.simulation(cluster).context("the clusters are real")?;
                cluster.fault(Fault::new(trouble.clone()));
            }
            Cause::Agent(trouble) => hub.trouble(cluster, *trouble)?,
        }
        Ok(())
    }

    fn end(&self, ground: &Ground, hub: &mut Hub, cluster: usize) -> Result<()> {
        let door = &ground.doors[cluster];
        match self {
            Cause::Line => door.line.set(Line::Open),
            Cause::Manner(_) => door.gate.set(Manner::Honest),
            Cause::Server(_) => ground.simulation(cluster).context("the clusters are real")?.heal_all(),
            Cause::Agent(trouble) => hub.heal(cluster, *trouble)?,
        }
        Ok(())
    }

    fn is_of_watch(&self) -> bool {
        matches!(self, Cause::Manner(Manner::Swallowing(_)))
    }
}

struct Running {
    cause: Cause,
    until: Instant,
}

/// A run of seeded faults.
pub(crate) struct Seeded<'a> {
    pub(crate) ground: &'a Ground,
    pub(crate) world: &'a World,
    pub(crate) hub: &'a mut Hub,
    pub(crate) way: Way,
    pub(crate) judge: Judge,
    pub(crate) random: fastrand::Rng,
}

impl Seeded<'_> {
    /// Disturbs the clusters for this time; returns the measurements, the number of faults by name, and the time until
    /// everything was green afterwards.
    pub(crate) fn run(&mut self, time: Duration) -> Result<(Tally, BTreeMap<&'static str, u64>, f64)> {
        self.until_green()?;
        self.judge.take();
        let (mut total, mut counts) = (Tally::default(), BTreeMap::new());
        let clusters = self.ground.names().len();
        let mut running: Vec<Option<Running>> = (0..clusters).map(|_| None).collect();
        let (begun, mut wakes, mut told) = (Instant::now(), None::<Instant>, Instant::now());
        while begun.elapsed() < time {
            let now = Instant::now();
            for (cluster, running) in running.iter_mut().enumerate() {
                self.disturb(cluster, running, now, &mut counts)?;
            }
            self.change()?;
            if wakes.is_some_and(|wakes| wakes <= now) {
                wakes = None;
                self.hub.wake()?;
            } else if wakes.is_none() && self.random.u32(0..AWAKE) == 0 {
                *counts.entry("hub asleep").or_default() += 1;
                wakes = Some(now + Duration::from_secs(self.random.u64(20..90)));
                self.hub.sleep()?;
            }
            match wakes {
                Some(_) => self.judge.doze(self.world, self.ground)?,
                None => drop(self.judge.look(self.world, self.ground, self.hub)?),
            }
            if told.elapsed() > Duration::from_secs(60) {
                told = now;
                total.add(&self.judge.take());
                let minutes = begun.elapsed().as_secs() / 60;
                eprintln!(
                    "{minutes} min: {} pair-seconds, {} wrongly green",
                    total.pair_seconds, total.wrong
                );
            }
        }
        if wakes.is_some() {
            self.hub.wake()?;
        }
        for (cluster, running) in running.iter().enumerate() {
            if let Some(running) = running {
                running.cause.end(self.ground, self.hub, cluster)?;
            }
            self.judge.reach[cluster].cut = None;
        }
        for pair in 0..self.world.pairs.len() {
            for side in SIDES {
                self.world.set(self.ground, pair, side, None)?;
            }
        }
        let over = Instant::now();
        self.until_green()?;
        total.add(&self.judge.take());
        Ok((total, counts, over.elapsed().as_secs_f64()))
    }

    /// Ends the fault of a cluster whose time has come, or begins one now and then.
    fn disturb(
        &mut self,
        cluster: usize,
        running: &mut Option<Running>,
        now: Instant,
        counts: &mut BTreeMap<&'static str, u64>,
    ) -> Result<()> {
        let reach = &mut self.judge.reach[cluster];
        match running {
            Some(fault) if fault.until <= now => {
                fault.cause.end(self.ground, self.hub, cluster)?;
                reach.cut = None;
                *running = None;
            }
            Some(fault) if fault.cause.is_of_watch() => reach.silent = Some(now),
            None if self.random.u32(0..WITHOUT_FAULT) == 0 => {
                let (name, cause, cuts) = random(&mut self.random, self.way);
                *counts.entry(name).or_default() += 1;
                cause.begin(self.ground, self.hub, cluster)?;
                reach.cut = cuts.then(Instant::now);
                let until = now + Duration::from_secs(self.random.u64(5..150));
                *running = Some(Running { cause, until });
            }
            _ => {
                if reach.silent.is_some_and(|last| last.elapsed() > SETTLES) {
                    reach.silent = None;
                }
            }
        }
        Ok(())
    }

    /// Makes some sides well, and some unwell.
    fn change(&mut self) -> Result<()> {
        for pair in 0..self.world.pairs.len() {
            for side in SIDES {
                if self.random.u32(0..STAYS) > 0 {
                    continue;
                }
                let harm = match (self.random.u8(0..4), side) {
                    (0, Side::Observed) => Some(Harm::Gone),
                    (0 | 1, _) => Some(Harm::NotReady),
                    _ => None,
                };
                self.world.set(self.ground, pair, side, harm)?;
            }
        }
        Ok(())
    }

    fn until_green(&mut self) -> Result<()> {
        let begun = Instant::now();
        while !self.judge.look(self.world, self.ground, self.hub)? {
            ensure!(
                begun.elapsed() < HEALED_WITHIN,
                "not green after {} s: {}",
                HEALED_WITHIN.as_secs(),
                describe(self.world, self.hub)?
            );
        }
        Ok(())
    }
}
