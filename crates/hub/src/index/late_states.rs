//! The states of pairs after their last late transition, which the hub keeps until it knows better.

use std::collections::HashMap;
use std::time::Duration;

use taffrail_api::hub::PairState;
use taffrail_apps::ClusterId;

use crate::store::PairId;

/// The number of states up to which every agent may add some; beyond that, each may have an equal share of this number.
const MANY: usize = 50_000;

/// The number of states beyond which none is added.
const MAX: usize = 200_000;

/// The state of each pair after its last transition that an agent told late, until the next transition of the pair.
///
/// The agent of one cluster cannot take the room of the others.
#[derive(Debug, Default)]
pub(super) struct LateStates {
    states: HashMap<PairId, LateState>,
    /// The number of states by the cluster whose agent told them.
    counts: HashMap<ClusterId, usize>,
    /// The moment at which they were looked through last.
    looked: Duration,
}

#[derive(Debug)]
struct LateState {
    /// The moment at which the transition came.
    came: Duration,
    state: Option<PairState>,
    teller: ClusterId,
}

impl LateStates {
    /// Returns true if the agent of the cluster `teller` may add states.
    pub(super) fn has_room(&self, teller: &ClusterId) -> bool {
        let own = self.counts.get(teller).copied().unwrap_or_default();
        let tellers = self.counts.len() + usize::from(own == 0);
        self.states.len() < MANY || (own < MANY / tellers && self.states.len() < MAX)
    }

    /// Adds the states of pairs that the agent of the cluster `teller` told at the moment `came`.
    pub(super) fn extend(
        &mut self,
        states: Vec<(PairId, Option<PairState>)>,
        teller: &ClusterId,
        came: Duration,
    ) {
        for (pair, state) in states {
            self.remove(&pair);
            self.states.insert(pair, LateState { came, state, teller: teller.clone() });
            *self.counts.entry(teller.clone()).or_default() += 1;
        }
    }

    /// Removes and returns the state of a pair; `None` if there is none.
    pub(super) fn remove(&mut self, pair: &PairId) -> Option<Option<PairState>> {
        let LateState { state, teller, .. } = self.states.remove(pair)?;
        if let Some(count) = self.counts.get_mut(&teller) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&teller);
            }
        }
        Some(state)
    }

    /// Returns true if there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.states.is_empty()
    }

    /// Returns the pairs whose transition came longer than `settled` before the moment `at`, and forgets those for which that
    /// is longer than `forgotten`. Looks through them after `pause` at the earliest, and returns none in between.
    pub(super) fn unsettled(
        &mut self,
        at: Duration,
        pause: Duration,
        settled: Duration,
        forgotten: Duration,
    ) -> Vec<PairId> {
        if self.states.is_empty() || at.saturating_sub(self.looked) < pause {
            return Vec::new();
        }
        self.looked = at;
        let age = |it: &LateState| at.saturating_sub(it.came);
        let over = self.states.iter().filter(|(_, it)| age(it) > forgotten);
        for pair in over.map(|(pair, _)| pair.clone()).collect::<Vec<_>>() {
            self.remove(&pair);
        }
        let old = self.states.iter().filter(|(_, it)| age(it) > settled);
        old.map(|(pair, _)| pair.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use taffrail_api::report::AppId;
    use taffrail_apps::{AppName, Delivery};

    use super::*;

    fn states(teller: &ClusterId, count: usize) -> Vec<(PairId, Option<PairState>)> {
        let app = |number: usize| AppId {
            home: teller.clone(),
            app: AppName { delivery: Delivery::Kpt, namespace: "shop".to_owned(), name: number.to_string() },
        };
        (0..count).map(|number| (PairId { cluster: teller.clone(), app: app(number) }, None)).collect()
    }

    #[test]
    fn agents_that_told_much_leave_room_for_others() {
        let mut late = LateStates::default();
        for number in 0..5 {
            let greedy = ClusterId(format!("greedy-{number}"));
            for batch in states(&greedy, 2 * MANY).chunks(100) {
                if late.has_room(&greedy) {
                    late.extend(batch.to_vec(), &greedy, Duration::ZERO);
                }
            }
            assert!(!late.has_room(&greedy), "{number}");
        }
        let honest = ClusterId("honest".to_owned());
        assert!(late.has_room(&honest));
        late.extend(states(&honest, 1), &honest, Duration::ZERO);
        assert!(late.has_room(&honest));
        assert!(late.states.len() < MAX);
    }

    #[test]
    fn states_are_looked_through_after_a_pause_and_forgotten() {
        const SECOND: Duration = Duration::from_secs(1);
        let (mut late, teller) = (LateStates::default(), ClusterId("a".to_owned()));
        late.extend(states(&teller, 1), &teller, 10 * SECOND);
        let mut unsettled = |at: u32| late.unsettled(at * SECOND, 5 * SECOND, 3 * SECOND, 60 * SECOND).len();
        assert_eq!([12, 14, 18, 71].map(&mut unsettled), [0, 0, 1, 0]);
        assert!(late.is_empty() && late.counts.is_empty());
    }
}
