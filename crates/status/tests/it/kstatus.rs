//! Tests of the rules of kstatus that the golden cases do not reach.

use taffrail_object::{Object, json::Parser};
use taffrail_status::{Fork, Kstatus, ObjectContext, Rules, Status};

use super::{NOW, judge};

fn status(text: &str) -> (Status, String) {
    let verdict = judge(&Kstatus::default(), text).unwrap();
    (verdict.status, verdict.message.into_owned())
}

#[test]
fn the_forks_differ_on_suspended_jobs() {
    let job = r#"{"apiVersion":"batch/v1","kind":"Job","spec":{"suspend":true},
        "status":{"conditions":[{"type":"Suspended","status":"True"}]}}"#;
    let fork = |fork| judge(&Kstatus { fork }, job).unwrap().message;
    assert_eq!(fork(Fork::Flux), "Job not started");
    assert_eq!(fork(Fork::KubernetesSigs), "Job is suspended");
}

#[test]
fn an_unschedulable_pod_fails_after_fifteen_seconds() {
    let at = |seconds: i64| {
        let created = NOW - jiff::SignedDuration::from_secs(seconds);
        let text = format!(
            r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"creationTimestamp":"{created}"}},"status":{{"phase":"Pending",
                "conditions":[{{"type":"PodScheduled","status":"False","reason":"Unschedulable"}}]}}}}"#
        );
        status(&text).1
    };
    assert_eq!(at(14), "Pod has not been scheduled");
    assert_eq!(at(15), "Pod could not be scheduled");
    assert_eq!(at(-3600), "Pod has not been scheduled");
}

#[test]
fn the_first_standard_condition_in_the_list_decides() {
    let object = |first: &str, second: &str| {
        format!(
            r#"{{"kind":"Thing","status":{{"conditions":[{{"type":"{first}","status":"True","message":"1"}},
                {{"type":"{second}","status":"True","message":"2"}}]}}}}"#
        )
    };
    assert_eq!(status(&object("Stalled", "Reconciling")), (Status::Failed, "1".to_owned()));
    assert_eq!(status(&object("Reconciling", "Stalled")), (Status::InProgress, "1".to_owned()));
}

#[test]
fn groups_decide_and_versions_do_not() {
    let rule = |api_version: &str| {
        let text = format!(r#"{{"apiVersion":"{api_version}","kind":"Deployment","spec":{{"replicas":0}}}}"#);
        judge(&Kstatus::default(), &text).unwrap().rule
    };
    assert_eq!(rule("apps/v1"), "builtin/apps/Deployment");
    assert_eq!(rule("extensions/v1beta1"), "builtin/apps/Deployment");
    assert_eq!(rule("example.com/v1"), "fallback");
    assert_eq!(rule("v1"), "fallback");
}

#[test]
fn null_is_absent_in_conditions_and_wrong_in_fields() {
    assert_eq!(status(r#"{"kind":"X","status":{"conditions":null}}"#).0, Status::Current);
    assert_eq!(status(r#"{"kind":"X","status":{"conditions":[null,{"type":null}]}}"#).0, Status::Current);
    assert_eq!(status(r#"{"kind":"X","metadata":null,"status":null}"#).0, Status::Current);
    for text in [
        r#"{"kind":"X","metadata":{"deletionTimestamp":null}}"#,
        r#"{"kind":"X","metadata":{"generation":null}}"#,
        r#"{"kind":"X","metadata":{"generation":1.0}}"#,
        r#"{"kind":"X","metadata":{"generation":1},"status":{"observedGeneration":"1"}}"#,
        r#"{"kind":"X","status":[]}"#,
        r#"{"kind":"X","status":{"conditions":{}}}"#,
        r#"{"kind":"X","status":{"conditions":["Ready"]}}"#,
        r#"{"kind":"X","status":{"conditions":[{"reason":7}]}}"#,
        r#"{"apiVersion":"v1","kind":"Pod","status":{"phase":"Running","containerStatuses":null}}"#,
    ] {
        assert!(judge(&Kstatus::default(), text).is_err(), "{text}");
    }
}

#[test]
fn numbers_wrap_and_do_not_crash() {
    let (min, max) = (i64::MIN, i64::MAX);
    for (replicas, partition) in [(min, max), (max, min), (min, min), (max, max)] {
        let text = format!(
            r#"{{"apiVersion":"apps/v1","kind":"StatefulSet","spec":{{"replicas":{replicas},
                "updateStrategy":{{"rollingUpdate":{{"partition":{partition}}}}}}},
                "status":{{"replicas":{max},"readyReplicas":{max}}}}}"#
        );
        judge(&Kstatus::default(), &text).unwrap();
    }
}

#[test]
fn value_without_kind_is_not_an_object() {
    for text in [
        "[]",
        "null",
        "{}",
        r#"{"kind":""}"#,
        r#"{"kind":7}"#,
        r#"{"Kind":"Pod"}"#,
        r#"{"apiVersion":"a/b/c","kind":"Pod"}"#,
    ] {
        assert!(judge(&Kstatus::default(), text).is_err(), "{text}");
    }
}

#[test]
fn items_of_typed_lists_get_their_kind_from_the_list() {
    let text = br#"{"apiVersion":"v1","kind":"PodList","items":[
        {"metadata":{"name":"a"}}, {"apiVersion":"v1","kind":"Secret","metadata":{"name":"b"}}, 7]}"#;
    let mut parser = Parser::new();
    let list = Object::new(parser.parse(text).unwrap().root()).unwrap();
    let kinds: Vec<String> = list
        .items()
        .unwrap()
        .map(|item| {
            item.map_or_else(|error| error.to_string(), |item| format!("{} {}", item.kind(), item.name()))
        })
        .collect();
    assert_eq!(kinds, ["Pod a", "Secret b", "the value is not a JSON object"]);
    let verdict = Kstatus::default()
        .judge(&list.items().unwrap().next().unwrap().unwrap(), &ObjectContext::default(), NOW)
        .unwrap();
    assert_eq!(verdict.message, "Pod phase not available");
    let pod =
        Object::new(parser.parse(br#"{"kind":"Pod","items":[]}"#).unwrap().root()).unwrap().items().is_none();
    assert!(pod);
}
