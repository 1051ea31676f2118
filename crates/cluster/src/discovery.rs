//! Discovery of the kinds that a server serves.
//!
//! Servers from 1.26 on list all kinds in two responses. Older ones, and those behind a proxy that drops the `Accept`
//! header, answer the same two requests with plain lists of groups and versions, and each version takes a request of
//! its own.

use serde::Deserialize;
use serde_json::value::RawValue;
use taffrail_object::ApiResource;

use crate::connect::Cluster;
use crate::error::{ReadError, one_line};
use crate::request::{Answer, Ask, Failure, JSON};

/// The `Accept` header of the discovery requests: the aggregated forms in order of preference, then the plain form.
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
     application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";

/// Maximum number of kinds read from a cluster; large real clusters have a tenth of that.
const MAX_KINDS: usize = 5_000;

/// Maximum number of group versions requested one by one.
const MAX_VERSIONS: usize = 1_000;

/// Maximum number of broken groups that are listed.
const MAX_BROKEN: usize = 1_000;

/// Maximum length of names in Kubernetes, in bytes; resources with longer names are left out.
const MAX_NAME: usize = 253;
/// Maximum number of short names, and of verbs, of a resource; resources with more are left out.
const MAX_WORDS: usize = 32;

/// A resource that the server serves, in all its versions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServedResource {
    /// The API group; empty for the core group.
    pub group: String,
    /// The versions in which the resource is served, preferred one first.
    pub versions: Vec<String>,
    /// The kind, such as `Deployment`.
    pub kind: String,
    /// The name in URLs, such as `deployments`.
    pub plural: String,
    /// The singular name, such as `deployment`.
    pub singular: String,
    /// Abbreviations, such as `deploy`.
    pub short_names: Vec<String>,
    /// True if its objects are namespaced.
    pub namespaced: bool,
    /// The verbs of the preferred version, such as `list`.
    pub verbs: Vec<String>,
    /// True if the preferred version has a status subresource.
    pub has_status_subresource: bool,
}

impl ServedResource {
    /// Returns the resource in its preferred version.
    pub fn preferred(&self) -> ApiResource {
        self.at(self.versions.first().map(String::as_str).unwrap_or_default())
    }

    /// Returns the resource in `version`; `None` if it is not served in that version.
    pub fn in_version(&self, version: &str) -> Option<ApiResource> {
        self.versions.iter().any(|served| served == version).then(|| self.at(version))
    }

    /// Returns true if the number and length of the resource's names are within bounds.
    fn is_bounded(&self) -> bool {
        let names = [&self.group, &self.kind, &self.plural, &self.singular].into_iter();
        let names = names.chain(&self.versions).chain(&self.short_names).chain(&self.verbs);
        self.short_names.len() <= MAX_WORDS
            && self.verbs.len() <= MAX_WORDS
            && names.into_iter().all(|name| name.len() <= MAX_NAME)
    }

    fn at(&self, version: &str) -> ApiResource {
        ApiResource {
            group: self.group.clone(),
            version: version.to_owned(),
            kind: self.kind.clone(),
            plural: self.plural.clone(),
            namespaced: self.namespaced,
        }
    }

    /// Returns true if its objects can be listed.
    pub fn can_list(&self) -> bool {
        self.verbs.iter().any(|verb| verb == "list")
    }
}

/// A group or version whose kinds are not all known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokenGroup {
    /// The group, or group and version such as `metrics.k8s.io/v1beta1`; `v1` for the core group; or one of the two
    /// placeholders.
    pub name: String,
    /// The reason, on one line.
    pub reason: String,
}

/// The name of a [`BrokenGroup`] if the response about all groups but the core group could not be read.
const ALL_GROUPS: &str = "all groups but the core group";

/// The name of a [`BrokenGroup`] if the group is so malformed that its name is unknown.
const SOME_GROUP: &str = "an unknown group";

impl BrokenGroup {
    /// Returns the group, empty for the core group; `None` if the entry stands for all other groups or an unknown
    /// one.
    pub fn group(&self) -> Option<&str> {
        match self.name.split_once('/') {
            _ if self.name == ALL_GROUPS || self.name == SOME_GROUP => None,
            Some((group, _)) => Some(group),
            // The core group goes by its version.
            None if self.name.starts_with('v') && !self.name.contains('.') => Some(""),
            None => Some(&self.name),
        }
    }

    /// Returns true if `group` may have kinds that discovery did not find because of this failure.
    pub fn concerns(&self, group: &str) -> bool {
        self.group().map_or(!group.is_empty(), |own| own == group)
    }
}

/// All kinds that a server serves.
#[derive(Debug, Clone, Default)]
pub struct Discovery {
    resources: Vec<ServedResource>,
    broken: Vec<BrokenGroup>,
    /// Numbers of kinds, versions and broken groups, in this order, that were left out because of the limits.
    left_out: [usize; 3],
}

impl Discovery {
    /// Returns all resources: the core group first, then the groups in the server's order of preference.
    pub fn resources(&self) -> &[ServedResource] {
        &self.resources
    }

    /// Returns the groups that could not be read. Objects of their kinds may exist unseen.
    pub fn broken(&self) -> &[BrokenGroup] {
        &self.broken
    }

    /// Returns the resource of a kind; `None` if the server does not serve it or it could not be read.
    pub fn kind(&self, group: &str, kind: &str) -> Option<&ServedResource> {
        self.resources.iter().find(|resource| resource.group == group && resource.kind == kind)
    }

    /// Resolves a name that a user typed: plural, singular, short name or kind, alone or followed by a group, or by
    /// version and group: `deploy`, `deployments.apps`, `deployments.v1.apps`, `Deployment`. A prefix of the group
    /// suffices. If several groups match, the server's order decides, as in kubectl; `None` if none does.
    pub fn resolve(&self, typed: &str) -> Option<ApiResource> {
        let (name, rest) = match typed.split_once('.') {
            Some((name, rest)) => (name, Some(rest)),
            None => (typed, None),
        };
        let Some(rest) = rest else {
            return self.named(name, |_| true).map(ServedResource::preferred);
        };
        // The rest may be version and group; `v1` alone is a version of the core group.
        let (version, group) = rest.split_once('.').unwrap_or((rest, ""));
        let exact = self.named(name, |resource| {
            resource.group == group && resource.versions.iter().any(|served| served == version)
        });
        exact.and_then(|resource| resource.in_version(version)).or_else(|| {
            self.named(name, |resource| resource.group == rest)
                .or_else(|| self.named(name, |resource| resource.group.starts_with(rest)))
                .map(ServedResource::preferred)
        })
    }

    /// Returns the first resource with this name for which `group` returns true; `None` if there is none. Plural and
    /// singular names win over short ones, and both over kinds.
    fn named(&self, name: &str, group: impl Fn(&ServedResource) -> bool) -> Option<&ServedResource> {
        let name = name.to_lowercase();
        let first = |test: &dyn Fn(&ServedResource) -> bool| {
            self.resources.iter().find(|resource| group(resource) && test(resource))
        };
        first(&|resource| resource.plural == name || resource.singular == name)
            .or_else(|| first(&|resource| resource.short_names.contains(&name)))
            .or_else(|| first(&|resource| resource.kind.to_lowercase() == name))
    }

    /// Adds the resources of one version of a group, and counts those beyond the limits as left out. Versions come in
    /// the group's order of preference.
    fn add(&mut self, group: &str, version: &str, found: Vec<ServedResource>) {
        for resource in found {
            if self.resources.len() >= MAX_KINDS || !resource.is_bounded() {
                self.left_out[0] += 1;
                continue;
            }
            let known = self
                .resources
                .iter_mut()
                // Groups come one after the other, so only the last resources can be of this group.
                .rev()
                .take_while(|known| known.group == group)
                .find(|known| known.plural == resource.plural && known.kind == resource.kind);
            match known {
                Some(known) => known.versions.push(version.to_owned()),
                None => self.resources.push(resource),
            }
        }
    }

    /// Adds an entry to the broken groups for each limit that was exceeded, so that omitted kinds count as possibly
    /// served.
    fn tell_left_out(&mut self) {
        let whole =
            [("kinds", self.resources.len()), ("API versions", MAX_VERSIONS), ("broken groups", MAX_BROKEN)];
        for ((what, read), more) in whole.into_iter().zip(self.left_out) {
            if more > 0 {
                let reason =
                    format!("the cluster has too many {what}: {read} are read, and {more} more are left out");
                self.broken.push(BrokenGroup { name: SOME_GROUP.to_owned(), reason });
            }
        }
    }

    fn break_off(&mut self, name: impl Into<String>, reason: impl ToString) {
        if self.broken.len() >= MAX_BROKEN {
            self.left_out[2] += 1;
            return;
        }
        self.broken.push(BrokenGroup { name: name.into(), reason: one_line(&reason.to_string(), 200) });
    }
}

/// Returns `group/version`, such as `apps/v1`, or the version alone for the core group.
fn group_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

/// A discovery response in aggregated form (`items`) or plain form (`groups`, `versions`), with its items unparsed.
#[derive(Deserialize)]
struct Lists<'a> {
    #[serde(default)]
    kind: String,
    #[serde(borrow)]
    items: Option<Vec<&'a RawValue>>,
    #[serde(borrow)]
    groups: Option<Vec<&'a RawValue>>,
    versions: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct AggregatedGroup<'a> {
    metadata: Option<Metadata>,
    #[serde(borrow)]
    versions: Option<Vec<&'a RawValue>>,
}

#[derive(Default, Deserialize)]
struct Metadata {
    #[serde(default)]
    name: String,
}

#[derive(Deserialize)]
struct AggregatedVersion {
    version: String,
    #[serde(default)]
    freshness: String,
    resources: Option<Vec<AggregatedResource>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AggregatedResource {
    resource: String,
    response_kind: Option<ResponseKind>,
    #[serde(default)]
    scope: String,
    #[serde(default)]
    singular_resource: String,
    verbs: Option<Vec<String>>,
    short_names: Option<Vec<String>>,
    subresources: Option<Vec<Subresource>>,
}

#[derive(Deserialize)]
struct ResponseKind {
    kind: String,
}

#[derive(Deserialize)]
struct Subresource {
    subresource: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PlainGroup {
    name: String,
    versions: Vec<PlainVersion>,
    preferred_version: Option<PlainVersion>,
}

#[derive(Deserialize)]
struct PlainVersion {
    version: String,
}

#[derive(Deserialize)]
struct PlainResources {
    resources: Option<Vec<PlainResource>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PlainResource {
    name: String,
    #[serde(default)]
    singular_name: String,
    namespaced: bool,
    kind: String,
    verbs: Option<Vec<String>>,
    short_names: Option<Vec<String>>,
}

/// A version of a group whose resources must be requested separately.
struct Pending {
    group: String,
    version: String,
}

impl Cluster {
    /// Reads the kinds that the server serves.
    ///
    /// # Errors
    ///
    /// Returns an error if neither the core group nor the other groups could be read. Failures of one half, one group
    /// or one version are in [`Discovery::broken`].
    pub async fn discover(&self) -> Result<Discovery, ReadError> {
        let ask = |path: &str| Ask {
            what: format!("discover kinds ({path})"),
            path: path.to_owned(),
            accept: AGGREGATED,
        };
        let (core_ask, groups_ask) = (ask("/api"), ask("/apis"));
        let (core, groups) = futures::future::join(self.ask(&core_ask), self.ask(&groups_ask)).await;

        let mut discovery = Discovery::default();
        let mut pending = Vec::new();
        let mut take = |ask: &Ask, answer: Result<Answer, Failure>| {
            let answer = answer.map_err(|failure| failure.error)?;
            take(ask, &answer, &mut discovery, &mut pending)
        };
        let core = take(&core_ask, core);
        let groups = take(&groups_ask, groups);
        discovery.left_out[1] = pending.len().saturating_sub(MAX_VERSIONS);
        pending.truncate(MAX_VERSIONS);
        self.ask_versions(pending, &mut discovery).await;
        // One half may have come in the plain form and the other in the aggregated one.
        discovery.resources.sort_by_key(|resource| !resource.group.is_empty());
        self.deadline.check("discover kinds")?;
        match (core, groups) {
            (Err(error), Err(_)) => Err(error),
            (core, groups) => {
                if let Err(error) = core {
                    discovery.break_off("v1", error);
                }
                if let Err(error) = groups {
                    discovery.break_off(ALL_GROUPS, error);
                }
                discovery.tell_left_out();
                Ok(discovery)
            }
        }
    }

    /// Requests the resources of each pending version, all concurrently, and adds them to `discovery`.
    async fn ask_versions(&self, pending: Vec<Pending>, discovery: &mut Discovery) {
        let asks = pending.into_iter().map(|Pending { group, version }| async move {
            let name = group_version(&group, &version);
            let path = if group.is_empty() { format!("/api/{name}") } else { format!("/apis/{name}") };
            let ask = Ask { what: format!("discover kinds ({path})"), path, accept: JSON };
            let found = self.ask(&ask).await.map_err(|failure| failure.error).and_then(|answer| {
                serde_json::from_slice::<PlainResources>(&answer.body)
                    .map(|found| plain_resources(&group, &version, found.resources.unwrap_or_default()))
                    .map_err(|error| {
                        answer.unreadable(&ask.what, format!("the answer is malformed: {error}"))
                    })
            });
            (group, version, found)
        });
        // Results are added in the order of the requests, which is the order of preference.
        for (group, version, found) in futures::future::join_all(asks).await {
            match found {
                Ok(found) => discovery.add(&group, &version, found),
                Err(error) => discovery.break_off(group_version(&group, &version), error),
            }
        }
    }
}

/// Adds one of the two first responses to `discovery`; versions that need a request of their own are added to
/// `pending`.
fn take(
    ask: &Ask,
    answer: &Answer,
    discovery: &mut Discovery,
    pending: &mut Vec<Pending>,
) -> Result<(), ReadError> {
    let lists: Lists<'_> = serde_json::from_slice(&answer.body)
        .map_err(|error| answer.unreadable(&ask.what, format!("the answer is malformed: {error}")))?;
    match lists.kind.as_str() {
        "APIGroupDiscoveryList" => {
            for group in lists.items.unwrap_or_default() {
                take_aggregated(group, discovery);
            }
        }
        "APIVersions" => {
            let versions = lists.versions.unwrap_or_default().into_iter();
            pending.extend(versions.map(|version| Pending { group: String::new(), version }));
        }
        "APIGroupList" => {
            for text in lists.groups.unwrap_or_default() {
                match serde_json::from_str::<PlainGroup>(text.get()) {
                    Ok(group) => pending.extend(group.pending()),
                    Err(error) => discovery.break_off(name_of(text), error),
                }
            }
        }
        kind => {
            let problem = format!("the answer is of kind \"{}\", not a list of groups", one_line(kind, 60));
            return Err(answer.unreadable(&ask.what, problem));
        }
    }
    Ok(())
}

fn take_aggregated(text: &RawValue, discovery: &mut Discovery) {
    let group: AggregatedGroup<'_> = match serde_json::from_str(text.get()) {
        Ok(group) => group,
        Err(error) => return discovery.break_off(name_of(text), error),
    };
    let name = group.metadata.unwrap_or_default().name;
    for text in group.versions.unwrap_or_default() {
        match serde_json::from_str::<AggregatedVersion>(text.get()) {
            Ok(version) => {
                if version.freshness == "Stale" {
                    let reason = "stale: the API service behind it does not answer";
                    discovery.break_off(group_version(&name, &version.version), reason);
                }
                let found = version.resources.unwrap_or_default().into_iter();
                let found = found.filter_map(|found| found.served(&name, &version.version)).collect();
                discovery.add(&name, &version.version, found);
            }
            Err(error) => {
                let version = version_of(text).unwrap_or_else(|| "an unknown version".to_owned());
                discovery.break_off(group_version(&name, &version), error);
            }
        }
    }
}

/// Returns the name of a malformed group, or [`SOME_GROUP`] if it cannot be read.
fn name_of(text: &RawValue) -> String {
    let group: Option<serde_json::Value> = serde_json::from_str(text.get()).ok();
    let name = group.as_ref().and_then(|group| {
        group.pointer("/metadata/name").or_else(|| group.get("name")).and_then(serde_json::Value::as_str)
    });
    name.map_or_else(|| SOME_GROUP.to_owned(), |name| one_line(name, 100))
}

fn version_of(text: &RawValue) -> Option<String> {
    let version: serde_json::Value = serde_json::from_str(text.get()).ok()?;
    Some(one_line(version.get("version")?.as_str()?, 100))
}

impl AggregatedResource {
    fn served(self, group: &str, version: &str) -> Option<ServedResource> {
        let subresources = self.subresources.unwrap_or_default();
        // Without a kind the entry has only subresources.
        let kind = self.response_kind?.kind;
        if kind.is_empty() {
            return None;
        }
        Some(ServedResource {
            group: group.to_owned(),
            versions: vec![version.to_owned()],
            singular: singular(self.singular_resource, &kind),
            kind,
            plural: self.resource,
            short_names: self.short_names.unwrap_or_default(),
            namespaced: self.scope == "Namespaced",
            verbs: self.verbs.unwrap_or_default(),
            has_status_subresource: subresources.iter().any(|sub| sub.subresource == "status"),
        })
    }
}

impl PlainGroup {
    /// Returns the versions of the group, preferred one first.
    fn pending(self) -> impl Iterator<Item = Pending> {
        let mut versions: Vec<String> = self.versions.into_iter().map(|version| version.version).collect();
        if let Some(preferred) = self.preferred_version {
            versions.sort_by_key(|version| *version != preferred.version);
        }
        let group = self.name;
        versions.into_iter().map(move |version| Pending { group: group.clone(), version })
    }
}

/// Converts the resources of a version. The input has subresources as separate items named `name/subresource`.
fn plain_resources(group: &str, version: &str, found: Vec<PlainResource>) -> Vec<ServedResource> {
    let with_status: Vec<String> =
        found.iter().filter_map(|found| found.name.strip_suffix("/status").map(str::to_owned)).collect();
    let whole = found.into_iter().filter(|found| !found.name.contains('/'));
    whole
        .map(|found| ServedResource {
            group: group.to_owned(),
            versions: vec![version.to_owned()],
            singular: singular(found.singular_name, &found.kind),
            kind: found.kind,
            has_status_subresource: with_status.contains(&found.name),
            plural: found.name,
            short_names: found.short_names.unwrap_or_default(),
            namespaced: found.namespaced,
            verbs: found.verbs.unwrap_or_default(),
        })
        .collect()
}

/// Returns the singular name: `name`, or the kind in lower case if `name` is empty, as from older servers.
fn singular(name: String, kind: &str) -> String {
    if name.is_empty() { kind.to_lowercase() } else { name }
}
