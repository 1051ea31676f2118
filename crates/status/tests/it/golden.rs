//! Compares verdicts with those of Go's kstatus on 4,000 objects; see `tests/golden/kstatus/README.md`.

use serde_json::{Value, json};
use taffrail_status::{Kstatus, Verdict};

const OBJECTS: &str = include_str!("../golden/kstatus/objects.jsonl");
const EXPECTED: &str = include_str!("../golden/kstatus/expected.jsonl");

fn as_json(verdict: &Verdict) -> Value {
    let condition = |condition: &taffrail_status::Condition| {
        json!({
            "type": condition.condition.as_str(),
            "status": "True",
            "reason": condition.reason,
            "message": condition.message,
        })
    };
    json!({
        "status": verdict.status.as_str(),
        "message": verdict.message,
        "conditions": verdict.conditions.iter().map(condition).collect::<Vec<_>>(),
    })
}

#[test]
fn kstatus_answers_as_go_does() {
    assert_eq!(OBJECTS.lines().count(), 4000);
    assert_eq!(EXPECTED.lines().count(), 4000);
    for (number, (object, expected)) in (1..).zip(OBJECTS.lines().zip(EXPECTED.lines())) {
        let expected: Value = serde_json::from_str(expected).unwrap();
        let answer = super::judge(&Kstatus::default(), object);
        match expected.get("error").and_then(Value::as_str) {
            // Where Go crashes any answer is right.
            Some(error) if error.starts_with("panic:") => {}
            Some(error) => assert!(answer.is_err(), "line {number}: {object}\nGo: {error}\nhere: {answer:?}"),
            None => {
                let verdict = answer.unwrap_or_else(|error| panic!("line {number}: {object}\n{error}"));
                assert_eq!(as_json(&verdict), expected, "line {number}: {object}");
                assert!(!verdict.rule.is_empty());
            }
        }
    }
}
