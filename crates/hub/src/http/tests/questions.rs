//! The questions of views.

use std::sync::Mutex;
use std::time::Duration;

use jiff::Timestamp;
use taffrail_api::logs::LogsQuestion;
use taffrail_api::question::{
    AppsView, FleetFacts, ListAnswer, QuestionError, RowSelection, TrustAnswer, ViewAnswer, ViewQuestion,
};

use super::*;
use crate::http::guard::{LOGS, QUESTIONS};
use crate::http::openapi::{document, faults};
use crate::{Ask, AskError, Asking, AskingLogs, LogBounds};

/// An asker that answers each question with an empty list, and remembers it.
#[derive(Default)]
struct Empty {
    asked: Mutex<Vec<ViewQuestion>>,
}

fn facts() -> FleetFacts {
    FleetFacts {
        now: Timestamp::UNIX_EPOCH,
        clusters: 1,
        only: Some("eu-1".to_owned()),
        unobserved: ["eu-1".to_owned()].into(),
        last_observed: Default::default(),
        problems: Vec::new(),
    }
}

impl Ask for Empty {
    fn ask(&self, question: ViewQuestion, _: Duration) -> Asking<'_> {
        self.asked.lock().unwrap().push(question.clone());
        Box::pin(async move {
            match question {
                ViewQuestion::Apps(AppsView { rows }) if rows.filter.clusters.is_empty() => {
                    Ok(ViewAnswer::Apps(ListAnswer {
                        fleet: facts(),
                        items: Vec::new(),
                        left_out: Vec::new(),
                        errors: Vec::new(),
                        is_well: true,
                        missing_namespaces: Vec::new(),
                        is_none_declared: false,
                        elsewhere: None,
                    }))
                }
                ViewQuestion::Trust(_) => Ok(ViewAnswer::Trust(TrustAnswer {
                    fleet: facts(),
                    items: Vec::new(),
                    checked: Vec::new(),
                    errors: Vec::new(),
                })),
                ViewQuestion::Events(_) => Err(AskError::Busy("eu-1".to_owned())),
                ViewQuestion::Clusters(_) => Err(AskError::Ended),
                ViewQuestion::Resources(_) => Err(AskError::Invalid("not that".to_owned())),
                _ => {
                    let known = vec!["eu-1".to_owned()];
                    Err(QuestionError::UnknownCluster { name: "us-1".to_owned(), known }.into())
                }
            }
        })
    }

    fn logs(&self, _: LogsQuestion, _: LogBounds) -> AskingLogs<'_> {
        Box::pin(async { Err(AskError::Ended) })
    }
}

fn asked(limits: Limits) -> (Router, Arc<Empty>) {
    let asker = Arc::new(Empty::default());
    let hub = HubApi::of(Arc::clone(&fleet().index), None, limits).unwrap();
    (router(Arc::new(hub.with_asker(asker.clone()))), asker)
}

async fn post(router: &Router, body: &Value) -> Got {
    let request = http::Request::post("/api/v1/questions").body(Body::from(body.to_string())).unwrap();
    send(router, request).await
}

#[tokio::test]
async fn a_question_is_passed_on_and_its_answer_returned() {
    let (router, asker) = asked(Limits::default());
    let filter = json!({ "status": "!Ready", "labels": "team in (a,b)", "sync": "Failed,!Synced", "problems": ["sync"] });
    let question =
        json!({ "view": "apps", "rows": { "names": ["shop/web"], "filter": filter, "sort": "since" } });
    let got = post(&router, &question).await;
    assert_eq!((got.status, &*got.content_type), (StatusCode::OK, "application/json"), "{got:?}");
    assert_eq!(got.body["fleet"]["only"], "eu-1");
    let asked = asker.asked.lock().unwrap().pop().unwrap();
    let ViewQuestion::Apps(AppsView { rows: RowSelection { names, filter, .. } }) = &asked else {
        panic!("{asked:?}")
    };
    assert_eq!(names[0].to_string(), "shop/web");
    assert_eq!(filter.status, Some("!Ready".parse().unwrap()));
    // It goes over the wire unchanged.
    let again: ViewQuestion = serde_json::from_value(serde_json::to_value(&asked).unwrap()).unwrap();
    assert_eq!(again, asked);
    let document = document();
    let schema = document.pointer("/components/schemas/ViewAnswer").unwrap();
    assert_eq!(faults(&document, schema, &got.body, ""), [""; 0]);
}

#[tokio::test]
async fn what_cannot_be_answered_is_refused_with_the_reason() {
    let (router, _) = asked(Limits::default());
    let of_cluster = json!({ "view": "apps", "rows": { "filter": { "clusters": ["us-1"] } } });
    let got = post(&router, &of_cluster).await;
    assert_eq!(got.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(got.content_type, "application/problem+json");
    assert_eq!(got.body["detail"], "there is no cluster 'us-1'");
    assert_eq!(got.body["question"]["unknownCluster"]["known"], json!(["eu-1"]));
    for (question, status) in [
        (json!({ "view": "resources" }), 400),
        (json!({ "view": "clusters" }), 500),
        (json!({ "view": "secrets" }), 400),
        (json!({}), 400),
        (json!("apps"), 400),
        // A hub that does not know a condition must not answer without it.
        (json!({ "view": "apps", "colour": "red" }), 400),
        (json!({ "view": "apps", "rows": { "colour": "red" } }), 400),
        (json!({ "view": "apps", "rows": { "filter": { "colour": "red" } } }), 400),
        (json!({ "view": "apps", "rows": { "filter": { "status": "Red" } } }), 400),
        (json!({ "view": "apps", "rows": { "names": [""] } }), 400),
        (json!({ "view": "apps", "rows": { "names": ["a".repeat(20_000)] } }), 413),
    ] {
        let got = post(&router, &question).await;
        assert_eq!(got.status.as_u16(), status, "{question} {got:?}");
        assert_eq!(got.body["status"], status, "{got:?}");
    }
    let (short, _) = asked(Limits { answer: 10, ..Limits::default() });
    let got = post(&short, &json!({ "view": "apps" })).await;
    assert_eq!((got.status.as_u16(), &got.body["title"]), (422, &json!("Answer too large")));
    // What is asked of clusters has a bound of its own.
    assert_eq!(post(&short, &json!({ "view": "trust" })).await.status, StatusCode::OK);
    let (short, _) = asked(Limits { drill_down: 10, ..Limits::default() });
    assert_eq!(post(&short, &json!({ "view": "trust" })).await.status.as_u16(), 422);
    assert_eq!(post(&short, &json!({ "view": "apps" })).await.status, StatusCode::OK);
    let got = post(&short, &json!({ "view": "events" })).await;
    assert_eq!(got.status, StatusCode::SERVICE_UNAVAILABLE);
    let busy = "the hub already reads cluster eu-1 for as many questions as it may at one time";
    assert_eq!(got.body["detail"], busy);
    let got = post(&open_router(&fleet()), &json!({ "view": "apps" })).await;
    assert_eq!(got.status, StatusCode::NOT_FOUND, "a hub without clusters of its own answers no views");
}

#[test]
fn fields_of_a_question_may_be_left_out_as_the_openapi_document_says() {
    let document = document();
    let checked = |schema: &str, question: Value| {
        faults(&document, &json!({ "$ref": format!("#/components/schemas/{schema}") }), &question, schema)
    };
    for view in ["apps", "clusters", "resources", "events", "trust", "overview"] {
        let question = json!({ "view": view });
        let read = serde_json::from_value::<ViewQuestion>(question.clone());
        let found = checked("ViewQuestion", question);
        assert_eq!((read.is_ok(), found), (true, Vec::new()), "{view}");
    }
    // What is a set may be given with repetitions.
    let filter = json!({ "problems": ["sync", "sync"] });
    let question = json!({ "view": "apps", "rows": { "filter": filter } });
    assert!(serde_json::from_value::<ViewQuestion>(question).is_ok());
    let filter = document.pointer("/components/schemas/Filter/properties/problems").unwrap();
    assert!(!filter.to_string().contains("uniqueItems"), "{filter}");
    let question = json!({ "what": "shop" });
    assert!(serde_json::from_value::<LogsQuestion>(question.clone()).is_ok());
    assert_eq!(checked("LogsQuestion", question), [""; 0]);
}

/// Lists in place of objects have no names that say what their values mean.
#[tokio::test]
async fn questions_with_a_list_in_place_of_an_object_are_refused() {
    let (router, asker) = asked(Limits::default());
    for (path, body) in [
        (QUESTIONS, json!(["apps"])),
        (QUESTIONS, json!({ "view": "apps", "rows": [] })),
        (QUESTIONS, json!({ "view": "resources", "rows": { "filter": [null, null] } })),
        (QUESTIONS, json!({ "view": "trust", "apps": ["shop", []] })),
        (LOGS, json!(["shop"])),
    ] {
        let request = http::Request::post(path).body(Body::from(body.to_string())).unwrap();
        let got = send(&router, request).await;
        assert_eq!(
            (got.status.as_u16(), &*got.content_type),
            (400, "application/problem+json"),
            "{body} {got:?}"
        );
    }
    assert!(asker.asked.lock().unwrap().is_empty());
}
