//! The bounds of what waits.

use taffrail_status::Status;

use super::*;
use crate::index::samples::SampleFleet;

#[test]
fn store_that_cannot_be_written_costs_a_bounded_number_of_transitions() {
    let names: Vec<String> = (0..10).map(|number| format!("app-{number}")).collect();
    let apps: Vec<(&str, Status, &str)> = names.iter().map(|name| (&**name, Status::Current, "")).collect();
    let fleet = SampleFleet::new().with("eu", &apps);
    let view = fleet.index.last_view();
    let pairs: Vec<Arc<Pair>> =
        view.fleet().all().flat_map(|(_, cluster)| cluster.pairs.pairs.iter().cloned()).collect();
    let state = |number: usize| PairState { problem: Some(number.to_string()), ..unrecorded() };
    let journal = Journal::default();
    let count = 3 * MAX_TRANSITIONS;
    for number in 0..count {
        let moment = HubTime { at: Duration::ZERO, now: Timestamp::from_second(number as i64).unwrap() };
        let transition = Transition {
            at: moment.now,
            pair: Arc::clone(&pairs[number % 10]),
            moved: None,
            before: number.checked_sub(10).map(state),
            after: Some(state(number)),
            is_news: true,
        };
        journal.publication(moment, &[], &[], &[transition], pairs.len());
    }
    let JournalCounts { pending, lost } = journal.counts();
    assert!(pending <= MAX_TRANSITIONS + 20, "{pending}");
    assert!(lost as usize >= count - MAX_TRANSITIONS - 20 && lost as usize <= count - 20, "{lost}");
    // The first and the last of a pair stand, and that something between them was not recorded.
    let mut told = Vec::new();
    loop {
        let portion = journal.take(Duration::ZERO);
        told.extend(portion.batch().transitions);
        if portion.last().is_some() {
            break;
        }
    }
    let id = pair_id(&pairs[3]);
    told.retain(|transition| transition.pair == id);
    assert_eq!(told[0].at, Timestamp::from_second(3).unwrap());
    assert_eq!((&told[0].before, &told[0].after), (&None, &Some(unrecorded())));
    assert_eq!(told[1].before, Some(unrecorded()));
    assert_eq!(told.last().unwrap().after, Some(state(count - 7)));
    assert!(told.is_sorted_by_key(|transition| transition.at));
}

#[test]
fn what_could_not_be_saved_waits_in_its_order() {
    let journal = Journal::default();
    let cluster = |name: &str| ClusterId(name.to_owned());
    journal.cluster(&cluster("eu"));
    journal.cluster(&cluster("us"));
    let portion = journal.take(Duration::ZERO);
    assert!(portion.last().is_some());
    assert_eq!(journal.counts().pending, 2, "what is being written is not saved yet");
    journal.forget(&cluster("us"));
    journal.put_back(portion);
    let portion = journal.take(Duration::ZERO);
    assert_eq!(portion.clusters, [cluster("eu")]);
    journal.saved(portion.last());
    assert_eq!(journal.counts().pending, 0);
    assert_eq!(portion.batch().forgotten.into_iter().collect::<Vec<_>>(), [cluster("us")]);
    // One that came back in the same portion is not forgotten with it.
    journal.forget(&cluster("eu"));
    journal.cluster(&cluster("eu"));
    journal.put_back(journal.take(Duration::ZERO));
    let portion = journal.take(Duration::ZERO);
    assert_eq!(portion.clusters, [cluster("eu")]);
    assert_eq!(portion.batch().forgotten.len(), 1);
}

#[test]
fn signs_of_life_are_saved_together() {
    let journal = Journal::default();
    let [eu, us] = ["eu", "us"].map(|name| ClusterId(name.to_owned()));
    let heard = |seconds: u64| journal.take(Duration::from_secs(seconds));
    journal.heard(&eu);
    let first = heard(100);
    assert_eq!(first.heard, std::slice::from_ref(&eu));
    journal.heard(&us);
    assert_eq!(heard(114).heard, []);
    journal.put_back(first);
    // What could not be saved waits no longer than all else.
    let mut second = heard(114).heard;
    second.sort();
    assert_eq!(second, [eu.clone(), us.clone()]);
    journal.heard(&eu);
    journal.forget(&eu);
    assert_eq!(heard(200).heard, []);
}
