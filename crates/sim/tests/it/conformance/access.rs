//! Cases about permissions, and the messages of refusals.

use anyhow::{Result, ensure};
use http::Method;
use serde_json::{Value, json};

use crate::api::{Api, map};

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

super::cases! { "access":
    Authorization a_list_is_forbidden,
    Authorization an_object_is_forbidden,
    Authorization a_subresource_is_forbidden,
    Authorization a_path_is_forbidden,
    RefuseBadToken a_bad_token_is_refused,
    Anonymous request_without_token_is_anonymous,
    Impersonation impersonation_uses_the_permissions_of_the_other_user,
    Impersonation impersonation_requires_a_permission,
    Authorization discovery_is_permitted_to_authenticated_users,
    Authorization a_role_grants_in_its_namespace,
    Authorization a_cluster_role_grants_everywhere,
    Authorization a_role_can_name_objects,
    AccessReviews self_access_review_answers_for_the_sender,
    AccessReviews access_review_answers_for_another_user,
    Authorization rules_are_listed,
    Anonymous self_subject_review_returns_the_sender,
    Authorization deletecollection_is_a_verb_of_its_own,
}

async fn a_list_is_forbidden(api: &Api) -> Result<()> {
    let all = api.call(Method::GET, "/api/v1/pods").by_reader().send().await?;
    let message = "pods is forbidden: User \"reader\" cannot list resource \"pods\" in API group \"\" at the cluster scope";
    all.fails(403, "Forbidden", message)?.is("/details", json!({"kind": "pods"}))?;
    let path = "/apis/apps/v1/namespaces/default/deployments";
    let some = api.call(Method::GET, &format!("{path}?watch=1")).by_reader().send().await?;
    let message = "deployments.apps is forbidden: User \"reader\" cannot watch resource \"deployments\" in API group \"apps\" \
                   in the namespace \"default\"";
    some.fails(403, "Forbidden", message)?.is("/details", json!({"group": "apps", "kind": "deployments"}))?;
    Ok(())
}

async fn an_object_is_forbidden(api: &Api) -> Result<()> {
    let one = api.call(Method::GET, "/api/v1/namespaces/default/pods/x").by_reader().send().await?;
    let message = "pods \"x\" is forbidden: User \"reader\" cannot get resource \"pods\" in API group \"\" in the namespace \
                   \"default\"";
    one.fails(403, "Forbidden", message)?.is("/details", json!({"name": "x", "kind": "pods"}))?;
    let namespace = api.call(Method::GET, "/api/v1/namespaces/default").by_reader().send().await?;
    let message = "namespaces \"default\" is forbidden: User \"reader\" cannot get resource \"namespaces\" in API group \"\" in \
                   the namespace \"default\"";
    namespace.fails(403, "Forbidden", message)?;
    Ok(())
}

async fn a_subresource_is_forbidden(api: &Api) -> Result<()> {
    let scale = api
        .call(Method::GET, "/apis/apps/v1/namespaces/default/deployments/x/scale")
        .by_reader()
        .send()
        .await?;
    let message = "deployments.apps \"x\" is forbidden: User \"reader\" cannot get resource \"deployments/scale\" in API group \
                   \"apps\" in the namespace \"default\"";
    scale.fails(403, "Forbidden", message)?;
    Ok(())
}

async fn a_path_is_forbidden(api: &Api) -> Result<()> {
    let metrics = api.call(Method::GET, "/metrics").by_reader().send().await?;
    metrics
        .fails(403, "Forbidden", "forbidden: User \"reader\" cannot get path \"/metrics\"")?
        .is("/details", json!({}))?;
    Ok(())
}

async fn a_bad_token_is_refused(api: &Api) -> Result<()> {
    // Connections without a known user are closed.
    let api = &api.apart();
    let refused = api.call(Method::GET, "/version").by(Some("nonsense")).send().await?;
    refused.fails(401, "Unauthorized", "Unauthorized")?;
    Ok(())
}

async fn request_without_token_is_anonymous(api: &Api) -> Result<()> {
    // Connections without a known user are closed.
    let api = &api.apart();
    let refused = api.call(Method::GET, "/api/v1/nodes").by(None).send().await?;
    let message = "nodes is forbidden: User \"system:anonymous\" cannot list resource \"nodes\"";
    refused.fails(403, "Forbidden", message)?;
    api.call(Method::GET, "/version").by(None).send().await?.ok()?;
    api.call(Method::GET, "/api").by(None).send().await?.code(403)?;
    Ok(())
}

async fn discovery_is_permitted_to_authenticated_users(api: &Api) -> Result<()> {
    for path in ["/api", "/apis", "/apis/apps/v1", "/openapi/v3", "/version"] {
        api.call(Method::GET, path).by_reader().send().await?.code(200)?;
    }
    api.call(Method::GET, "/").by_reader().send().await?.code(403)?;
    Ok(())
}

/// Grants the group `readers` the permission `rule`, in a namespace or in the whole cluster, through a new role and its
/// binding.
async fn bound(api: &Api, namespace: Option<&str>, rule: Value) -> Result<()> {
    let (place, role, binding, kind) = match namespace {
        Some(namespace) => (format!("/namespaces/{namespace}"), "roles", "rolebindings", "Role"),
        None => (String::new(), "clusterroles", "clusterrolebindings", "ClusterRole"),
    };
    let name = api.unique("role");
    api.post(&format!("{RBAC}{place}/{role}"), json!({"metadata": {"name": name}, "rules": [rule]}))
        .await?
        .ok()?;
    let subject = json!({"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": "readers"});
    let reference = json!({"kind": kind, "apiGroup": "rbac.authorization.k8s.io", "name": name});
    let body = json!({"metadata": {"name": name}, "subjects": [subject], "roleRef": reference});
    api.post(&format!("{RBAC}{place}/{binding}"), body).await?.ok()?;
    Ok(())
}

async fn read(api: &Api, path: &str) -> Result<u16> {
    Ok(api.call(Method::GET, path).by_reader().send().await?.code)
}

async fn a_role_grants_in_its_namespace(api: &Api) -> Result<()> {
    let (mine, other) = (api.namespace().await?, api.namespace().await?);
    let path = |namespace: &str| format!("/api/v1/namespaces/{namespace}/configmaps");
    ensure!(read(api, &path(&mine)).await? == 403, "allowed before");
    bound(api, Some(&mine), json!({"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}))
        .await?;
    api.until("the role holds", || async { Ok(read(api, &path(&mine)).await? == 200) }).await?;
    ensure!(read(api, &path(&other)).await? == 403, "allowed elsewhere");
    ensure!(read(api, "/api/v1/configmaps").await? == 403, "allowed everywhere");
    ensure!(read(api, &format!("{}/x", path(&mine))).await? == 403, "another verb is allowed");
    Ok(())
}

async fn a_cluster_role_grants_everywhere(api: &Api) -> Result<()> {
    ensure!(read(api, "/apis/node.k8s.io/v1/runtimeclasses").await? == 403, "allowed before");
    bound(api, None, json!({"apiGroups": ["node.k8s.io"], "resources": ["*"], "verbs": ["list"]})).await?;
    let holds = || async { Ok(read(api, "/apis/node.k8s.io/v1/runtimeclasses").await? == 200) };
    api.until("the role holds", holds).await
}

async fn a_role_can_name_objects(api: &Api) -> Result<()> {
    let namespace = api.namespace().await?;
    let maps = format!("/api/v1/namespaces/{namespace}/configmaps");
    for name in ["a", "b"] {
        api.post(&maps, map(name)).await?.ok()?;
    }
    let rule =
        json!({"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"], "resourceNames": ["a"]});
    bound(api, Some(&namespace), rule).await?;
    api.until("the role holds", || async { Ok(read(api, &format!("{maps}/a")).await? == 200) }).await?;
    ensure!(read(api, &format!("{maps}/b")).await? == 403, "another object is allowed");
    Ok(())
}

async fn self_access_review_answers_for_the_sender(api: &Api) -> Result<()> {
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let question = json!({"spec": {"resourceAttributes": {"verb": "list", "resource": "secrets"}}});
    let admin = api.post(path, question.clone()).await?;
    admin.code(201)?.is("/kind", "SelfSubjectAccessReview")?.is("/status/allowed", true)?;
    let reader = api.call(Method::POST, path).by_reader().json(question).send().await?;
    reader.code(201)?.is("/status/allowed", false)?;
    Ok(())
}

async fn access_review_answers_for_another_user(api: &Api) -> Result<()> {
    let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
    let question = |user: &str, groups: Value| json!({"spec": {"user": user, "groups": groups, "resourceAttributes": {"verb": "delete", "resource": "nodes"}}});
    api.post(path, question("somebody", json!([]))).await?.code(201)?.is("/status/allowed", false)?;
    api.post(path, question("root", json!(["system:masters"])))
        .await?
        .code(201)?
        .is("/status/allowed", true)?;
    let reader = api.call(Method::POST, path).by_reader().json(question("x", json!([]))).send().await?;
    reader.fails(403, "Forbidden", "User \"reader\" cannot create resource \"subjectaccessreviews\"")?;
    Ok(())
}

async fn rules_are_listed(api: &Api) -> Result<()> {
    let namespace = api.namespace().await?;
    let verb = json!({"apiGroups": ["example.com"], "resources": ["things"], "verbs": ["get"]});
    bound(api, Some(&namespace), verb.clone()).await?;
    let path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
    let told = || async {
        let body = json!({"spec": {"namespace": namespace}});
        let review = api.call(Method::POST, path).by_reader().json(body).send().await?.ok()?;
        let rules = review.at("/status/resourceRules").as_array().cloned().unwrap_or_default();
        Ok(rules.iter().any(|rule| rule["resources"] == json!(["things"]) && rule["verbs"] == json!(["get"])))
    };
    api.until("the rule is listed", told).await?;
    // Permissions of all users are included, those of other users are not.
    let body = json!({"spec": {"namespace": namespace}});
    let review = api.call(Method::POST, path).by_reader().json(body).send().await?.ok()?;
    ensure!(review.text.contains("selfsubjectaccessreviews"), "{}", review.text);
    ensure!(
        read(api, &format!("/api/v1/namespaces/{namespace}/secrets")).await? == 403,
        "allowed without a rule"
    );
    Ok(())
}

async fn self_subject_review_returns_the_sender(api: &Api) -> Result<()> {
    // Connections without a known user are closed.
    let api = &api.apart();
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let review = api.call(Method::POST, path).by_reader().json(json!({})).send().await?;
    review.code(201)?.is("/status/userInfo/username", "reader")?;
    review.is("/status/userInfo/groups", json!(["readers", "system:authenticated"]))?;
    api.call(Method::POST, path).by(None).json(json!({})).send().await?.code(403)?;
    Ok(())
}

async fn deletecollection_is_a_verb_of_its_own(api: &Api) -> Result<()> {
    let path = "/api/v1/namespaces/default/pods";
    let refused = api.call(Method::DELETE, path).by_reader().send().await?;
    let message = "pods is forbidden: User \"reader\" cannot deletecollection resource \"pods\" in API group \"\" in the \
                   namespace \"default\"";
    refused.fails(403, "Forbidden", message)?;
    Ok(())
}

async fn impersonation_uses_the_permissions_of_the_other_user(api: &Api) -> Result<()> {
    let call = || api.call(Method::GET, "/api/v1/secrets").header("impersonate-user", "somebody");
    let message = "secrets is forbidden: User \"somebody\" cannot list resource \"secrets\" in API group \"\" at the cluster scope";
    call().send().await?.fails(403, "Forbidden", message)?;
    call().header("impersonate-group", "system:masters").send().await?.ok()?;
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let told = api
        .call(Method::POST, path)
        .header("impersonate-user", "somebody")
        .header("impersonate-group", "a")
        .json(review)
        .send()
        .await?
        .ok()?;
    told.is("/status/userInfo/username", "somebody")?;
    told.is("/status/userInfo/groups", json!(["a", "system:authenticated"]))?;
    Ok(())
}

async fn impersonation_requires_a_permission(api: &Api) -> Result<()> {
    let refused = api
        .call(Method::GET, "/api/v1/secrets")
        .by_reader()
        .header("impersonate-user", "admin")
        .send()
        .await?;
    let message = "secrets is forbidden: User \"reader\" cannot impersonate-on:user-info:list resource \"secrets\" in API group \
                   \"\" at the cluster scope";
    refused.fails(403, "Forbidden", message)?;
    Ok(())
}
