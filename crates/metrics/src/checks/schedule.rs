//! The order in which the checks of one server are evaluated: each when it is due, and those of all tenants in turn.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::hash::Hash;
use std::time::Duration;

/// Items that are due again and again, of tenants whose turns come one after the other, however many items each has.
#[derive(Debug)]
pub(super) struct Schedule<T, K> {
    /// The items of each tenant by the moment at which they are due.
    tenants: HashMap<T, BTreeSet<(Duration, K)>>,
    /// The interval of each item, and the moment at which it is due.
    items: HashMap<K, (Duration, Duration)>,
    /// The tenants with due items, the next one first.
    ready: VecDeque<T>,
    /// The other tenants, by the moment at which their first item is due.
    waiting: BTreeSet<(Duration, T)>,
}

impl<T, K> Default for Schedule<T, K> {
    fn default() -> Schedule<T, K> {
        Schedule {
            tenants: HashMap::new(),
            items: HashMap::new(),
            ready: VecDeque::new(),
            waiting: BTreeSet::new(),
        }
    }
}

impl<T: Clone + Eq + Hash + Ord, K: Clone + Eq + Hash + Ord> Schedule<T, K> {
    /// Replaces the items, each with its tenant and its interval. One that was there keeps the moment at which it is due, and a
    /// tenant its turn; a new one is due at the moment `now`.
    pub(super) fn set(&mut self, wanted: impl IntoIterator<Item = (T, K, Duration)>, now: Duration) {
        let before = std::mem::take(&mut self.items);
        self.tenants.clear();
        for (tenant, item, interval) in wanted {
            let due = before.get(&item).map_or(now, |(_, due)| (*due).min(now + interval));
            self.tenants.entry(tenant).or_default().insert((due, item.clone()));
            self.items.insert(item, (interval, due));
        }
        self.waiting.clear();
        let firsts: BTreeMap<&T, Duration> =
            self.tenants.iter().filter_map(|(tenant, items)| Some((tenant, items.first()?.0))).collect();
        self.ready.retain(|tenant| firsts.get(tenant).is_some_and(|due| *due <= now));
        let mut is_ready: BTreeSet<&T> = self.ready.iter().collect();
        let mut new = Vec::new();
        for (tenant, due) in firsts {
            match due <= now {
                true if is_ready.insert(tenant) => new.push(tenant.clone()),
                true => {}
                false => drop(self.waiting.insert((due, tenant.clone()))),
            }
        }
        self.ready.extend(new);
    }

    /// Returns the item whose turn it is at the moment `now`, and schedules it again; `None` if none is due.
    pub(super) fn next(&mut self, now: Duration) -> Option<K> {
        while let Some((_, tenant)) = self.waiting.first().filter(|(due, _)| *due <= now) {
            self.ready.push_back(tenant.clone());
            self.waiting.pop_first();
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
    fn tenant_with_many_checks_does_not_starve_others() {
        let mut schedule = Schedule::default();
        let many = (0..1_000).map(|number| ("greedy", number, MINUTE));
        let items = || many.clone().chain([("small", 5_000, MINUTE), ("other", 5_001, MINUTE)]);
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
        schedule.set([("a", 1, second(15)), ("a", 2, MINUTE)], second(0));
        let mut seen: Vec<(u64, i32)> = Vec::new();
        for now in 0..61 {
            while let Some(item) = schedule.next(second(now)) {
                seen.push((now, item));
            }
        }
        assert_eq!(seen, [(0, 1), (0, 2), (15, 1), (30, 1), (45, 1), (60, 1), (60, 2)]);
        schedule.set([("a", 2, MINUTE)], second(61));
        assert_eq!(schedule.next(second(119)), None);
        assert_eq!(schedule.next(second(120)), Some(2));
        schedule.set([], second(130));
        assert_eq!(schedule.next(second(1_000)), None);
    }
}
