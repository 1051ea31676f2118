//! Authentication and authorisation.
//!
//! The permissions come from the cluster's own Roles and bindings, so granting one works as on a real cluster.

use http::{HeaderMap, HeaderValue};
use serde_json::{Value, json};

use crate::behaviour::Behaviour;
use crate::error::{Answered, ApiError};
use crate::state::{Inner, User};
use crate::store::Store;
use crate::target::{Target, key};

/// The group whose members may do everything.
const MASTERS: &str = "system:masters";

/// The group of roles and bindings.
const RBAC: &str = "rbac.authorization.k8s.io";

/// The parts of a request on which permission depends.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wish<'a> {
    pub(crate) verb: &'a str,
    pub(crate) group: &'a str,
    pub(crate) resource: &'a str,
    pub(crate) subresource: &'a str,
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
    /// The path of a request that is not for a resource; then the other fields except the verb are empty.
    pub(crate) path: &'a str,
}

impl Inner {
    /// Returns the user of a request with this `Authorization` header: the one with this bearer token, the anonymous
    /// one without a header, or the error 401 for any other header.
    pub(crate) fn authenticate(&self, header: Option<&str>) -> Answered<User> {
        let anonymous = || User::new("system:anonymous", "", &["system:unauthenticated"]);
        let Some(header) = header else {
            return Ok(if self.does.on(Behaviour::Anonymous) { anonymous() } else { self.admin().clone() });
        };
        let token = header.strip_prefix("Bearer ").unwrap_or_default().trim();
        let users = self.users.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        match users.iter().find(|user| user.token == token && !token.is_empty()) {
            Some(user) => Ok(user.clone()),
            None if self.does.on(Behaviour::RefuseBadToken) => Err(ApiError::unauthorized()),
            None => Ok(anonymous()),
        }
    }

    /// Returns the user named in the impersonation headers; fails with 403 if the sender `user` may not impersonate
    /// that user and each of the named groups. Without `Impersonate-User` it returns `user`. Only user and groups can
    /// be impersonated.
    pub(crate) fn impersonated(&self, headers: &HeaderMap, user: User, wish: &Wish<'_>) -> Answered<User> {
        let text = |value: &HeaderValue| value.to_str().unwrap_or_default().to_owned();
        let Some(name) = headers.get("impersonate-user").map(text) else { return Ok(user) };
        if !self.does.on(Behaviour::Impersonation) {
            return Ok(user);
        }
        let mut groups: Vec<String> = headers.get_all("impersonate-group").iter().map(text).collect();
        let store = self.store();
        for (resource, name) in
            std::iter::once(("users", &name)).chain(groups.iter().map(|group| ("groups", group)))
        {
            if !self.may(&store, &user, &Wish { verb: "impersonate", resource, name, ..Wish::default() }) {
                let verb = format!("impersonate-on:user-info:{}", wish.verb);
                return Err(refusal(&store, &user, &Wish { verb: &verb, ..wish.clone() }));
            }
        }
        if name != "system:anonymous" && !groups.iter().any(|group| group == "system:authenticated") {
            groups.push("system:authenticated".to_owned());
        }
        Ok(User { name, token: String::new(), groups })
    }

    /// Returns true if the cluster's roles allow a user to send this request, or the user is in `system:masters`.
    pub(crate) fn may(&self, store: &Store, user: &User, wish: &Wish<'_>) -> bool {
        if user.groups.iter().any(|group| group == MASTERS) || !self.does.on(Behaviour::Authorization) {
            return true;
        }
        rules(store, user, wish.namespace).iter().any(|rule| grants(rule, wish))
    }

    /// Checks that a user may send this request; fails with 403 otherwise.
    pub(crate) fn authorize(&self, store: &Store, user: &User, wish: &Wish<'_>) -> Answered<()> {
        if self.may(store, user, wish) { Ok(()) } else { Err(refusal(store, user, wish)) }
    }

    /// Answers a review request, such as a SelfSubjectAccessReview: returns `body` with the status filled in and new
    /// metadata. `plural` is the resource of the review; the review is about `user`, except that a SubjectAccessReview
    /// names another.
    pub(crate) fn review(&self, store: &Store, user: &User, plural: &str, mut body: Value) -> Value {
        if !body.is_object() {
            body = json!({});
        }
        body["metadata"] = json!({});
        match plural {
            "selfsubjectaccessreviews" | "subjectaccessreviews" => {
                let asked = match plural {
                    "subjectaccessreviews" => {
                        let groups = body["spec"]["groups"].as_array().into_iter().flatten();
                        let groups: Vec<&str> = groups.filter_map(Value::as_str).collect();
                        User::new(body["spec"]["user"].as_str().unwrap_or_default(), "", &groups)
                    }
                    _ => user.clone(),
                };
                let attributes = &body["spec"]["resourceAttributes"];
                let of = |key: &str| attributes[key].as_str().unwrap_or_default();
                let paths = &body["spec"]["nonResourceAttributes"];
                let wish = Wish {
                    verb: if attributes.is_object() {
                        of("verb")
                    } else {
                        paths["verb"].as_str().unwrap_or_default()
                    },
                    group: of("group"),
                    resource: of("resource"),
                    subresource: of("subresource"),
                    namespace: of("namespace"),
                    name: of("name"),
                    path: paths["path"].as_str().unwrap_or_default(),
                };
                let allowed = self.may(store, &asked, &wish) && self.does.on(Behaviour::AccessReviews);
                body["status"] = json!({"allowed": allowed});
            }
            "selfsubjectrulesreviews" => {
                let namespace = body["spec"]["namespace"].as_str().unwrap_or_default();
                let all = if user.groups.iter().any(|group| group == MASTERS) {
                    vec![
                        json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}),
                        json!({"verbs": ["*"], "nonResourceURLs": ["*"]}),
                    ]
                } else {
                    rules(store, user, namespace)
                };
                let (paths, resources): (Vec<Value>, Vec<Value>) =
                    all.into_iter().partition(|rule| rule.get("nonResourceURLs").is_some());
                body["status"] =
                    json!({"resourceRules": resources, "nonResourceRules": paths, "incomplete": false});
                body["spec"] = json!({});
            }
            _ => {
                let created = crate::clock::stamp(self.fleet.clock.now());
                body["metadata"] = json!({"creationTimestamp": created});
                let info = json!({"username": user.name, "uid": user.name, "groups": user.groups});
                body["status"] = json!({"userInfo": info});
            }
        }
        body
    }
}

impl Inner {
    /// Fails if a write of a role or a binding would grant what its sender may not do: with 404 if a binding names a role
    /// that does not exist, else with 403. Members of `system:masters`, the simulator's controllers (without a `user`),
    /// and users with the verb `escalate` or `bind` may grant anything.
    pub(crate) fn check_grants(
        &self,
        store: &Store,
        user: Option<&User>,
        target: &Target,
        before: &Value,
        after: &Value,
    ) -> Answered<()> {
        let resource = &target.resource;
        let Some(user) = user.filter(|user| !user.groups.iter().any(|group| group == MASTERS)) else {
            return Ok(());
        };
        if &*resource.group != RBAC || !self.does.on(Behaviour::EscalationRefused) {
            return Ok(());
        }
        let is_binding = resource.plural.ends_with("bindings");
        let parts: &[&str] =
            if is_binding { &["roleRef", "subjects"] } else { &["rules", "aggregationRule"] };
        if !before.is_null() && parts.iter().all(|part| before[*part] == after[*part]) {
            return Ok(());
        }
        let name = after["metadata"]["name"].as_str().unwrap_or_default();
        let namespace = &*target.namespace;
        let (verb, plural, role, granted) = if is_binding {
            let role = after["roleRef"]["name"].as_str().unwrap_or_default();
            let plural = match after["roleRef"]["kind"].as_str() {
                Some("Role") => "roles",
                _ => "clusterroles",
            };
            ("bind", plural, role, None)
        } else {
            ("escalate", &*resource.plural, name, Some(after["rules"].clone()))
        };
        if self.may(
            store,
            user,
            &Wish { verb, group: RBAC, resource: plural, namespace, name: role, ..Wish::default() },
        ) {
            return Ok(());
        }
        let granted = match granted {
            Some(granted) => granted,
            None => {
                let Some((shelf, _)) = store.find(RBAC, plural) else { return Ok(()) };
                let key = if plural == "roles" { key(namespace, role) } else { role.to_owned() };
                // The error names the role by the resource of the request.
                let found = store.get(shelf, &key).ok_or_else(|| ApiError::not_found(resource, role))?;
                found.tree("", "")["rules"].clone()
            }
        };
        let held = rules(store, user, namespace);
        let missing: Vec<String> = granted
            .as_array()
            .into_iter()
            .flatten()
            .filter(|rule| !covers(&held, rule))
            .map(compact)
            .collect();
        if missing.is_empty() {
            return Ok(());
        }
        let groups: Vec<String> = user.groups.iter().map(|group| format!("{group:?}")).collect();
        let why = format!(
            "user {:?} (groups=[{}]) is attempting to grant RBAC permissions not currently held:\n{}",
            user.name,
            groups.join(" "),
            missing.join("\n")
        );
        Err(ApiError::forbidden(resource, name, &why))
    }
}

/// Returns true if the rules that a user has allow everything that `rule` allows.
fn covers(held: &[Value], rule: &Value) -> bool {
    let list = |key: &str| -> Vec<&str> {
        rule[key].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
    };
    let allows = |wish: &Wish<'_>| held.iter().any(|held| grants(held, wish));
    let names = match list("resourceNames") {
        names if names.is_empty() => vec![""],
        names => names,
    };
    list("verbs").into_iter().all(|verb| {
        let paths = list("nonResourceURLs");
        let may_read = paths.iter().all(|path| allows(&Wish { verb, path, ..Wish::default() }));
        let resources = list("resources");
        let mut all =
            list("apiGroups").into_iter().flat_map(|group| resources.iter().map(move |it| (group, *it)));
        may_read
            && all.all(|(group, named)| {
                let (resource, subresource) = named.split_once('/').unwrap_or((named, ""));
                let wish = |name| Wish { verb, group, resource, subresource, name, ..Wish::default() };
                names.iter().all(|name| allows(&wish(name)))
            })
    })
}

/// Formats a rule as kube-apiserver names it in a refusal.
fn compact(rule: &Value) -> String {
    let keys = [
        ("nonResourceURLs", "NonResourceURLs"),
        ("apiGroups", "APIGroups"),
        ("resources", "Resources"),
        ("resourceNames", "ResourceNames"),
        ("verbs", "Verbs"),
    ];
    let parts = keys.iter().filter_map(|(key, shown)| {
        let values = rule[*key].as_array().filter(|values| !values.is_empty())?;
        let values: Vec<String> = values.iter().map(Value::to_string).collect();
        Some(format!("{shown}:[{}]", values.join(" ")))
    });
    format!("{{{}}}", parts.collect::<Vec<String>>().join(", "))
}

/// Builds the error 403 for a request that the user may not send.
fn refusal(store: &Store, user: &User, wish: &Wish<'_>) -> ApiError {
    if !wish.path.is_empty() {
        let why = format!("User {:?} cannot {} path {:?}", user.name, wish.verb, wish.path);
        return ApiError::forbidden_path(why);
    }
    let resource = match wish.subresource {
        "" => wish.resource.to_owned(),
        subresource => format!("{}/{subresource}", wish.resource),
    };
    let place = match wish.namespace {
        "" => "at the cluster scope".to_owned(),
        namespace => format!("in the namespace {namespace:?}"),
    };
    let why = format!(
        "User {:?} cannot {} resource {resource:?} in API group {:?} {place}",
        user.name, wish.verb, wish.group
    );
    match store.find(wish.group, wish.resource) {
        Some((_, resource)) => ApiError::forbidden(resource, wish.name, &why),
        None => ApiError::forbidden_path(why),
    }
}

/// Lists the rules that hold for a user in `namespace`: those that every server grants, those of roles bound in the
/// whole cluster and, unless `namespace` is empty, of roles bound in it.
fn rules(store: &Store, user: &User, namespace: &str) -> Vec<Value> {
    let mut rules = vec![
        json!({"verbs": ["get"], "nonResourceURLs": ["/healthz", "/livez", "/readyz", "/version", "/version/"]}),
    ];
    if user.groups.iter().any(|group| group == "system:authenticated") {
        rules.push(json!({
            "verbs": ["create"], "apiGroups": ["authorization.k8s.io"],
            "resources": ["selfsubjectaccessreviews", "selfsubjectrulesreviews"],
        }));
        rules.push(json!({
            "verbs": ["create"], "apiGroups": ["authentication.k8s.io"], "resources": ["selfsubjectreviews"],
        }));
        let paths = [
            "/api",
            "/api/*",
            "/apis",
            "/apis/*",
            "/healthz",
            "/livez",
            "/openapi",
            "/openapi/*",
            "/readyz",
            "/version",
            "/version/",
        ];
        rules.push(json!({"verbs": ["get"], "nonResourceURLs": paths}));
    }
    let mut add = |bindings: &str, prefix: &str| {
        let Some((shelf, _)) = store.find(RBAC, bindings) else { return };
        for (_, binding) in store.range(shelf, prefix, None) {
            let binding = binding.tree("", "");
            let subjects = binding["subjects"].as_array().into_iter().flatten();
            let mut named = subjects.map(|subject| {
                let name = subject["name"].as_str().unwrap_or_default();
                match subject["kind"].as_str() {
                    Some("User") => user.name == name,
                    Some("Group") => user.groups.iter().any(|group| group == name),
                    Some("ServiceAccount") => {
                        let namespace = subject["namespace"].as_str().unwrap_or_default();
                        user.name == format!("system:serviceaccount:{namespace}:{name}")
                    }
                    _ => false,
                }
            });
            if !named.any(|is_it| is_it) {
                continue;
            }
            let role = binding["roleRef"]["name"].as_str().unwrap_or_default();
            let (plural, key) = match binding["roleRef"]["kind"].as_str() {
                Some("Role") => ("roles", format!("{prefix}{role}")),
                _ => ("clusterroles", role.to_owned()),
            };
            let role = store.find(RBAC, plural).and_then(|(shelf, _)| store.get(shelf, &key));
            if let Some(role) = role {
                rules.extend(role.tree("", "")["rules"].as_array().cloned().unwrap_or_default());
            }
        }
    };
    add("clusterrolebindings", "");
    if !namespace.is_empty() {
        add("rolebindings", &format!("{namespace}/"));
    }
    rules
}

fn grants(rule: &Value, wish: &Wish<'_>) -> bool {
    let lists = |key: &str, test: &dyn Fn(&str) -> bool| {
        rule[key].as_array().into_iter().flatten().filter_map(Value::as_str).any(test)
    };
    if !lists("verbs", &|verb| verb == "*" || verb == wish.verb) {
        return false;
    }
    if !wish.path.is_empty() {
        return lists("nonResourceURLs", &|path| {
            path == "*"
                || path == wish.path
                || path.strip_suffix('*').is_some_and(|start| wish.path.starts_with(start))
        });
    }
    let full = match wish.subresource {
        "" => wish.resource.to_owned(),
        subresource => format!("{}/{subresource}", wish.resource),
    };
    let every = format!("*/{}", wish.subresource);
    lists("apiGroups", &|group| group == "*" || group == wish.group)
        && lists("resources", &|name| {
            name == "*" || name == full || (!wish.subresource.is_empty() && name == every)
        })
        && (rule["resourceNames"].as_array().is_none_or(Vec::is_empty)
            || lists("resourceNames", &|name| name == wish.name))
}
