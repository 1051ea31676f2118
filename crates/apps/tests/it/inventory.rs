//! Parsing and formatting of inventory ids.

use proptest::prelude::*;
use taffrail_apps::inventory_id;
use taffrail_object::ObjectKey;

const RBAC: &str = "rbac.authorization.k8s.io";

#[test]
fn inventory_ids_round_trip() {
    for (id, key) in [
        ("_podinfo__Namespace", ObjectKey::new("", "Namespace", "", "podinfo")),
        ("default_podinfo_apps_Deployment", ObjectKey::new("apps", "Deployment", "default", "podinfo")),
        ("shop_web__Service", ObjectKey::new("", "Service", "shop", "web")),
        (
            "_wikis.example.com_apiextensions.k8s.io_CustomResourceDefinition",
            ObjectKey::new("apiextensions.k8s.io", "CustomResourceDefinition", "", "wikis.example.com"),
        ),
        (
            "_system__node_rbac.authorization.k8s.io_ClusterRole",
            ObjectKey::new(RBAC, "ClusterRole", "", "system:node"),
        ),
        (
            "_a__b__c_rbac.authorization.k8s.io_ClusterRoleBinding",
            ObjectKey::new(RBAC, "ClusterRoleBinding", "", "a:b:c"),
        ),
        (
            "kube-system___lead_rbac.authorization.k8s.io_Role",
            ObjectKey::new(RBAC, "Role", "kube-system", ":lead"),
        ),
        (
            "kube-system_trail___rbac.authorization.k8s.io_RoleBinding",
            ObjectKey::new(RBAC, "RoleBinding", "kube-system", "trail:"),
        ),
        (
            "shop_one_two_three_rbac.authorization.k8s.io_Role",
            ObjectKey::new(RBAC, "Role", "shop", "one_two_three"),
        ),
    ] {
        assert_eq!(inventory_id::parse(id), Ok(key.clone()), "{id}");
        assert_eq!(inventory_id::format(&key), id);
    }
}

#[test]
fn malformed_inventory_ids_are_quoted_in_errors() {
    for id in
        ["", "notanid", "shop_web", "shop_web_Deployment", "shop__apps_Deployment", "shop_web_apps_", "___"]
    {
        let error = inventory_id::parse(id).unwrap_err().to_string();
        assert!(error.contains(&format!("'{id}'")), "{error}");
    }
}

fn name(rbac: bool) -> impl Strategy<Value = String> {
    // In names of RBAC objects `:` is written as two underscores, so those beside others are lost; real names have none.
    if rbac { "[a-z0-9]{1,8}([:_.-][a-z0-9]{1,8}){0,4}" } else { "[a-z0-9]{1,8}([.-][a-z0-9]{1,8}){0,4}" }
}

proptest! {
    #[test]
    fn an_id_names_its_object(
        (rbac, name) in any::<bool>().prop_flat_map(|rbac| (Just(rbac), name(rbac))),
        namespace in "([a-z0-9-]{1,20})?",
        group in "([a-z]{1,8}(\\.[a-z0-9]{1,8}){0,3})?",
        kind in "[A-Z][A-Za-z0-9]{0,20}",
    ) {
        let key = match rbac {
            true => ObjectKey::new(RBAC, "ClusterRole", namespace, name),
            false => ObjectKey::new(group, kind, namespace, name),
        };
        prop_assert_eq!(inventory_id::parse(&inventory_id::format(&key)), Ok(key));
    }

    #[test]
    fn no_text_breaks_the_reader(id in "\\PC*") {
        if let Ok(key) = inventory_id::parse(&id) {
            prop_assert!(!key.name.is_empty() && !key.kind.is_empty());
        }
    }

    #[test]
    fn no_underscores_break_the_reader(id in "[_a:]{0,12}") {
        let _ = inventory_id::parse(&id);
    }
}
