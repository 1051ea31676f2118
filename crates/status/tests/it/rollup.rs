//! Tests of the status of many objects together.

use jiff::Timestamp;
use proptest::prelude::*;
use taffrail_object::ObjectKeyRef;
use taffrail_status::rollup::{Counts, Subject, worst, worst_of_app};
use taffrail_status::{Status, aggregate};

fn status() -> impl Strategy<Value = Status> {
    prop::sample::select(&Status::ALL[..])
}

fn subject() -> impl Strategy<Value = Subject<'static>> {
    let since = prop::option::of((0..4i64).prop_map(|second| Timestamp::from_second(second).unwrap()));
    let names = prop::sample::select(vec!["", "a", "b"]);
    (status(), since, names.clone(), names.clone(), names.clone(), names).prop_map(
        |(status, since, group, kind, namespace, name)| Subject {
            status,
            since,
            key: ObjectKeyRef::new(group, kind, namespace, name),
        },
    )
}

proptest! {
    #[test]
    fn the_order_of_the_input_does_not_matter(
        (one, other) in prop::collection::vec(subject(), 0..8).prop_flat_map(|all| (Just(all.clone()), Just(all).prop_shuffle()))
    ) {
        prop_assert_eq!(worst(&one), worst(&other));
    }

    #[test]
    fn worsening_one_object_never_improves_the_whole(
        all in prop::collection::vec(subject(), 1..8), at in any::<prop::sample::Index>(), status in status()
    ) {
        let before = worst(&all).unwrap().status;
        let mut after = all;
        let at = at.index(after.len());
        prop_assume!(status <= after[at].status);
        after[at].status = status;
        prop_assert!(worst(&after).unwrap().status <= before);
    }

    #[test]
    fn the_worst_is_one_of_them(all in prop::collection::vec(subject(), 0..8)) {
        match worst(&all) {
            Some(subject) => prop_assert!(all.contains(subject) && all.iter().all(|other| subject.status <= other.status)),
            None => prop_assert!(all.is_empty()),
        }
    }
}

#[test]
fn ties_are_broken_by_duration_then_by_name() {
    let subject = |since: Option<i64>, kind, name| Subject {
        status: Status::Failed,
        since: since.map(|second| Timestamp::from_second(second).unwrap()),
        key: ObjectKeyRef::new("apps", kind, "shop", name),
    };
    let name = |all: &[Subject<'static>]| worst(all).unwrap().key.name;
    assert_eq!(
        name(&[subject(Some(2), "A", "late"), subject(Some(1), "B", "early"), subject(None, "A", "never")]),
        "early"
    );
    assert_eq!(name(&[subject(None, "B", "a"), subject(None, "A", "z")]), "z");
    assert_eq!(name(&[subject(None, "A", "z"), subject(None, "A", "a")]), "a");
}

#[test]
fn what_stands_beside_the_declared_objects_decides_only_if_it_is_worse() {
    let object = |status, name| Subject {
        status,
        since: None,
        key: ObjectKeyRef::new("apps", "Deployment", "shop", name),
    };
    let declared = [object(Status::Unknown, "web")];
    let name = |declared: &[Subject<'static>], beside: &[Subject<'static>]| {
        worst_of_app(declared, beside).map(|subject| subject.key.name)
    };
    assert_eq!(name(&declared, &[object(Status::Unknown, "list")]), Some("web"));
    assert_eq!(name(&declared, &[object(Status::Failed, "app")]), Some("app"));
    assert_eq!(
        name(&declared, &[object(Status::NotFound, "list"), object(Status::NotFound, "app")]),
        Some("list")
    );
    assert_eq!(name(&[], &[object(Status::Current, "app")]), Some("app"));
    assert_eq!(name(&[], &[]), None);
}

#[test]
fn counts_add_up() {
    let counts: Counts = [Status::Current, Status::Current, Status::Failed].into_iter().collect();
    assert_eq!((counts.get(Status::Current), counts.get(Status::Failed), counts.total()), (2, 1, 3));
}

#[test]
fn kstatus_aggregates_for_a_wait() {
    use Status::{Current, Failed, InProgress, NotFound, Terminating, Unknown};

    for (statuses, desired, expected) in [
        (&[][..], Current, Current),
        (&[][..], NotFound, NotFound),
        (&[Current, Current], Current, Current),
        (&[Current, InProgress], Current, InProgress),
        (&[Current, Unknown], Current, Unknown),
        (&[Unknown, Failed], Current, Failed),
        (&[NotFound, Terminating], NotFound, InProgress),
        (&[NotFound, NotFound], NotFound, NotFound),
    ] {
        assert_eq!(aggregate(statuses, desired), expected, "{statuses:?}");
    }
}

#[test]
fn statuses_parse_in_both_spellings() {
    assert_eq!("Ready".parse(), Ok(Status::Current));
    assert_eq!("current".parse(), Ok(Status::Current));
    assert_eq!("NotFound".parse(), Ok(Status::NotFound));
    assert!("Green".parse::<Status>().is_err());
}
