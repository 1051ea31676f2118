//! Tests of the kind and `apiVersion` that items of lists get.

use taffrail_object::json::{DocumentBuilder, OwnedDocument, Value};
use taffrail_object::{ItemKind, Object, ObjectError};

fn list_of(kind: &str, items: &str) -> OwnedDocument {
    let list = format!(r#"{{"apiVersion": "apps/v1", "kind": "{kind}", "items": [{items}]}}"#);
    OwnedDocument::parse(list.into_bytes()).unwrap()
}

/// Returns `apiVersion kind` of each item, or its error.
fn items_of(list: &OwnedDocument) -> Vec<String> {
    let list = Object::new(list.root()).unwrap();
    let items = list.items().unwrap().map(|item| match item {
        Ok(item) => format!("{} {}", item.api_version(), item.kind()),
        Err(error) => error.to_string(),
    });
    items.collect()
}

#[test]
fn list_items_inherit_the_kind_of_their_list() {
    let items = r#"{}, {"kind": "", "apiVersion": ""}, {"kind": "Pod", "apiVersion": "v1"}, {"kind": "Pod"}, {"apiVersion": "v1"}, 3"#;
    let own =
        ["v1 Pod", " Pod", "the object has no kind", "the value is not a JSON object"].map(str::to_owned);
    let typed = items_of(&list_of("DeploymentList", items));
    assert_eq!(typed[..2], ["apps/v1 Deployment", "apps/v1 Deployment"]);
    assert_eq!(typed[2..], own);
    let any = items_of(&list_of("List", items));
    assert_eq!(any[..2], ["the object has no kind", "the object has no kind"]);
    assert_eq!(any[2..], own);
    assert!(ItemKind::of_list("v1".into(), "Pod".into()).is_none());
}

#[test]
fn partial_object_metadata_gets_the_requested_kind() {
    let item =
        br#"{"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": {"name": "a"}}"#;
    let item = OwnedDocument::parse(item.to_vec()).unwrap();
    let object = ItemKind::new("apps/v1", "Deployment").object(item.root()).unwrap();
    assert_eq!((object.group(), object.kind(), &*object.name()), ("apps", "Deployment", "a"));
    let unknown =
        ItemKind::new("v1", "").object(OwnedDocument::parse(b"{}".to_vec()).unwrap().root()).map(drop);
    assert_eq!(unknown, Err(ObjectError::NoKind));
}

#[test]
fn typed_list_items_get_their_kind_in_text_and_tree() {
    for data in [format!("{}1{}", "[".repeat(500), "]".repeat(500)), "{}".to_owned()] {
        let item = format!(r#"{{ "metadata": {{"name": "a"}}, "data": {data} }}"#);
        let list = list_of("ControllerRevisionList", &format!("{item}, {{}}, {{\"kind\": \"\"}}"));
        let list = Object::new(list.root()).unwrap();
        let items: Vec<_> = list.items().unwrap().map(Result::unwrap).collect();
        let texts: Vec<_> = items.iter().map(|item| item.to_json().unwrap()).collect();
        let said = r#""apiVersion":"apps/v1","kind":"ControllerRevision"}"#;
        assert_eq!(String::from_utf8_lossy(&texts[0]), format!("{},{said}", item.strip_suffix('}').unwrap()));
        assert_eq!(String::from_utf8_lossy(&texts[1]), format!("{{{said}"));
        for text in texts {
            let text = OwnedDocument::parse(text.into_owned()).unwrap();
            let object = Object::new(text.root()).unwrap();
            assert_eq!((object.api_version(), object.kind()), ("apps/v1", "ControllerRevision"));
        }
        assert_eq!(items[2].to_tree().unwrap()["kind"], "ControllerRevision");
        assert_eq!(items[0].to_tree().is_err(), data.len() > 2);
    }
    let whole = OwnedDocument::parse(br#"{"apiVersion": "v1", "kind": "Pod"}"#.to_vec()).unwrap();
    let object = Object::new(whole.root()).unwrap();
    assert!(matches!(object.to_json(), Ok(std::borrow::Cow::Borrowed(_))));
}

/// Objects with indexed parts, escaped and doubled keys, and white space.
const COPIED: [&str; 6] = [
    r#"{"metadata":{"name":"a","labels":{"x":"y"}},"spec":{"replicas":2},"status":{"conditions":[{"type":"Ready","status":"True"},7,{"type":"Other"}]}}"#,
    r#" { "metadata" : {"name":"a"} , "metadata" : {"name":"b"} } "#,
    r#"{"met\u0061data":{"name":"a"},"sp\"ec":[],"":{}}"#,
    r#"{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata","metadata":{"name":"a"}}"#,
    "{ }",
    r#"{"a_key_that_is_longer_than_sixteen_bytes":{"x":1},"status":{"phase":"Running","conditions":[]}}"#,
];

#[test]
fn a_copy_reads_as_its_text_does() {
    let kind = ItemKind::new("apps/v1", "Deployment");
    for text in COPIED {
        let item = OwnedDocument::parse(text.as_bytes()).unwrap();
        let copy = kind.document(item.root()).unwrap();
        let parsed = OwnedDocument::parse(kind.said_by(text.as_bytes())).unwrap();
        let same = |one: &OwnedDocument, other: &OwnedDocument| {
            assert_eq!(one.root().to_tree(), other.root().to_tree(), "{text}");
            for path in [
                &["metadata", "name"][..],
                &["metadata", "labels", "x"],
                &["spec", "replicas"],
                &["status", "phase"],
                &["kind"],
                &["sp\"ec"],
                &["a_key_that_is_longer_than_sixteen_bytes", "x"],
            ] {
                let at = |document: &OwnedDocument| document.root().at(path).map(|it| it.to_tree().unwrap());
                assert_eq!(at(one), at(other), "{text} {path:?}");
            }
            let rows = |document: &OwnedDocument| -> Vec<String> {
                let rows = document.root().at(&["status", "conditions"]).and_then(|it| it.items());
                let of = |row: Value<'_>| row.get("type").map(|it| it.to_tree().unwrap().to_string());
                rows.into_iter().flatten().map(|row| of(row).unwrap_or_default()).collect()
            };
            assert_eq!(rows(one), rows(other), "{text}");
        };
        same(&copy, &parsed);
        // A copy of a copy, and a part of one in another.
        let mut again = DocumentBuilder::new(0);
        again.string("first", "\u{2028}\"");
        again.members(copy.root());
        let again = again.finish().unwrap();
        same(&again, &OwnedDocument::parse(again.text()).unwrap());
        let mut part = DocumentBuilder::new(0);
        for name in ["metadata", "status", "kind"] {
            copy.root().get(name).into_iter().for_each(|value| part.value(name, value));
        }
        let part = part.finish().unwrap();
        same(&part, &OwnedDocument::parse(part.text()).unwrap());
    }
}
