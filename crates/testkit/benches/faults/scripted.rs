//! The faults of real API servers, one after the other.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use jiff::{SignedDuration, Timestamp};
use taffrail_testkit::proxy::{DeadAnswer, Line, Manner};

use crate::ground::Ground;
use crate::hub::{AgentTrouble, Hub, Source, Way};
use crate::judge::{Judge, Tally, WINDOW, WINDOW_OF_WATCH, describe, sides_of};
use crate::metrics::MetricsTrouble;
use crate::world::{Harm, Side, World};

/// The time for which a fault lasts beyond its window.
const BEYOND: Duration = Duration::from_secs(12);

/// The time for which the truth stays another after a fault is over: what comes back may not be green before it is well.
const AFTER: Duration = Duration::from_secs(10);

/// The maximum time until everything is green again.
const HEALED_WITHIN: Duration = Duration::from_secs(180);

/// The time after which the bytes of a server with a wrong clock are swallowed too.
const MOVED_FOR: Duration = Duration::from_secs(15);

/// The time for which the network stays away after a sleep.
const AWAKE: Duration = Duration::from_secs(15);

const HOUR: SignedDuration = SignedDuration::from_hours(1);

#[derive(Clone)]
enum Cause {
    Pause,
    Swallow,
    Manner(Manner),
    MovedAndSwallow(SignedDuration),
    Sleep,
    Agent(AgentTrouble),
    Metrics(MetricsTrouble),
}

impl Cause {
    /// Returns true if it can befall a cluster that the hub knows by `source`.
    fn concerns(&self, source: Source) -> bool {
        match self {
            Cause::Agent(AgentTrouble::Stopped | AgentTrouble::Killed) => source != Source::ReachIn,
            Cause::Agent(AgentTrouble::Swallowed | AgentTrouble::Closed) => source == Source::Agent,
            Cause::Metrics(_) => source == Source::Metrics,
            _ => true,
        }
    }

    /// Returns true if the agent sees meanwhile what happens in its cluster, and tells the hub later.
    fn is_spooled(&self) -> bool {
        matches!(self, Cause::Agent(AgentTrouble::Swallowed | AgentTrouble::Closed))
    }
}

pub(crate) struct Fault {
    name: &'static str,
    cause: Cause,
    /// True if nobody can learn anything of the cluster through its door.
    cuts: bool,
    window: Duration,
    /// The only side that is harmed; `None` for both.
    only: Option<Side>,
}

impl Fault {
    /// Returns true if it can befall a cluster that the hub knows by `source`, and turn something there: metrics tell
    /// no sync state that could turn.
    fn concerns(&self, source: Source) -> bool {
        let has_side = self.only != Some(Side::Declared) || source != Source::Metrics;
        has_side && self.cause.concerns(source)
    }
}

/// Returns the faults of clusters that the hub knows by `way`.
pub(crate) fn all(way: Way) -> Vec<Fault> {
    let cut = |name, cause| Fault { name, cause, cuts: true, window: WINDOW, only: None };
    let dead = |name, answer| cut(name, Cause::Manner(Manner::Dead(answer)));
    let watch = |name, resource, only| {
        let cause = Cause::Manner(Manner::Swallowing(resource));
        Fault { name, cause, cuts: false, window: WINDOW_OF_WATCH, only: Some(only) }
    };
    let moved = |name, by| Fault {
        name,
        cause: Cause::Manner(Manner::Moved(by)),
        cuts: false,
        window: WINDOW,
        only: None,
    };
    let agent = |name, trouble| cut(name, Cause::Agent(trouble));
    let of_agents = [
        agent("agent-stopped", AgentTrouble::Stopped),
        agent("agent-killed", AgentTrouble::Killed),
        agent("agent-swallowed", AgentTrouble::Swallowed),
        agent("agent-closed", AgentTrouble::Closed),
    ];
    let of_clusters = [
        cut("stopped", Cause::Pause),
        cut("swallowed", Cause::Swallow),
        watch("silent-objects", "widgets", Side::Observed),
        watch("silent-apps", "kustomizations", Side::Declared),
        dead("dead-hangs", DeadAnswer::Hang),
        dead("dead-502", DeadAnswer::BadGateway),
        dead("dead-404", DeadAnswer::NotFound),
        dead("dead-page", DeadAnswer::Page),
        dead("dead-empty", DeadAnswer::Empty),
        cut("unauthorized", Cause::Manner(Manner::Unauthorized)),
        moved("hour-ahead", HOUR),
        moved("hour-behind", -HOUR),
        cut("ahead-swallowed", Cause::MovedAndSwallow(HOUR)),
        cut("asleep", Cause::Sleep),
    ];
    let metrics = |name, trouble| cut(name, Cause::Metrics(trouble));
    let of_metrics = [
        metrics("prometheus-stopped", MetricsTrouble::Stopped),
        metrics("prometheus-killed", MetricsTrouble::Killed),
        metrics("prometheus-swallowed", MetricsTrouble::Swallowed),
        metrics("prometheus-closed", MetricsTrouble::Closed),
        metrics("prometheus-old", MetricsTrouble::Old),
        metrics("agent-unscraped", MetricsTrouble::Unscraped),
    ];
    let all = of_clusters.into_iter().chain(of_agents).chain(of_metrics);
    let sources = [0, 1, 2].map(|cluster| way.source(cluster));
    all.filter(|fault| sources.iter().any(|source| fault.concerns(*source))).collect()
}

/// The outcome of one fault.
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) seconds: f64,
    pub(crate) tally: Tally,
    pub(crate) healed: f64,
    /// The number of changes that happened during a fault between an agent and its hub, and are not in history.
    pub(crate) lost: usize,
}

/// A run of scripted faults.
pub(crate) struct Script<'a> {
    pub(crate) ground: &'a Ground,
    pub(crate) world: &'a World,
    pub(crate) hub: &'a mut Hub,
    pub(crate) judge: Judge,
    pub(crate) way: Way,
}

impl Script<'_> {
    /// Runs those of `faults` whose names are in `only`, or all if it is empty, each on another cluster than in the round
    /// before.
    pub(crate) fn run(
        &mut self,
        faults: &[Fault],
        only: &[String],
        seed: u64,
        rounds: u32,
    ) -> Result<Vec<Row>> {
        self.until_green()?;
        self.judge.take();
        if self.way == Way::Each
            && let Some(tables) = self.hub.tables(&self.world.pairs[0].name)?
        {
            crate::print_tables(&tables);
        }
        let mut rows = Vec::new();
        for round in 0..rounds {
            for (number, fault) in (0..).zip(faults) {
                let clusters: Vec<usize> = (0..self.ground.names().len())
                    .filter(|cluster| fault.concerns(self.way.source(*cluster)))
                    .collect();
                let cluster = clusters[((seed + u64::from(round) + number) % clusters.len() as u64) as usize];
                if only.is_empty() || only.iter().any(|name| name == fault.name) {
                    let row = self.fault(fault, cluster)?;
                    crate::print_row(&row);
                    rows.push(row);
                }
            }
        }
        Ok(rows)
    }

    fn fault(&mut self, fault: &Fault, cluster: usize) -> Result<Row> {
        let (begun, wall) = (Instant::now(), Timestamp::now());
        let window = fault.window + self.way.source(cluster).more();
        let name = format!("{} of {}", fault.name, self.ground.names()[cluster]);
        if fault.window == WINDOW_OF_WATCH {
            self.judge.reach[cluster].silent = Some(begun);
        }
        self.begin(fault, cluster)?;
        let mut harms = [Harm::NotReady, Harm::Gone].into_iter().cycle();
        let sides = sides_of(self.world, cluster);
        let harmed: Vec<_> = sides
            .into_iter()
            .filter(|(_, side)| fault.only.is_none_or(|only| only == *side))
            // Of an app that is declared and lands here one side, of the others every second one.
            .filter(|(pair, side)| (*pair % 2 == 0) == (*side == Side::Observed))
            .collect();
        for (pair, side) in &harmed {
            // A declaring object that is gone leaves no row.
            let harm = if *side == Side::Declared { Some(Harm::NotReady) } else { harms.next() };
            self.world.set(self.ground, *pair, *side, harm)?;
        }
        match fault.cause {
            Cause::Sleep => self.sleep(window)?,
            _ => self.look_for(window + BEYOND)?,
        }
        self.end(fault, cluster)?;
        let over = Instant::now();
        let seconds = begun.elapsed().as_secs_f64();
        self.look_for(AFTER)?;
        for (pair, side) in &harmed {
            self.world.set(self.ground, *pair, *side, None)?;
        }
        self.until_green()?;
        self.judge.reach[cluster].silent = None;
        let healed = over.elapsed().as_secs_f64();
        let mut lost = 0;
        if fault.cause.is_spooled() && self.way.source(cluster) == Source::Agent {
            for (pair, _) in harmed.iter().filter(|(_, side)| *side == Side::Observed) {
                lost += usize::from(self.hub.turns_in_history(&self.world.pairs[*pair], wall)? == 0);
            }
        }
        Ok(Row { name, seconds, tally: self.judge.take(), healed, lost })
    }

    fn begin(&mut self, fault: &Fault, cluster: usize) -> Result<()> {
        let door = &self.ground.doors[cluster];
        match &fault.cause {
            Cause::Pause => self.ground.pause(cluster, true)?,
            Cause::Swallow => door.line.set(Line::Dead),
            Cause::Manner(manner) => door.gate.set(manner.clone()),
            Cause::MovedAndSwallow(by) => {
                door.gate.set(Manner::Moved(*by));
                // The server is within reach, and has sent moved times, before it is not.
                self.look_for(MOVED_FOR)?;
                door.line.set(Line::Dead);
            }
            Cause::Sleep => self.hub.sleep()?,
            Cause::Agent(trouble) => self.hub.trouble(cluster, *trouble)?,
            Cause::Metrics(trouble) => self.hub.trouble_metrics(*trouble)?,
        }
        if fault.cuts && !matches!(fault.cause, Cause::Sleep) {
            self.judge.reach[cluster].cut = Some(Instant::now());
        }
        Ok(())
    }

    /// Lets the hub sleep, and wake without a network.
    fn sleep(&mut self, window: Duration) -> Result<()> {
        let begun = Instant::now();
        for (door, reach) in self.ground.doors.iter().zip(&mut self.judge.reach) {
            door.line.set(Line::Dead);
            reach.cut = Some(begun);
        }
        while begun.elapsed() < window + BEYOND {
            self.judge.doze(self.world, self.ground)?;
        }
        self.hub.wake()?;
        self.look_for(AWAKE)
    }

    fn end(&mut self, fault: &Fault, cluster: usize) -> Result<()> {
        let door = &self.ground.doors[cluster];
        match &fault.cause {
            Cause::Pause => self.ground.pause(cluster, false)?,
            Cause::Swallow => door.line.set(Line::Open),
            Cause::Manner(_) => door.gate.set(Manner::Honest),
            Cause::MovedAndSwallow(_) => {
                door.gate.set(Manner::Honest);
                door.line.set(Line::Open);
            }
            Cause::Sleep => self.ground.doors.iter().for_each(|door| door.line.set(Line::Open)),
            Cause::Agent(trouble) => self.hub.heal(cluster, *trouble)?,
            Cause::Metrics(trouble) => self.hub.heal_metrics(*trouble)?,
        }
        self.judge.reach.iter_mut().for_each(|reach| reach.cut = None);
        Ok(())
    }

    fn look_for(&mut self, time: Duration) -> Result<()> {
        let begun = Instant::now();
        while begun.elapsed() < time {
            self.judge.look(self.world, self.ground, self.hub)?;
        }
        Ok(())
    }

    /// Looks until everything is green.
    fn until_green(&mut self) -> Result<()> {
        let begun = Instant::now();
        while !self.judge.look(self.world, self.ground, self.hub)? {
            ensure!(
                begun.elapsed() < HEALED_WITHIN,
                "not green again after {} s: {}",
                HEALED_WITHIN.as_secs(),
                describe(self.world, self.hub)?
            );
        }
        Ok(())
    }
}
