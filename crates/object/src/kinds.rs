//! The built-in kinds, and the names of kinds: short names, plurals, and the words that people use for a kind.

use std::collections::HashMap;
use std::sync::LazyLock;

/// One line for each kind: group, version, plural, singular, kind, scope, verbs, short names, categories, subresources.
/// Taken from the aggregated discovery of kube-apiserver 1.36, in its order.
const TABLE: &str = include_str!("kinds.tsv");

/// The verbs of most resources; the table abbreviates them as `all`.
pub const ALL_VERBS: [&str; 8] =
    ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

/// A kind that every API server has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuiltInKind {
    /// The API group; empty for the core group.
    pub group: &'static str,
    /// The version that the server prefers.
    pub version: &'static str,
    /// The name in URLs: `deployments`.
    pub plural: &'static str,
    /// The singular name: `deployment`.
    pub singular: &'static str,
    /// The kind: `Deployment`.
    pub kind: &'static str,
    /// True if its objects live in namespaces.
    pub namespaced: bool,
    /// The operations that the server allows: `get`, `list`, …
    pub verbs: Vec<&'static str>,
    /// Short names: `deploy`.
    pub short_names: Vec<&'static str>,
    /// The categories with which kubectl lists the kind together with others, such as `all`.
    pub categories: Vec<&'static str>,
    /// The parts of an object with a URL of their own: `scale`, `status`.
    pub subresources: Vec<&'static str>,
}

/// Built-in kinds that can be listed, but exist only with a feature gate or on an old server: group, kind, and true if
/// namespaced.
const GATED: [(&str, &str, bool); 4] = [
    ("", "ComponentStatus", false),
    ("certificates.k8s.io", "ClusterTrustBundle", false),
    ("policy", "PodSecurityPolicy", false),
    ("resource.k8s.io", "DeviceTaintRule", false),
];

/// Built-in kinds that [`listable`] omits: one that cannot be listed, and two that other groups serve as well; group,
/// kind, and true if namespaced.
const REPEATED: [(&str, &str, bool); 3] = [
    ("authentication.k8s.io", "TokenReview", false),
    ("events.k8s.io", "Event", true),
    ("extensions", "Deployment", true),
];

/// Short names that discovery does not contain, each with its kind: those of Flux, Argo CD, cert-manager and others,
/// and additional ones of built-in kinds.
const SHORT_NAMES: [(&str, &str); 16] = [
    ("app", "Application"),
    ("appset", "ApplicationSet"),
    ("cert", "Certificate"),
    ("cr", "CertificateRequest"),
    ("es", "ExternalSecret"),
    ("gitrepo", "GitRepository"),
    ("gtw", "Gateway"),
    ("hc", "HelmChart"),
    ("helmrepo", "HelmRepository"),
    ("hr", "HelmRelease"),
    ("ks", "Kustomization"),
    ("ocirepo", "OCIRepository"),
    ("ro", "Rollout"),
    ("ss", "SecretStore"),
    ("vap", "ValidatingAdmissionPolicy"),
    ("vapb", "ValidatingAdmissionPolicyBinding"),
];

/// Lists the kinds that every API server has, in the order of kube-apiserver's discovery document.
pub fn built_in() -> &'static [BuiltInKind] {
    static KINDS: LazyLock<Vec<BuiltInKind>> = LazyLock::new(|| TABLE.lines().filter_map(parse).collect());
    &KINDS
}

fn parse(line: &'static str) -> Option<BuiltInKind> {
    let mut fields = line.split('\t').map(|field| if field == "-" { "" } else { field });
    let mut text = || fields.next();
    let (group, version, plural, singular) = (text()?, text()?, text()?, text()?);
    let (kind, scope, verbs) = (text()?, text()?, text()?);
    let mut words = || Some(fields.next()?.split(',').filter(|word| !word.is_empty()).collect());
    Some(BuiltInKind {
        group,
        version,
        plural,
        singular,
        kind,
        namespaced: scope == "ns",
        verbs: if verbs == "all" { ALL_VERBS.to_vec() } else { verbs.split(',').collect() },
        short_names: words()?,
        categories: words()?,
        subresources: words()?,
    })
}

/// Lists the group and kind of each built-in kind that supports the verb `list`, then those that exist only with a
/// feature gate or on an old server. A kind that several groups serve comes once.
pub fn listable() -> impl Iterator<Item = (&'static str, &'static str)> {
    let served = built_in().iter().filter(|kind| kind.verbs.contains(&"list"));
    served.map(|kind| (kind.group, kind.kind)).chain(GATED.map(|(group, kind, _)| (group, kind)))
}

/// Returns true if objects of a built-in kind live in namespaces; `None` if no built-in kind is in `group`.
///
/// An unknown kind of a built-in group counts as namespaced: most are.
pub fn is_namespaced(group: &str, kind: &str) -> Option<bool> {
    SCOPES.get(group).map(|kinds| kinds.get(kind).copied().unwrap_or(true))
}

/// Returns true if objects of a built-in kind live in namespaces; `None` for a kind that is not built in.
pub fn is_built_in_namespaced(group: &str, kind: &str) -> Option<bool> {
    SCOPES.get(group)?.get(kind).copied()
}

/// The kinds of each group, and true for namespaced ones.
static SCOPES: LazyLock<HashMap<&str, HashMap<&str, bool>>> = LazyLock::new(|| {
    let served = built_in().iter().map(|kind| (kind.group, kind.kind, kind.namespaced));
    let mut scopes: HashMap<&str, HashMap<&str, bool>> = HashMap::new();
    for (group, kind, namespaced) in served.chain(GATED).chain(REPEATED) {
        scopes.entry(group).or_default().insert(kind, namespaced);
    }
    scopes
});

/// Returns the plural of a kind, in its own case: `Pods`, `Ingresses`, `NetworkPolicies`.
///
/// In lower case it is the resource name of every built-in kind. The rules are those of Kubernetes'
/// `UnsafeGuessKindToResource`, except for `Gateways` and `Mailboxes`, where that guesses `gatewaies` and `mailboxs`.
pub fn plural(kind: &str) -> String {
    match kind.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'i', 'o', 'u']) => format!("{stem}ies"),
        _ if kind.ends_with("ndpoints") => kind.to_owned(),
        _ if kind.ends_with(['s', 'x']) || kind.ends_with("ch") => format!("{kind}es"),
        _ => format!("{kind}s"),
    }
}

/// Returns true if `word`, as a person writes it, names this kind: `Deployment`, `deployments`, `deploy`,
/// `deployment.apps`, `deployments.v1.apps`.
///
/// The case does not matter, and the first parts of the group are enough: `kustomization.kustomize`. Without a group,
/// kinds of this name in all groups are named; short names count in all groups, too.
pub fn names_kind(word: &str, group: &str, kind: &str) -> bool {
    let (name, rest) = word.split_once('.').map_or((word, None), |(name, rest)| (name, Some(rest)));
    is_name(name, kind) && rest.is_none_or(|rest| is_group(rest, group))
}

fn is_name(name: &str, kind: &str) -> bool {
    let is_made_of = |stem: &str, ending: &str| {
        name.split_at_checked(stem.len())
            .is_some_and(|(start, end)| start.eq_ignore_ascii_case(stem) && end.eq_ignore_ascii_case(ending))
    };
    let is_short = |short: &str, of: &str| short.eq_ignore_ascii_case(name) && of.eq_ignore_ascii_case(kind);
    ["", "s", "es"].into_iter().any(|ending| is_made_of(kind, ending))
        || kind.strip_suffix(['y', 'Y']).is_some_and(|stem| is_made_of(stem, "ies"))
        || SHORT_NAMES.iter().any(|(short, of)| is_short(short, of))
        || built_in().iter().any(|of| of.short_names.iter().any(|short| is_short(short, of.kind)))
}

/// Returns true if `text`, the part of a word such as `deployments.v1.apps` after the first dot, is the first
/// dot-separated parts of `group`, or a version followed by them; a version alone stands for the core group.
fn is_group(text: &str, group: &str) -> bool {
    let begins = |start: &str| {
        group.split_at_checked(start.len()).is_some_and(|(own, rest)| {
            own.eq_ignore_ascii_case(start) && (rest.is_empty() || rest.starts_with('.'))
        })
    };
    let (version, rest) = text.split_once('.').unwrap_or((text, ""));
    begins(text) || is_version(version) && begins(rest)
}

/// Returns true for the name of a version, such as `v1` and `v2beta1`.
fn is_version(text: &str) -> bool {
    let Some(numbers) = text.strip_prefix('v') else { return false };
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match numbers.split_once("alpha").or_else(|| numbers.split_once("beta")) {
        Some((major, minor)) => is_number(major) && is_number(minor),
        None => is_number(numbers),
    }
}
