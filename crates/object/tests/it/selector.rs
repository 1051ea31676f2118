//! Tests that label selectors work as those of `k8s.io/apimachinery/pkg/labels`.

use std::borrow::Cow;

use proptest::prelude::*;
use serde_json::{Value, json};
use taffrail_object::LabelSelector;
use taffrail_object::json::OwnedDocument;
use taffrail_object::selector::{InvalidSelector, selects};

fn parse(text: &str) -> Result<LabelSelector, String> {
    text.parse().map_err(|error: InvalidSelector| {
        assert_eq!(error.text, text);
        error.reason
    })
}

/// Returns true if an object's selector selects the labels; checks that [`selects`] agrees with the built selector.
fn selected(selector: &Value, labels: &Value) -> bool {
    let built = LabelSelector::of_object(Some(selector.into())).matches_labels(Some(labels.into()));
    assert_eq!(built, selects(Some(selector.into()), Some(labels.into())), "{selector} {labels}");
    built
}

#[test]
fn selector_text_selects_as_in_the_api_server() {
    let labels = json!({"team": "blue", "tier": "web", "n": "5", "empty": "", "in": "notin"});
    for yes in [
        "",
        " ",
        "team=blue",
        "team==blue",
        "team",
        "!env",
        "env!=prod",
        "team in (red, blue),tier",
        "team in ( blue )",
        "env notin (prod)",
        "team!=red",
        "n>4",
        "n<6",
        "n > 4",
        "empty=",
        "empty in ()",
        "empty in (a,)",
        "empty in (,a)",
        "empty in (a,,b)",
        "empty=,tier",
        "in in (notin)",
        "in=notin",
        "example.com/none!=x",
        "team\t=\r\nblue",
    ] {
        assert!(parse(yes).unwrap().matches_labels(Some((&labels).into())), "{yes}");
    }
    for no in [
        "team=red",
        "env",
        "!team",
        "team!=blue",
        "team=blue,env=prod",
        "team notin (blue)",
        "env in (prod)",
        "n>5",
        "n<5",
        "team>1",
        "env>1",
        "empty!=",
        "team in (Blue)",
    ] {
        assert!(!parse(no).unwrap().matches_labels(Some((&labels).into())), "{no}");
    }
}

#[test]
fn selector_errors_are_those_of_the_api_server() {
    for (text, why) in [
        ("a===b", "unable to parse requirement: found '=', expected: identifier"),
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("a in b", "unable to parse requirement: found 'b' expected: '('"),
        ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("a in (b c)", "unable to parse requirement: found 'c', expected: ',' or ')'"),
        ("a in (=", "unable to parse requirement: found '=', expected: ',', ')' or identifier"),
        ("a in (b,=", "unable to parse requirement: found '=', expected: ',', or identifier"),
        ("!(a", "unable to parse requirement: found '(', expected: identifier"),
        ("=a", "found '=', expected: !, identifier, or 'end of string'"),
        ("a,", "found '', expected: identifier after ','"),
        ("a,,b", "found ',', expected: identifier after ','"),
        ("a=b!c", "found '!', expected: ',' or 'end of string'"),
        ("!a=b", "found '=', expected: ',' or 'end of string'"),
        (
            "a>b",
            "unable to parse requirement: values[0]: Invalid value: \"b\": for 'Gt', 'Lt' operators, the value must be an \
             integer",
        ),
        (
            "a=-b",
            "unable to parse requirement: values[0][a]: Invalid value: \"-b\": a valid label must be an empty string or consist \
             of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue', \
             \u{20}or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
        ),
        (
            "-a",
            "unable to parse requirement: <nil>: Invalid value: \"-a\": name part must consist of alphanumeric characters, '-', \
             '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', \
             regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
        ),
    ] {
        assert_eq!(parse(text).unwrap_err(), why, "{text}");
    }
    for bad in [
        "a/b/c",
        "/a",
        "a/",
        "A/b",
        "a..b/c",
        "a=b/c",
        "é",
        "a=é",
        "(",
        ")",
        "<",
        "a>",
        "a>99999999999999999999",
    ] {
        assert!(parse(bad).is_err(), "{bad}");
    }
    assert!(parse(&format!("{}={}", "k".repeat(63), "v".repeat(63))).is_ok());
    assert!(parse(&"k".repeat(64)).is_err());
    assert!(parse(&format!("k={}", "v".repeat(64))).is_err());
    assert!(parse(&format!("{}/k", "p".repeat(254))).is_err());
}

#[test]
fn selectors_print_in_the_order_of_their_keys() {
    for (text, written) in [
        ("", ""),
        ("c, !b ,a==1", "a=1,!b,c"),
        ("a in (z,b,b),a!=q", "a in (b,z),a!=q"),
        ("a notin (x),n>3,m<2", "a notin (x),m<2,n>3"),
    ] {
        let selector = parse(text).unwrap();
        assert_eq!(selector.to_string(), written);
        assert_eq!(parse(written).unwrap(), selector);
    }
    let of_object = json!({
        "matchLabels": {"b": "1"},
        "matchExpressions": [{"key": "c", "operator": "In", "values": ["x"]}, {"key": "a", "operator": "Exists"}],
    });
    assert_eq!(LabelSelector::of_object(Some((&of_object).into())).to_string(), "a,b=1,c in (x)");
}

#[test]
fn selectors_of_objects_select_as_kubernetes_does() {
    let labels = json!({"app": "web", "tier": "front"});
    let expression = |operator: &str, values: Value| json!({"matchExpressions": [{"key": "app", "operator": operator, "values": values}]});
    for yes in [
        json!({}),
        json!({"matchLabels": null, "matchExpressions": null}),
        json!({"matchLabels": {"app": "web"}, "matchExpressions": []}),
        expression("In", json!(["db", "web"])),
        expression("NotIn", json!(["db"])),
        expression("Exists", json!(null)),
        json!({"matchExpressions": [{"key": "none", "operator": "DoesNotExist"}]}),
        json!({"matchExpressions": [{"key": "none", "operator": "NotIn", "values": ["x"]}]}),
    ] {
        assert!(selected(&yes, &labels), "{yes}");
    }
    for no in [
        json!(null),
        json!("app=web"),
        json!({"matchLabels": {"app": "db"}}),
        json!({"matchLabels": {"app": "web", "none": "x"}}),
        expression("In", json!(["db"])),
        expression("NotIn", json!(["web"])),
        expression("DoesNotExist", json!([])),
    ] {
        assert!(!selected(&no, &labels), "{no}");
    }
    assert!(!selects(None, Some((&labels).into())), "an absent selector selects nothing");
    assert!(selects(Some((&json!({})).into()), None), "an empty selector selects objects without labels");
}

#[test]
fn selectors_that_the_api_server_refuses_select_nothing() {
    let labels = json!({"app": "web"});
    for bad in [
        json!({"matchLabels": "app"}),
        json!({"matchLabels": {"app": 1}}),
        json!({"matchExpressions": {"key": "app"}}),
        json!({"matchExpressions": ["app"]}),
        json!({"matchExpressions": [{"key": "none", "operator": "Near", "values": ["x"]}]}),
        json!({"matchExpressions": [{"key": "none", "operator": "Gt", "values": ["1"]}]}),
        json!({"matchExpressions": [{"key": "none", "operator": "NotIn", "values": []}]}),
        json!({"matchExpressions": [{"key": "none", "operator": "NotIn", "values": [1]}]}),
        json!({"matchExpressions": [{"key": "app", "operator": "Exists", "values": ["web"]}]}),
    ] {
        assert!(!selected(&bad, &labels), "{bad}");
    }
}

#[test]
fn service_selector_requires_all_labels() {
    let labels = json!({"app": "web", "tier": "front"});
    let of =
        |map: Value| LabelSelector::of_labels(Some((&map).into())).matches_labels(Some((&labels).into()));
    assert!(of(json!(null)) && of(json!({})) && of(json!({"app": "web"})) && of(labels.clone()));
    assert!(
        !of(json!({"app": "db"})) && !of(json!({"none": ""})) && !of(json!({"app": 1})) && !of(json!("app"))
    );
}

#[test]
fn retain_drops_requirements() {
    let mut selector = parse("a,b in (x,y)").unwrap();
    selector.retain(|requirement| requirement.values.is_empty());
    assert_eq!(selector.to_string(), "a");
    selector.retain(|_| false);
    assert!(selector.is_everything() && selector == LabelSelector::default());
    let mut nothing = LabelSelector::nothing();
    nothing.retain(|_| false);
    assert!(!nothing.is_everything() && !nothing.matches(|_| Some(Cow::Borrowed("x"))));
}

/// Generates the text of a map of labels, some with duplicate keys and values that are not texts.
fn members() -> impl Strategy<Value = String> {
    let member = ("[ab]", prop_oneof![3 => r#""[xy]""#, 1 => Just("1".to_owned())]);
    proptest::collection::vec(member, 0..4).prop_map(|members| {
        let members: Vec<String> = members.iter().map(|(key, value)| format!("\"{key}\":{value}")).collect();
        format!("{{{}}}", members.join(","))
    })
}

fn expressions() -> impl Strategy<Value = String> {
    let operator = proptest::sample::select(vec!["In", "NotIn", "Exists", "DoesNotExist", "Gt"]);
    let values = prop_oneof![
        4 => proptest::collection::vec(r#""[xy]""#, 0..3).prop_map(|values| format!(",\"values\":[{}]", values.join(","))),
        1 => Just(String::new()),
        1 => Just(",\"values\":[1]".to_owned()),
    ];
    let one = ("[ab]", operator, values).prop_map(|(key, operator, values)| {
        format!("{{\"key\":\"{key}\",\"operator\":\"{operator}\"{values}}}")
    });
    proptest::collection::vec(one, 0..3).prop_map(|all| all.join(","))
}

proptest! {
    #[test]
    fn selects_agrees_with_the_built_selector(
        wanted in members(),
        expressions in expressions(),
        labels in members(),
    ) {
        let selector = format!("{{\"matchLabels\":{wanted},\"matchExpressions\":[{expressions}]}}");
        let selector = OwnedDocument::parse(selector.as_bytes()).unwrap();
        let labels = OwnedDocument::parse(labels.as_bytes()).unwrap();
        let built = LabelSelector::of_object(Some(selector.root())).matches_labels(Some(labels.root()));
        prop_assert_eq!(built, selects(Some(selector.root()), Some(labels.root())));
    }

    #[test]
    fn arbitrary_selector_text_does_not_panic(text in "[ab=!<>(), \0/.é-]{0,20}|.{0,20}") {
        if let Ok(selector) = parse(&text) {
            prop_assert_eq!(parse(&selector.to_string()).unwrap(), selector);
        }
    }
}
