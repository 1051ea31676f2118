//! The judge: compares what the hub shows with the truth, each second.

use std::time::{Duration, Instant};

use anyhow::Result;

use crate::ground::Ground;
use crate::hub::{Hub, Shown, Way};
use crate::world::{Pair, SIDES, Side, World};

/// The time after which no pair may be shown green whose truth is another.
pub(crate) const WINDOW: Duration = Duration::from_secs(45);

/// The same where a single watch falls silent, while everything else proves that the server is there.
pub(crate) const WINDOW_OF_WATCH: Duration = Duration::from_secs(100);

const LOOK: Duration = Duration::from_secs(1);

/// One side of a pair.
#[derive(Clone, Debug, Default)]
struct Watched {
    /// The time since which the store says that it is not well; `None` if it is well.
    unwell: Option<Instant>,
    /// True if it was shown green at the last look.
    was_green: bool,
    /// The time at which its truth became another while it was shown green; until it is shown otherwise.
    turning: Option<Instant>,
}

/// The measurements of a time, such as that of a fault.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) pair_seconds: u64,
    pub(crate) wrong: u64,
    /// The number of seconds in which the hub did not answer.
    pub(crate) unanswered: u64,
    /// The times from a change of the truth until the hub showed the side no longer green.
    pub(crate) turned: Vec<Duration>,
    /// The pair-seconds in which a side was not green that was well and within reach for longer than its window.
    pub(crate) pale: u64,
}

impl Tally {
    pub(crate) fn add(&mut self, other: &Tally) {
        self.pair_seconds += other.pair_seconds;
        self.wrong += other.wrong;
        self.unanswered += other.unanswered;
        self.turned.extend(&other.turned);
        self.pale += other.pale;
    }

    /// Returns the shortest and the longest time to turn in seconds, as text.
    pub(crate) fn turns(&self) -> String {
        match (self.turned.iter().min(), self.turned.iter().max()) {
            (Some(least), Some(most)) => format!("{:.0}–{:.0} s", least.as_secs_f64(), most.as_secs_f64()),
            _ => "none".to_owned(),
        }
    }
}

/// The clusters as the judge knows them from those who disturb them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reach {
    /// The time since which nobody can learn anything of the cluster through its door; `None` if one can.
    pub(crate) cut: Option<Instant>,
    /// The time since which, or until shortly before which, a single watch was silent; `None` if all bring their events.
    pub(crate) silent: Option<Instant>,
}

pub(crate) struct Judge {
    way: Way,
    sides: Vec<[Watched; 2]>,
    pub(crate) reach: Vec<Reach>,
    last: Instant,
    tally: Tally,
    /// The number of wrong seconds so far.
    told: usize,
    begun: Instant,
}

impl Judge {
    pub(crate) fn new(world: &World, way: Way, clusters: usize) -> Judge {
        Judge {
            way,
            sides: vec![Default::default(); world.pairs.len()],
            reach: vec![Reach::default(); clusters],
            last: Instant::now(),
            tally: Tally::default(),
            told: 0,
            begun: Instant::now(),
        }
    }

    /// Returns the measurements since the last call.
    pub(crate) fn take(&mut self) -> Tally {
        std::mem::take(&mut self.tally)
    }

    /// Waits for the next second and looks once; returns true if every side is shown green.
    pub(crate) fn look(&mut self, world: &World, ground: &Ground, hub: &Hub) -> Result<bool> {
        std::thread::sleep(LOOK.saturating_sub(self.last.elapsed()));
        self.last = Instant::now();
        self.learn(world, ground)?;
        let asked = Instant::now();
        let shown = match hub.shown() {
            Ok(shown) => shown,
            Err(error) => {
                self.tally.unanswered += 1;
                eprintln!("  the hub did not answer: {error:#}");
                return Ok(false);
            }
        };
        Ok(self.judge(world, hub, &shown, asked))
    }

    /// Waits for the next second while the hub is asleep.
    pub(crate) fn doze(&mut self, world: &World, ground: &Ground) -> Result<()> {
        std::thread::sleep(LOOK.saturating_sub(self.last.elapsed()));
        self.last = Instant::now();
        self.learn(world, ground)
    }

    /// Reads the truth from the stores.
    pub(crate) fn learn(&mut self, world: &World, ground: &Ground) -> Result<()> {
        for (number, sides) in self.sides.iter_mut().enumerate() {
            for (watched, side) in sides.iter_mut().zip(SIDES) {
                let is_well = world.is_well(ground, number, side)?;
                let since = (!is_well).then(|| watched.unwell.unwrap_or_else(Instant::now));
                watched.unwell = since;
            }
        }
        Ok(())
    }

    fn judge(&mut self, world: &World, hub: &Hub, shown: &Shown, asked: Instant) -> bool {
        let mut is_all_green = true;
        for (pair, sides) in world.pairs.iter().zip(&mut self.sides) {
            self.tally.pair_seconds += 1;
            let green = hub.pair_in(shown, pair).unwrap_or_default();
            let (mut is_wrong, mut is_pale) = (None, false);
            let told = sides.iter_mut().zip(SIDES).zip(green).filter(|((_, side), _)| pair.is_told(*side));
            for ((watched, side), is_green) in told {
                let cluster = pair.cluster(side);
                let reach = &self.reach[cluster];
                let since = [watched.unwell, reach.cut].into_iter().flatten().min();
                match (is_green, since) {
                    (true, Some(since)) => {
                        if watched.was_green || watched.turning.is_some() {
                            watched.turning.get_or_insert(since);
                        }
                        let window = if reach.silent.is_some() { WINDOW_OF_WATCH } else { WINDOW };
                        let window = window + self.way.source(cluster).more();
                        let passed = asked.saturating_duration_since(since);
                        if passed > window {
                            is_wrong = Some((side, passed));
                        }
                    }
                    (false, Some(since)) => {
                        let turning = watched.turning.take().or(watched.was_green.then_some(since));
                        let passed = turning.map(|turning| asked.saturating_duration_since(turning));
                        self.tally.turned.extend(passed);
                    }
                    (_, None) => {
                        watched.turning = None;
                        is_pale |= !is_green;
                    }
                }
                watched.was_green = is_green;
                is_all_green &= is_green;
            }
            self.tally.pale += u64::from(is_pale);
            if let Some((side, passed)) = is_wrong {
                self.tally.wrong += 1;
                self.told += 1;
                if self.told <= 10 {
                    eprintln!(
                        "  wrong green at {:.0} s: {} is {side:?} green, {:.1} s after it was not: {}",
                        self.begun.elapsed().as_secs_f64(),
                        pair.name,
                        passed.as_secs_f64(),
                        hub.told_of(pair)
                    );
                }
            }
        }
        is_all_green
    }
}

/// Returns the pairs that are not green as the hub shows them, for a failure.
pub(crate) fn describe(world: &World, hub: &Hub) -> Result<String> {
    let shown = hub.shown()?;
    let is_green = |pair: &&Pair| {
        let green = hub.pair_in(&shown, pair).unwrap_or_default();
        SIDES.into_iter().zip(green).all(|(side, is_green)| is_green || !pair.is_told(side))
    };
    let pale = world.pairs.iter().filter(|pair| !is_green(pair));
    Ok(pale.map(|pair| format!("\n{} {}", pair.name, hub.told_of(pair))).collect())
}

/// Returns the sides of a fault's cluster as pairs of the number of a pair and a side.
pub(crate) fn sides_of(world: &World, cluster: usize) -> Vec<(usize, Side)> {
    let all = (0..world.pairs.len()).flat_map(|pair| SIDES.map(|side| (pair, side)));
    let is_of = |pair: &Pair, side| pair.cluster(side) == cluster && pair.is_told(side);
    all.filter(|(pair, side)| is_of(&world.pairs[*pair], *side)).collect()
}
