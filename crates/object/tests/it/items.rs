//! The kind of the items of lists.

use taffrail_object::json::OwnedDocument;
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
    let own = ["v1 Pod", " Pod", "has no kind", "is no object"].map(str::to_owned);
    let typed = items_of(&list_of("DeploymentList", items));
    assert_eq!(typed[..2], ["apps/v1 Deployment", "apps/v1 Deployment"]);
    assert_eq!(typed[2..], own);
    let any = items_of(&list_of("List", items));
    assert_eq!(any[..2], ["has no kind", "has no kind"]);
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
