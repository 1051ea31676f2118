//! Discovery of the kinds that a server serves.
//!
//! Servers from 1.26 on list all kinds in two responses. Older ones, and those behind a proxy that drops the `Accept`
//! header, answer the same two requests with plain lists of groups and versions, and each version takes a request of
//! its own.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::marker::PhantomData;

use serde::de::{IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use taffrail_object::ApiResource;

use crate::aside::aside_if_large;
use crate::connect::Cluster;
use crate::error::{ReadError, one_line};
use crate::request::{Answer, Ask, JSON, ReadFailure};

/// The `Accept` header of the discovery requests: the aggregated forms in order of preference, then the plain form.
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
     application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";

/// Maximum number of kinds read from a cluster; further ones are left out and counted. Large real clusters have a
/// tenth of that.
const MAX_KINDS: usize = 5_000;

/// Maximum size of a discovery response in bytes; a larger one is refused. One about [`MAX_KINDS`] kinds has a third of
/// that.
const MAX_BYTES: usize = 32 << 20;

/// Maximum number of groups read from a response; further ones are left out and counted.
const MAX_GROUPS: usize = 20_000;

/// Maximum number of entries read from the plain list of a version, where subresources are entries too; further
/// entries are left out and counted as kinds.
const MAX_PLAIN: usize = 3 * MAX_KINDS;

/// Maximum number of group versions requested one by one, and of versions read from a group; further ones are left
/// out.
const MAX_VERSIONS: usize = 1_000;

/// Maximum number of broken groups that are listed; further ones are only counted.
const MAX_BROKEN: usize = 1_000;

/// Maximum length of names in Kubernetes, in bytes; groups, versions and resources with longer names are left out.
const MAX_NAME: usize = 253;
/// Maximum number of short names, and of verbs, of a resource; resources with more are left out. Of its versions and
/// subresources the first that many are read.
const MAX_WORDS: usize = 32;

/// The operation in errors about the whole discovery.
const WHAT: &str = "discover kinds";

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

    /// Returns true if the preferred version has the verb `list`.
    pub fn can_list(&self) -> bool {
        self.verbs.iter().any(|verb| verb == "list")
    }
}

/// A group or version whose kinds are not all known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokenGroup {
    /// The group, or group and version such as `metrics.k8s.io/v1beta1`; `v1` for the core group; `all groups but the
    /// core group`; or `an unknown group`.
    pub name: String,
    /// The reason why kinds of the group could not be discovered, on one line.
    pub reason: String,
}

/// The name of a [`BrokenGroup`] if the response about all groups but the core group could not be read.
const ALL_GROUPS: &str = "all groups but the core group";

/// The name of a [`BrokenGroup`] if the group is so malformed that its name is unknown, or for what a limit left out.
const SOME_GROUP: &str = "an unknown group";

impl BrokenGroup {
    /// Returns the group, empty for the core group; `None` if the entry stands for all other groups or an unknown
    /// one.
    pub fn group(&self) -> Option<&str> {
        match self.name.split_once('/') {
            _ if self.name == ALL_GROUPS || self.name == SOME_GROUP => None,
            Some((group, _)) => Some(group),
            None if is_version(&self.name) => Some(""),
            None => Some(&self.name),
        }
    }

    /// Returns true if `group` may have kinds that discovery did not find because of this failure: it is the group of
    /// this entry, or this entry names no group and `group` is not the core group.
    pub fn concerns(&self, group: &str) -> bool {
        self.group().map_or(!group.is_empty(), |own| own == group)
    }
}

/// The kinds that a server serves, and the groups and versions of which not all are known.
#[derive(Debug, Clone, Default)]
pub struct Discovery {
    resources: Vec<ServedResource>,
    broken: Vec<BrokenGroup>,
    /// The numbers of parts that were left out because of the limits.
    left_out: LeftOut,
}

/// The numbers of parts of a discovery that were left out because of the limits.
#[derive(Debug, Clone, Copy, Default)]
struct LeftOut {
    groups: usize,
    kinds: usize,
    versions: usize,
    broken: usize,
}

impl Discovery {
    /// Returns all resources: the core group first, then the groups in the server's order of preference.
    pub fn resources(&self) -> &[ServedResource] {
        &self.resources
    }

    /// Returns the groups and versions that could not be read or are stale, and an entry for each limit that left some
    /// out. Objects of their kinds may exist unseen.
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

    /// Returns the first resource with this name, in any case of letters, for which `group` returns true; `None` if
    /// there is none. Plural and singular names win over short ones, and both over kinds.
    fn named(&self, name: &str, group: impl Fn(&ServedResource) -> bool) -> Option<&ServedResource> {
        let name = name.to_lowercase();
        let first = |test: &dyn Fn(&ServedResource) -> bool| {
            self.resources.iter().find(|resource| group(resource) && test(resource))
        };
        first(&|resource| resource.plural == name || resource.singular == name)
            .or_else(|| first(&|resource| resource.short_names.contains(&name)))
            .or_else(|| first(&|resource| resource.kind.to_lowercase() == name))
    }

    /// Adds an entry to the broken groups for each limit that was exceeded, so that omitted kinds count as possibly
    /// served.
    fn tell_left_out(&mut self) {
        let LeftOut { groups, kinds, versions, broken } = self.left_out;
        let whole = [
            ("API groups", MAX_GROUPS, groups),
            ("kinds", self.resources.len(), kinds),
            ("API versions", MAX_VERSIONS, versions),
            ("broken groups", MAX_BROKEN, broken),
        ];
        for (what, read, more) in whole {
            if more > 0 {
                let reason =
                    format!("the cluster has too many {what}: {read} are read, and {more} more are left out");
                self.broken.push(BrokenGroup { name: SOME_GROUP.to_owned(), reason });
            }
        }
    }

    /// Adds a broken group with the reason on one line; if there are [`MAX_BROKEN`] already, only counts it as left out
    /// and does not call `name`.
    fn break_off(&mut self, name: impl FnOnce() -> String, reason: &dyn fmt::Display) {
        if self.broken.len() >= MAX_BROKEN {
            self.left_out.broken += 1;
            return;
        }
        self.broken.push(BrokenGroup { name: name(), reason: one_line(&reason.to_string(), 200) });
    }
}

/// Returns true if a name without a slash is a version, such as `v1` or `v1beta1`, and so stands for the core group;
/// false for the name of a group.
fn is_version(name: &str) -> bool {
    let number = name.strip_prefix('v').unwrap_or_default();
    number.starts_with(|first: char| first.is_ascii_digit()) && !name.contains('.')
}

/// Returns `group/version`, such as `apps/v1`, or the version alone for the core group.
fn group_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

/// The first `N` items of a list; the others are only counted.
struct Bounded<T, const N: usize> {
    items: Vec<T>,
    more: usize,
}

impl<T, const N: usize> Default for Bounded<T, N> {
    fn default() -> Bounded<T, N> {
        Bounded { items: Vec::new(), more: 0 }
    }
}

impl<'de, T: Deserialize<'de>, const N: usize> Deserialize<'de> for Bounded<T, N> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Bounded<T, N>, D::Error> {
        struct Reader<T, const N: usize>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>, const N: usize> Visitor<'de> for Reader<T, N> {
            type Value = Bounded<T, N>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a sequence")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Bounded<T, N>, A::Error> {
                let mut read = Bounded::default();
                while read.items.len() < N {
                    match list.next_element()? {
                        Some(item) => read.items.push(item),
                        None => return Ok(read),
                    }
                }
                while list.next_element::<IgnoredAny>()?.is_some() {
                    read.more += 1;
                }
                Ok(read)
            }
        }

        deserializer.deserialize_seq(Reader(PhantomData))
    }
}

/// The short names or the verbs of a resource: the first [`MAX_WORDS`] and one more, which shows that there are too
/// many.
type ResourceWords = Bounded<String, { MAX_WORDS + 1 }>;

/// A discovery response in aggregated form (`items`) or plain form (`groups`, `versions`), with its items unparsed.
#[derive(Deserialize)]
struct GroupLists<'a> {
    #[serde(default)]
    kind: String,
    #[serde(borrow)]
    items: Option<Bounded<&'a RawValue, MAX_GROUPS>>,
    #[serde(borrow)]
    groups: Option<Bounded<&'a RawValue, MAX_GROUPS>>,
    versions: Option<Bounded<String, MAX_VERSIONS>>,
}

#[derive(Deserialize)]
struct AggregatedGroup<'a> {
    metadata: Option<Metadata>,
    #[serde(borrow)]
    versions: Option<Bounded<&'a RawValue, MAX_VERSIONS>>,
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
    resources: Option<Bounded<AggregatedResource, MAX_KINDS>>,
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
    verbs: Option<ResourceWords>,
    short_names: Option<ResourceWords>,
    subresources: Option<Bounded<Subresource, MAX_WORDS>>,
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
    versions: Bounded<PlainVersion, MAX_VERSIONS>,
    preferred_version: Option<PlainVersion>,
}

#[derive(Deserialize)]
struct PlainVersion {
    version: String,
}

#[derive(Deserialize)]
struct PlainResources {
    resources: Option<Bounded<PlainResource, MAX_PLAIN>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PlainResource {
    name: String,
    #[serde(default)]
    singular_name: String,
    namespaced: bool,
    kind: String,
    verbs: Option<ResourceWords>,
    short_names: Option<ResourceWords>,
}

/// The names of an item that is malformed elsewhere.
#[derive(Deserialize)]
struct ItemNames<'a> {
    #[serde(borrow)]
    metadata: Option<&'a RawValue>,
    #[serde(borrow)]
    name: Option<&'a RawValue>,
    #[serde(borrow)]
    version: Option<&'a RawValue>,
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
    /// Returns an error if neither the core group nor the other groups could be read, or if the deadline passes.
    /// Failures of one half, one group or one version are in [`Discovery::broken`].
    pub async fn discover(&self) -> Result<Discovery, ReadError> {
        let ask =
            |path: &str| Ask { what: format!("{WHAT} ({path})"), path: path.to_owned(), accept: AGGREGATED };
        let (core_ask, groups_ask) = (ask("/api"), ask("/apis"));
        let (core, groups) = futures::future::join(
            self.ask_up_to(&core_ask, MAX_BYTES),
            self.ask_up_to(&groups_ask, MAX_BYTES),
        )
        .await;

        let mut finding = DiscoveryRun::default();
        let in_time = || self.deadline.check(WHAT).is_ok();
        let mut take = |ask: &Ask, answer: Result<Answer, ReadFailure>| {
            let answer = answer.map_err(|failure| failure.error)?;
            aside_if_large(answer.body.len(), || finding.take(&answer.body, &in_time))
                .map_err(|problem| answer.unreadable(&ask.what, problem))
        };
        let core = take(&core_ask, core);
        let groups = take(&groups_ask, groups);
        self.ask_versions(&mut finding).await;
        let mut discovery = finding.discovery;
        // One half may have come in the plain form and the other in the aggregated one.
        discovery.resources.sort_by_key(|resource| !resource.group.is_empty());
        self.deadline.check(WHAT)?;
        match (core, groups) {
            (Err(error), Err(_)) => Err(error),
            (core, groups) => {
                if let Err(error) = core {
                    discovery.break_off(|| "v1".to_owned(), &error);
                }
                if let Err(error) = groups {
                    discovery.break_off(|| ALL_GROUPS.to_owned(), &error);
                }
                discovery.tell_left_out();
                Ok(discovery)
            }
        }
    }

    /// Requests the resources of each pending version, all concurrently, and adds them to `finding`.
    async fn ask_versions(&self, finding: &mut DiscoveryRun) {
        let pending = std::mem::take(&mut finding.pending);
        let asks = pending.into_iter().map(|Pending { group, version }| async move {
            let name = group_version(&group, &version);
            let path = if group.is_empty() { format!("/api/{name}") } else { format!("/apis/{name}") };
            let ask = Ask { what: format!("{WHAT} ({path})"), path, accept: JSON };
            let answer = self.ask_up_to(&ask, MAX_BYTES).await;
            (group, version, ask, answer)
        });
        // Results are added in the order of the requests, which is the order of preference.
        for (group, version, ask, answer) in futures::future::join_all(asks).await {
            let taken = answer.map_err(|failure| failure.error).and_then(|answer| {
                self.deadline.check(WHAT)?;
                aside_if_large(answer.body.len(), || finding.take_version(&group, &version, &answer.body))
                    .map_err(|problem| answer.unreadable(&ask.what, problem))
            });
            if let Err(error) = taken {
                finding.discovery.break_off(|| group_version(&group, &version), &error);
            }
        }
    }
}

/// A discovery under way.
#[derive(Default)]
struct DiscoveryRun {
    discovery: Discovery,
    /// The index of each resource among those found so far, by group, plural and kind.
    known: HashMap<[String; 3], usize>,
    /// Versions that need a request of their own.
    pending: Vec<Pending>,
}

impl DiscoveryRun {
    /// Adds one of the two first responses; returns the problem if it cannot be read. Ends early when `in_time`
    /// returns false.
    fn take(&mut self, body: &[u8], in_time: &dyn Fn() -> bool) -> Result<(), String> {
        let lists: GroupLists<'_> = serde_json::from_slice(body).map_err(malformed)?;
        match lists.kind.as_str() {
            "APIGroupDiscoveryList" => {
                let groups = lists.items.unwrap_or_default();
                self.discovery.left_out.groups += groups.more;
                for group in groups.items.into_iter().take_while(|_| in_time()) {
                    self.take_aggregated(group, in_time);
                }
            }
            "APIVersions" => {
                let versions = lists.versions.unwrap_or_default();
                self.discovery.left_out.versions += versions.more;
                for version in versions.items {
                    self.postpone(Pending { group: String::new(), version });
                }
            }
            "APIGroupList" => {
                let groups = lists.groups.unwrap_or_default();
                self.discovery.left_out.groups += groups.more;
                for text in groups.items.into_iter().take_while(|_| in_time()) {
                    match serde_json::from_str::<PlainGroup>(text.get()) {
                        Ok(group) if group.name.len() > MAX_NAME => {
                            self.discovery.break_off(|| one_line(&group.name, 100), &LONG_NAME);
                        }
                        Ok(group) => {
                            self.discovery.left_out.versions += group.versions.more;
                            group.pending().for_each(|version| self.postpone(version));
                        }
                        Err(error) => self.discovery.break_off(|| name_of(text), &error),
                    }
                }
            }
            kind => {
                return Err(format!(
                    "the answer is of kind \"{}\", not a list of groups",
                    one_line(kind, 60)
                ));
            }
        }
        Ok(())
    }

    fn take_aggregated(&mut self, text: &RawValue, in_time: &dyn Fn() -> bool) {
        let group: AggregatedGroup<'_> = match serde_json::from_str(text.get()) {
            Ok(group) => group,
            Err(error) => return self.discovery.break_off(|| name_of(text), &error),
        };
        let name = group.metadata.unwrap_or_default().name;
        if name.len() > MAX_NAME {
            return self.discovery.break_off(|| one_line(&name, 100), &LONG_NAME);
        }
        let versions = group.versions.unwrap_or_default();
        self.discovery.left_out.versions += versions.more;
        for text in versions.items.into_iter().take_while(|_| in_time()) {
            let unknown = || version_of(text).unwrap_or_else(|| "an unknown version".to_owned());
            match serde_json::from_str::<AggregatedVersion>(text.get()) {
                Ok(version) if version.version.len() > MAX_NAME => {
                    self.discovery.break_off(|| group_version(&name, &unknown()), &LONG_NAME);
                }
                Ok(version) => {
                    if version.freshness == "Stale" {
                        let reason = "stale: the API service behind it does not answer";
                        self.discovery.break_off(|| group_version(&name, &version.version), &reason);
                    }
                    let found = version.resources.unwrap_or_default();
                    self.discovery.left_out.kinds += found.more;
                    let found = found.items.into_iter();
                    self.add(
                        &version.version,
                        found.filter_map(|found| found.served(&name, &version.version)),
                    );
                }
                Err(error) => self.discovery.break_off(|| group_version(&name, &unknown()), &error),
            }
        }
    }

    /// Adds the response about one version; returns the problem if it cannot be read.
    fn take_version(&mut self, group: &str, version: &str, body: &[u8]) -> Result<(), String> {
        let found: PlainResources = serde_json::from_slice(body).map_err(malformed)?;
        let found = found.resources.unwrap_or_default();
        self.discovery.left_out.kinds += found.more;
        self.add(version, plain_resources(group, version, found.items));
        Ok(())
    }

    /// Adds a version that needs a request of its own; counts it as left out beyond [`MAX_VERSIONS`] or if its name is
    /// too long.
    fn postpone(&mut self, pending: Pending) {
        match pending.version.len() <= MAX_NAME && self.pending.len() < MAX_VERSIONS {
            true => self.pending.push(pending),
            false => self.discovery.left_out.versions += 1,
        }
    }

    /// Adds the resources of one version of a group, and counts those beyond the limits as left out. Versions come in
    /// the group's order of preference.
    fn add(&mut self, version: &str, found: impl IntoIterator<Item = ServedResource>) {
        let Discovery { resources, left_out, .. } = &mut self.discovery;
        for resource in found {
            if !resource.is_bounded() {
                left_out.kinds += 1;
                continue;
            }
            let key = [&resource.group, &resource.plural, &resource.kind].map(String::clone);
            let is_full = resources.len() >= MAX_KINDS;
            match self.known.get(&key).and_then(|&at| resources.get_mut(at)) {
                Some(known) if known.versions.iter().any(|served| served == version) => {}
                Some(known) if known.versions.len() < MAX_WORDS => known.versions.push(version.to_owned()),
                None if !is_full => {
                    self.known.insert(key, resources.len());
                    resources.push(resource);
                }
                _ => left_out.kinds += 1,
            }
        }
    }
}

/// The reason for a group or version with a name above [`MAX_NAME`].
const LONG_NAME: &str = "the name is too long";

fn malformed(error: serde_json::Error) -> String {
    format!("the answer is malformed: {error}")
}

/// Returns the name of a malformed group, or [`SOME_GROUP`] if it cannot be read.
fn name_of(text: &RawValue) -> String {
    let name = names(text).and_then(|group| {
        let inner = group.metadata.and_then(names).and_then(|metadata| metadata.name);
        word(inner.or(group.name)?)
    });
    name.unwrap_or_else(|| SOME_GROUP.to_owned())
}

fn version_of(text: &RawValue) -> Option<String> {
    word(names(text)?.version?)
}

fn names(text: &RawValue) -> Option<ItemNames<'_>> {
    serde_json::from_str(text.get()).ok()
}

fn word(text: &RawValue) -> Option<String> {
    let word: String = serde_json::from_str(text.get()).ok()?;
    Some(one_line(&word, 100))
}

impl AggregatedResource {
    fn served(self, group: &str, version: &str) -> Option<ServedResource> {
        let subresources = self.subresources.unwrap_or_default().items;
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
            short_names: self.short_names.unwrap_or_default().items,
            namespaced: self.scope == "Namespaced",
            verbs: self.verbs.unwrap_or_default().items,
            has_status_subresource: subresources.iter().any(|sub| sub.subresource == "status"),
        })
    }
}

impl PlainGroup {
    /// Returns the versions of the group, preferred one first.
    fn pending(self) -> impl Iterator<Item = Pending> {
        let mut versions: Vec<String> =
            self.versions.items.into_iter().map(|version| version.version).collect();
        if let Some(preferred) = self.preferred_version {
            versions.sort_by_key(|version| *version != preferred.version);
        }
        let group = self.name;
        versions.into_iter().map(move |version| Pending { group: group.clone(), version })
    }
}

/// Converts the resources of a version. The input has subresources as separate items named `name/subresource`, of which
/// only `status` is noted; these are left out.
fn plain_resources(
    group: &str,
    version: &str,
    found: Vec<PlainResource>,
) -> impl Iterator<Item = ServedResource> {
    let with_status: HashSet<String> =
        found.iter().filter_map(|found| found.name.strip_suffix("/status").map(str::to_owned)).collect();
    let whole = found.into_iter().filter(|found| !found.name.contains('/'));
    whole.map(move |found| ServedResource {
        group: group.to_owned(),
        versions: vec![version.to_owned()],
        singular: singular(found.singular_name, &found.kind),
        kind: found.kind,
        has_status_subresource: with_status.contains(&found.name),
        plural: found.name,
        short_names: found.short_names.unwrap_or_default().items,
        namespaced: found.namespaced,
        verbs: found.verbs.unwrap_or_default().items,
    })
}

/// Returns the singular name: `name`, or the kind in lower case if `name` is empty, as from older servers.
fn singular(name: String, kind: &str) -> String {
    if name.is_empty() { kind.to_lowercase() } else { name }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn lists_are_read_up_to_their_bound() {
        let words = format!("[{}\"\"]", "\"\",".repeat(100_000));
        let words: ResourceWords = serde_json::from_str(&words).unwrap();
        assert_eq!((words.items.len(), words.more), (MAX_WORDS + 1, 100_000 - MAX_WORDS));
        assert!(words.items.capacity() <= 2 * MAX_WORDS);
        let items = format!(r#"{{"kind":"APIGroupDiscoveryList","items":[{}0]}}"#, "0,".repeat(50_000));
        let lists: GroupLists<'_> = serde_json::from_str(&items).unwrap();
        assert_eq!(lists.items.map(|items| (items.items.len(), items.more)), Some((MAX_GROUPS, 30_001)));
    }

    #[test]
    fn broken_group_without_a_dot_is_not_the_core_group() {
        let group = |name: &str| {
            let broken = BrokenGroup { name: name.to_owned(), reason: String::new() };
            broken.group().map(str::to_owned)
        };
        for (name, expected) in [
            ("v1", ""),
            ("v2beta1", ""),
            ("vault", "vault"),
            ("v1.example", "v1.example"),
            ("vault/v1", "vault"),
        ] {
            assert_eq!(group(name).as_deref(), Some(expected), "{name}");
        }
    }

    #[test]
    fn reading_a_discovery_ends_with_its_time() {
        let version = r#"{"version":"v1","resources":[{"resource":"a","responseKind":{"kind":"A"}}]},"#;
        let group = |name: usize| {
            let versions = version.repeat(10);
            format!(r#"{{"metadata":{{"name":"g{name}"}},"versions":[{}]}}"#, versions.trim_end_matches(','))
        };
        let groups: Vec<String> = (0..1000).map(group).collect();
        let body = format!(r#"{{"kind":"APIGroupDiscoveryList","items":[{}]}}"#, groups.join(","));
        let asked = Cell::new(0);
        let in_time = || asked.replace(asked.get() + 1) < 100;
        let mut finding = DiscoveryRun::default();
        finding.take(body.as_bytes(), &in_time).unwrap();
        assert!(finding.discovery.resources.len() <= 10, "{}", finding.discovery.resources.len());
        assert!(asked.get() <= 102, "{}", asked.get());
    }
}
