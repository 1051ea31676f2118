//! Values with several spellings, and those of Secrets.

use serde_json::{Value, json};

use super::{DiffStage, OURS, assert_told, changed, container, deployment, manifests, object};

/// The masks of the first, second and third value of a key.
const MASKS: [&str; 3] = ["++++++++", "++++++++++++", "++++++++++++++++"];

/// A value that no answer may show; its form in `data`.
const CANARY: [&str; 2] = ["canary-70b1-behaviour", "Y2FuYXJ5LTcwYjEtYmVoYXZpb3Vy"];

fn secret(name: &str, rest: Value) -> Value {
    object("v1", "Secret", name, rest)
}

/// Plays the forms of a Secret's values.
pub fn string_data_is_merged_into_data(stage: &impl DiffStage) {
    let data = |rest: Value| secret("b35", rest);
    stage.apply(OURS, &data(json!({"data": {"a": "MQ==", "b": "Mg=="}})));
    let unchanged = ["Secret b35: unchanged by server"];
    let both = data(json!({"stringData": {"a": "1"}, "data": {"b": "Mg=="}}));
    for wanted in [data(json!({"stringData": {"a": "1", "b": "2"}})), both] {
        assert_told(stage, &[&wanted], &unchanged);
    }
    let other = data(json!({"stringData": {"a": "1", "b": "3"}}));
    let line = format!("  data.b: {:?} -> {:?}", MASKS[1], MASKS[0]);
    assert_told(stage, &[&other], &["Secret b35: change by server", &line]);
    // A value that is not a text is refused, and not quoted.
    let invalid = data(json!({"stringData": {"a": 424_242}}));
    let answer = stage.diff(&manifests(&[&invalid]), None, &[]);
    assert!(answer.stdout.starts_with("! Secret behaviours/b35 is refused"), "{}", answer.stdout);
    assert!(!answer.stdout.contains("424242") && answer.code == 3, "{}", answer.stdout);

    let null = secret("b35-null", json!({"data": {"a": null}}));
    stage.apply(OURS, &secret("b35-null", json!({"data": {"a": ""}})));
    assert_told(stage, &[&null], &["Secret b35-null: unchanged by server"]);
    // What somebody masked already is a value like others: a text in base64.
    let masked = data(json!({"data": {"a": MASKS[0], "b": "Mg=="}}));
    let line = format!("  data.a: {:?} -> {:?}", MASKS[1], MASKS[0]);
    assert_told(stage, &[&masked], &["Secret b35: change by server", &line]);
}

/// Plays Secrets with equal, other and missing values, on one side or both.
pub fn masks_show_which_values_are_equal(stage: &impl DiffStage) {
    let data = |name: &str, data: Value| secret(name, json!({"type": "Opaque", "data": data}));
    let [one, two, _] = MASKS;
    let line = |path: &str, live: Option<&str>, wanted: Option<&str>| {
        let side = |value: Option<&str>| value.map_or("-".to_owned(), |value| json!(value).to_string());
        format!("  {path}: {} -> {}", side(live), side(wanted))
    };
    // The same key with another value and with the same one, and other keys.
    stage.apply(OURS, &data("b40", json!({"a": "MQ==", "b": CANARY[1], "c": "MQ=="})));
    let wanted = data("b40", json!({"a": "Mg==", "b": CANARY[1], "d": CANARY[1]}));
    let [a, c, d] = [
        line("data.a", Some(two), Some(one)),
        line("data.c", Some(one), None),
        line("data.d", None, Some(one)),
    ];
    assert_told(stage, &[&wanted], &["Secret b40: change by server", &a, &c, &d]);
    let answer = stage.diff(&manifests(&[&wanted]), None, &[]);
    assert!(answer.stdout.contains(&format!("~ data.a: \"{two}\" -> \"{one}\"")), "{}", answer.stdout);

    // An empty manifest, and an empty live Secret.
    let empty = secret("b40", json!({"type": "Opaque"}));
    let answer = stage.diff(&manifests(&[&empty]), None, &["-o", "json"]);
    assert_eq!(answer.code, 1, "{}", answer.stdout);
    stage.apply(OURS, &secret("b40-empty", json!({"type": "Opaque"})));
    let full = data("b40-empty", json!({"a": CANARY[1]}));
    let added = format!("  data: - -> {}", json!({"a": one}));
    assert_told(stage, &[&full], &["Secret b40-empty: change by server", &added]);

    // The copy of kubectl's holds the values, too: it is on neither side, also where it is malformed.
    let before = data("b40-copy", json!({"a": CANARY[1], "b": "MQ=="}));
    stage.apply_on_client_side(&before);
    let wanted = data("b40-copy", json!({"a": "Mg=="}));
    let answer = stage.diff(&manifests(&[&wanted]), None, &["-o", "json"]);
    let paths: Vec<Value> =
        answer.list()["items"][0]["fields"].as_array().unwrap().iter().map(|it| it["path"].clone()).collect();
    assert_eq!(paths, ["data.a", "data.b"], "{}", answer.stdout);
    let malformed = format!("{{\"data\": \"{}\"", CANARY[1]);
    stage.update("ann", &before, &|it| {
        it["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"] = json!(malformed);
        it["metadata"]["annotations"]["note"] = json!(CANARY[0]);
    });
    // Of other annotations of a Secret, values are masked, too.
    let noted = changed(&wanted, |it| it["metadata"]["annotations"] = json!({"note": "other"}));
    let answer = stage.diff(&manifests(&[&noted]), None, &["-o", "json"]);
    let fields = answer.list()["items"][0]["fields"].clone();
    let note =
        fields.as_array().unwrap().iter().find(|it| it["path"] == "metadata.annotations.note").unwrap();
    assert_eq!((&note["live"], &note["wanted"]), (&json!(two), &json!(one)));
    for more in [&["-o", "json"][..], &[], &["--all-fields"]] {
        let answer = stage.diff(&manifests(&[&noted]), None, more);
        assert_eq!(answer.code, 1, "{}{}", answer.stdout, answer.stderr);
        assert_hidden(&answer);
    }
}

/// Plays quantities, templates of claims and CustomResourceDefinitions.
pub fn quantities_are_canonical(stage: &impl DiffStage) {
    let with = |cpu: Value, memory: &str| {
        changed(&deployment("b41"), |it| {
            container(it)["resources"] = json!({"requests": {"cpu": cpu, "memory": memory}})
        })
    };
    stage.apply(OURS, &with(json!("500m"), "1Gi"));
    for (cpu, memory) in [(json!("0.5"), "1024Mi"), (json!(0.5), "1Gi"), (json!("500m"), "1073741824")] {
        let wanted = with(cpu.clone(), memory);
        let answer = stage.diff(&manifests(&[&wanted]), None, &["-o", "json"]);
        // A number of bytes is another form of the same amount, which the server keeps as it is written.
        let is_same_form = memory != "1073741824";
        assert_eq!(answer.code, i32::from(!is_same_form), "{cpu} {memory}: {}", answer.stdout);
    }
    let path = "spec.template.spec.containers[name=web].resources.requests.cpu";
    let more = format!("  {path}: \"500m\" -> \"501m\"");
    assert_told(stage, &[&with(json!("0.501"), "1Gi")], &["Deployment b41: change by server", &more]);

    // Templates get no timestamps, and an empty list is none.
    let labels = json!({"app": "b41"});
    let set = object(
        "apps/v1",
        "StatefulSet",
        "b41",
        json!({"spec": {"replicas": 0, "serviceName": "b41", "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels, "creationTimestamp": null},
                "spec": {"containers": [{"name": "web", "image": "web:1"}]}},
            "volumeClaimTemplates": [{"metadata": {"name": "data", "creationTimestamp": null}, "spec": {
                "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1024Mi"}}}}]}}),
    );
    let account = object("v1", "ServiceAccount", "b41", json!({"imagePullSecrets": []}));
    stage.apply(OURS, &set);
    stage.apply(OURS, &account);
    let unchanged = ["StatefulSet b41: unchanged by server", "ServiceAccount b41: unchanged by server"];
    assert_told(stage, &[&set, &account], &unchanged);
    // The schema in a CustomResourceDefinition is kept as it is written.
    let schema = |default: Value| {
        json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
            "cpu": {"type": "string", "default": default}}}}})
    };
    let definition =
        |default: &str| crate::objects::definition("b41.example.com", "v1", "Amount", schema(json!(default)));
    stage.apply(OURS, &definition("0.1"));
    assert_told(
        stage,
        &[&definition("0.1")],
        &["CustomResourceDefinition amounts.b41.example.com: unchanged by server"],
    );
    let answer = stage.diff(&manifests(&[&definition("100m")]), None, &[]);
    assert!(answer.stdout.contains("\"0.1\"") && answer.stdout.contains("\"100m\""), "{}", answer.stdout);
}

/// Plays changes of a Secret, and manifests of it that the server refuses.
pub fn secrets_are_masked(stage: &impl DiffStage) {
    stage.apply(OURS, &secret("b139", json!({"data": {"pw": CANARY[1], "old": CANARY[1]}})));
    let wanted = secret("b139", json!({"stringData": {"pw": "other", "new": CANARY[0]}}));
    let [one, two, _] = MASKS;
    assert_told(
        stage,
        &[&wanted],
        &[
            "Secret b139: change by server",
            &format!("  data.new: - -> \"{one}\""),
            &format!("  data.old: \"{one}\" -> -"),
            &format!("  data.pw: \"{two}\" -> \"{one}\""),
        ],
    );
    let new = secret("b139-new", json!({"stringData": {"pw": CANARY[0]}}));
    // The server's own message quotes what it refuses.
    let refused = secret(
        "b139",
        json!({"type": "kubernetes.io/dockerconfigjson", "stringData": {".dockerconfigjson": CANARY[0]}}),
    );
    let broken = secret("b139", json!({"data": {"pw": CANARY[0]}}));
    for wanted in [&wanted, &new, &refused, &broken] {
        for more in [&["-o", "json"][..], &[], &["--all-fields"]] {
            let answer = stage.diff(&manifests(&[wanted]), None, more);
            assert_ne!(answer.code, 0, "{}", answer.stdout);
            assert_hidden(&answer);
        }
    }
}

/// Asserts that an answer shows no value of a Secret.
#[track_caller]
fn assert_hidden(answer: &super::DiffAnswer) {
    for canary in CANARY {
        let shown = [&answer.stdout, &answer.stderr].into_iter().any(|text| text.contains(canary));
        assert!(!shown, "{}{}", answer.stdout, answer.stderr);
    }
}
