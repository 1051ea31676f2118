//! The notes of transitions.

use super::*;

#[test]
fn transitions_are_noted_once_the_cluster_was_read_and_only_when_a_state_changes() {
    let own = cluster("eu");
    let mut streams = ReportStreams::default();
    streams.note_transitions();
    streams.begin(&own, seconds(0));
    let set = |streams: &mut ReportStreams, number, health, count| {
        let half = HalfBody::Observed(Box::new(observed(health, count)));
        streams.set(&own, id(number), half, seconds(1));
    };
    let noted = |streams: &mut ReportStreams| -> Vec<(String, Option<Status>)> {
        let all = streams.take_noted().into_iter().flat_map(|(of, noted)| {
            assert_eq!(of, own);
            match noted {
                Noted::Begun => panic!("it began before"),
                Noted::Changed(changed) => changed,
            }
        });
        let of = |it: AppTransition| match it.observed {
            Some(HalfThen::Is(half)) => (it.app.app.name, Some(half.health)),
            Some(HalfThen::Gone) => (it.app.app.name, None),
            None => panic!("no half changed"),
        };
        all.map(of).collect()
    };
    streams.set_read(&own, false);
    set(&mut streams, 1, Status::Failed, 1);
    assert_eq!(streams.take_noted(), []);
    // What is there at first is no transition.
    streams.set_read(&own, true);
    set(&mut streams, 2, Status::Current, 1);
    assert_eq!(streams.take_noted(), [(own.clone(), Noted::Begun)]);
    set(&mut streams, 1, Status::Failed, 7);
    set(&mut streams, 2, Status::Failed, 1);
    set(&mut streams, 3, Status::Current, 1);
    let failed = |number| (format!("app-{number}"), Some(Status::Failed));
    assert_eq!(noted(&mut streams), [failed(2), ("app-3".to_owned(), Some(Status::Current))]);
    // It was never reported, and is noted nevertheless; between two looks the last state counts.
    streams.remove(&own, &id(3), seconds(2));
    set(&mut streams, 2, Status::Current, 1);
    set(&mut streams, 2, Status::Failed, 1);
    assert_eq!(noted(&mut streams), [("app-3".to_owned(), None), failed(2)]);
    assert_eq!(noted(&mut streams), []);
}

#[test]
fn a_transition_has_both_halves_of_the_app() {
    let own = cluster("eu");
    let mut streams = ReportStreams::default();
    streams.note_transitions();
    streams.begin(&own, seconds(0));
    let set = |streams: &mut ReportStreams, health| {
        streams.set(&own, id(1), HalfBody::Observed(Box::new(observed(health, 1))), seconds(1));
    };
    let half = HalfId { side: HalfSide::Declared, ..id(1) };
    let body = HalfBody::Declared(Box::new(declared(SyncState::OutOfSync)));
    streams.set(&own, half, body, seconds(0));
    set(&mut streams, Status::Current);
    streams.take_noted();
    set(&mut streams, Status::Failed);
    let noted = streams.take_noted();
    let [(_, Noted::Changed(changed))] = noted.as_slice() else { panic!("{noted:?}") };
    let [
        AppTransition {
            declared: Some(HalfThen::Is(declared)), observed: Some(HalfThen::Is(observed)), ..
        },
    ] = changed.as_slice()
    else {
        panic!("{changed:?}")
    };
    assert_eq!((declared.sync.state, observed.health), (SyncState::OutOfSync, Status::Failed));
}
