//! The order in which the checks of one server are evaluated: each when it is due, and those of all tenants in turn.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::hash::Hash;
use std::time::Duration;

/// Items that are due again and again. The turns go round the homes, and of each home round its namespaces, however many
/// items or namespaces one has: what namespaces there are is a cluster's own word.
#[derive(Debug)]
pub(super) struct Schedule<H, N, K> {
    /// The items of each tenant by the moment at which they are due.
    tenants: HashMap<(H, N), BTreeSet<(Duration, K)>>,
    /// The interval of each item, and the moment at which it is due.
    items: HashMap<K, (Duration, Duration)>,
    /// The tenants with due items.
    ready: Turns<H, N>,
    /// The other tenants, by the moment at which their first item is due.
    waiting: BTreeSet<(Duration, (H, N))>,
}

/// The namespaces whose turn comes, by home: the next home first, and of each the next namespace.
#[derive(Debug)]
struct Turns<H, N> {
    homes: VecDeque<H>,
    of_home: HashMap<H, VecDeque<N>>,
}

impl<H, N> Default for Turns<H, N> {
    fn default() -> Turns<H, N> {
        Turns { homes: VecDeque::new(), of_home: HashMap::new() }
    }
}

impl<H: Clone + Eq + Hash, N> Turns<H, N> {
    fn push_back(&mut self, (home, namespace): (H, N)) {
        let turns = self.of_home.entry(home.clone()).or_default();
        if turns.is_empty() {
            self.homes.push_back(home);
        }
        turns.push_back(namespace);
    }

    fn pop_front(&mut self) -> Option<(H, N)> {
        let home = self.homes.pop_front()?;
        let turns = self.of_home.get_mut(&home)?;
        let namespace = turns.pop_front()?;
        if turns.is_empty() {
            self.of_home.remove(&home);
        } else {
            self.homes.push_back(home.clone());
        }
        Some((home, namespace))
    }
}

impl<H, N, K> Default for Schedule<H, N, K> {
    fn default() -> Schedule<H, N, K> {
        Schedule {
            tenants: HashMap::new(),
            items: HashMap::new(),
            ready: Turns::default(),
            waiting: BTreeSet::new(),
        }
    }
}

impl<H, N, K> Schedule<H, N, K>
where
    H: Clone + Eq + Hash + Ord,
    N: Clone + Eq + Hash + Ord,
    K: Clone + Eq + Hash + Ord,
{
    /// Replaces the items, each with its tenant and its interval. One that was there keeps the moment at which it is due, and a
    /// tenant its turn; a new one is due at the moment `now`.
    pub(super) fn set(&mut self, wanted: impl IntoIterator<Item = ((H, N), K, Duration)>, now: Duration) {
        let before = std::mem::take(&mut self.items);
        self.tenants.clear();
        for (tenant, item, interval) in wanted {
            let due = before.get(&item).map_or(now, |(_, due)| (*due).min(now + interval));
            self.tenants.entry(tenant).or_default().insert((due, item.clone()));
            self.items.insert(item, (interval, due));
        }
        self.waiting.clear();
        let mut firsts: BTreeMap<(H, N), Duration> = BTreeMap::new();
        for (tenant, items) in &self.tenants {
            firsts.extend(items.first().map(|(due, _)| (tenant.clone(), *due)));
        }
        let mut earlier = std::mem::take(&mut self.ready);
        while let Some(tenant) = earlier.pop_front() {
            if firsts.get(&tenant).is_some_and(|due| *due <= now) {
                firsts.remove(&tenant);
                self.ready.push_back(tenant);
            }
        }
        for (tenant, due) in firsts {
            match due <= now {
                true => self.ready.push_back(tenant),
                false => drop(self.waiting.insert((due, tenant))),
            }
        }
    }

    /// Returns the item whose turn it is at the moment `now`, and schedules it again; `None` if none is due.
    pub(super) fn next(&mut self, now: Duration) -> Option<K> {
        while self.waiting.first().is_some_and(|(due, _)| *due <= now)
            && let Some((_, tenant)) = self.waiting.pop_first()
        {
            self.ready.push_back(tenant);
        }
        let tenant = self.ready.pop_front()?;
        let items = self.tenants.get_mut(&tenant)?;
        let (_, item) = items.pop_first()?;
        if let Some((interval, due)) = self.items.get_mut(&item) {
            *due = now + *interval;
            items.insert((*due, item.clone()));
        }
        match items.first() {
            Some((due, _)) if *due <= now => self.ready.push_back(tenant),
            Some((due, _)) => drop(self.waiting.insert((*due, tenant))),
            None => {}
        }
        Some(item)
    }

    /// Returns the number of items, and the number of them that are due in a minute on average.
    pub(super) fn load(&self) -> (usize, f64) {
        let rate = self.items.values().map(|(interval, _)| 60.0 / interval.as_secs_f64()).sum();
        (self.items.len(), rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn second(number: u64) -> Duration {
        Duration::from_secs(number)
    }

    #[test]
    fn cluster_with_many_checks_and_namespaces_does_not_starve_others() {
        let mut schedule = Schedule::default();
        let many = (0..1_000).map(|number| (("greedy", number % 500), number, MINUTE));
        let items = || many.clone().chain([(("small", 0), 5_000, MINUTE), (("other", 0), 5_001, MINUTE)]);
        schedule.set(items(), second(0));
        // One in a second: far too few for all.
        let mut of_small = Vec::new();
        for now in 0..300 {
            if now % 5 == 0 {
                schedule.set(items(), second(now));
            }
            let item = schedule.next(second(now)).unwrap();
            of_small.extend((item == 5_000).then_some(now));
        }
        assert!(of_small.len() >= 4, "{of_small:?}");
        assert!(
            of_small.iter().zip(of_small.iter().skip(1)).all(|(one, next)| next - one <= 63),
            "{of_small:?}"
        );
        assert_eq!(schedule.load(), (1_002, 1_002.0));
    }

    #[test]
    fn items_are_due_at_their_intervals() {
        let mut schedule = Schedule::default();
        schedule.set([(("a", "x"), 1, second(15)), (("a", "x"), 2, MINUTE)], second(0));
        let mut seen: Vec<(u64, i32)> = Vec::new();
        for now in 0..61 {
            while let Some(item) = schedule.next(second(now)) {
                seen.push((now, item));
            }
        }
        assert_eq!(seen, [(0, 1), (0, 2), (15, 1), (30, 1), (45, 1), (60, 1), (60, 2)]);
        schedule.set([(("a", "x"), 2, MINUTE)], second(61));
        assert_eq!(schedule.next(second(119)), None);
        assert_eq!(schedule.next(second(120)), Some(2));
        schedule.set([], second(130));
        assert_eq!(schedule.next(second(1_000)), None);
    }
}
