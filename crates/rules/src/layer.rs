//! Rules of one origin, by group and kind.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use rustc_hash::FxHashMap;
use taffrail_object::GroupKind;

use crate::origin::Origin;
use crate::script::CHILDREN;
use crate::yaml_rules::{self, ClusterFields, GroupRules, KindRules, Problem, RuleFileError};

/// The YAML rules of one origin, by API group and kind.
#[derive(Debug)]
pub struct Layer {
    origin: Origin,
    groups: FxHashMap<Box<str>, RuleGroup>,
    /// The rules for group families such as `*.example.com`: each suffix with its dot and the rules, the
    /// longest suffix first.
    endings: Vec<(Box<str>, RuleGroup)>,
    /// The kinds whose objects stand for clusters; found at the first use.
    cluster_kinds: OnceLock<Vec<GroupKind>>,
}

/// The rules of one group; those of [`Layer::lazy`] are parsed at the first use.
#[derive(Debug)]
struct RuleGroup {
    /// The texts of the files of the group.
    texts: Vec<Cow<'static, str>>,
    rules: OnceLock<GroupRules>,
    /// True if a text has the word [`CHILDREN`]; found at the first use, because few groups are ever used.
    names_children: OnceLock<bool>,
}

/// The key of a rules file that names the kinds whose objects stand for clusters.
const CLUSTERS: &str = "\nclusters:";

/// The rules for a kind, with the names under which they are filed.
#[derive(Debug, Clone, Copy)]
pub struct FoundRules<'l> {
    /// The origin of the rules.
    pub origin: Origin,
    /// The group, or `*.` and the ending of the groups.
    pub group: &'l str,
    /// The kind, a pattern of kinds, or `*` for all other kinds.
    pub kind: &'l str,
    /// The rules.
    pub rules: &'l Arc<KindRules>,
    texts: &'l [Cow<'static, str>],
}

impl FoundRules<'_> {
    /// Returns the name of these rules as in verdicts: `shipped/cert-manager.io/Certificate`.
    pub fn name(&self) -> String {
        format!("{}/{}/{}", self.origin.as_str(), self.group, self.kind)
    }

    /// Returns the lines of the file that define these rules, as written; `None` if the kind has no lines of its own
    /// there.
    pub fn text(&self) -> Option<&str> {
        self.texts.iter().find_map(|text| excerpt(text, self.kind))
    }
}

/// Returns the lines that define the rules of `kind` in the text of a rules file; `None` if the kind does not begin a
/// line below `kinds`.
fn excerpt<'t>(text: &'t str, kind: &str) -> Option<&'t str> {
    let indent = |line: &str| line.len() - line.trim_start_matches(' ').len();
    let is_of_kind = |line: &str| {
        let key = line.trim_start().split_once(':').map(|(key, _)| key.trim_matches(['"', '\'']));
        indent(line) > 0 && key.is_some_and(|key| key.split(',').any(|name| name.trim() == kind))
    };
    let mut lines = text.split_inclusive('\n').scan(0, |at, line| {
        let start = *at;
        *at += line.len();
        Some((start, line))
    });
    lines.by_ref().find(|(_, line)| line.starts_with("kinds:"))?;
    let mut outer = None;
    let (start, first) = lines.by_ref().find(|(_, line)| {
        let is_content = !matches!(line.trim_start().as_bytes().first(), None | Some(b'#'));
        is_content && indent(line) == *outer.get_or_insert(indent(line)) && is_of_kind(line)
    })?;
    let mut end = start + first.len();
    for (at, line) in lines {
        let is_empty = line.trim().is_empty();
        if !is_empty && indent(line) <= indent(first) {
            break;
        }
        if !is_empty {
            end = at + line.len();
        }
    }
    text.get(start..end)
}

impl RuleGroup {
    fn new(text: Cow<'static, str>, rules: OnceLock<GroupRules>) -> RuleGroup {
        RuleGroup { texts: vec![text], rules, names_children: OnceLock::new() }
    }

    fn rules(&self) -> &GroupRules {
        // Tests cover the shipped files; an error in one would affect its own kind only.
        self.rules.get_or_init(|| yaml_rules::read("", self.texts.first().map_or("", |text| text)).0)
    }

    fn names_children(&self) -> bool {
        *self.names_children.get_or_init(|| self.texts.iter().any(|text| text.contains(CHILDREN)))
    }

    fn of<'l>(&'l self, origin: Origin, kind: &'l str, rules: &'l Arc<KindRules>) -> FoundRules<'l> {
        FoundRules { origin, group: &self.rules().group, kind, rules, texts: &self.texts }
    }
}

impl Layer {
    fn empty(origin: Origin) -> Layer {
        let cluster_kinds = OnceLock::new();
        Layer { origin, groups: FxHashMap::default(), endings: Vec::new(), cluster_kinds }
    }

    /// Parses rules files, given as pairs of file name and text.
    ///
    /// # Errors
    ///
    /// If a file is invalid, or two files have rules for the same kind: all errors of all files.
    pub fn read<'t>(
        origin: Origin,
        files: impl IntoIterator<Item = (&'t str, &'t str)>,
    ) -> Result<Layer, RuleErrors> {
        let mut layer = Layer::empty(origin);
        let mut errors = Vec::new();
        let mut places: FxHashMap<(Box<str>, Box<str>), String> = FxHashMap::default();
        for (file, text) in files {
            let (rules, wrong) = yaml_rules::read(file, text);
            let is_broken = !wrong.is_empty();
            errors.extend(wrong);
            if is_broken {
                continue;
            }
            // A kind may have rules, and stand for clusters.
            let clusters = rules.clusters.keys().map(|kind| Box::<str>::from(format!("clusters: {kind}")));
            for kind in rules.kinds.keys().cloned().chain(clusters) {
                let place = (rules.group.clone(), kind.clone());
                if let Some(before) = places.insert(place, file.to_owned()) {
                    let (file, kind) = (file.to_owned(), Some(kind.to_string()));
                    errors.push(RuleFileError { file, kind, rule: None, problem: Problem::Twice(before) });
                }
            }
            layer.take(rules, text);
        }
        if errors.is_empty() { Ok(layer) } else { Err(RuleErrors(errors)) }
    }

    /// Creates a layer from pairs of a group and the text of its rules, which is parsed at the first use.
    pub(crate) fn lazy(origin: Origin, groups: &[(&'static str, &'static str)]) -> Layer {
        let mut layer = Layer::empty(origin);
        for &(name, text) in groups {
            layer.place(name, RuleGroup::new(text.into(), OnceLock::new()));
        }
        layer
    }

    fn take(&mut self, rules: GroupRules, text: &str) {
        let name = rules.group.clone();
        let before = match name.strip_prefix('*') {
            Some(ending) => self.endings.iter_mut().find(|(it, _)| **it == *ending).map(|(_, group)| group),
            None => self.groups.get_mut(&name),
        };
        let text = Cow::Owned(text.to_owned());
        if let Some(group) = before {
            group.texts.push(text);
            group.names_children.take();
            if let Some(group) = group.rules.get_mut() {
                rules.kinds.into_iter().for_each(|(kind, rules)| drop(group.add(&kind, rules)));
                group.clusters.extend(rules.clusters);
            }
            return;
        }
        self.place(&name, RuleGroup::new(text, OnceLock::from(rules)));
    }

    fn place(&mut self, name: &str, group: RuleGroup) {
        match name.strip_prefix('*') {
            Some(ending) => {
                self.endings.push((ending.into(), group));
                self.endings.sort_by_key(|(ending, _)| std::cmp::Reverse(ending.len()));
            }
            None => drop(self.groups.insert(name.into(), group)),
        }
    }

    /// Returns the origin of all rules in the layer.
    pub fn origin(&self) -> Origin {
        self.origin
    }

    /// Returns the first rules that match: those for `group` before those for its suffixes, the longest first; and in
    /// each, those for `kind` before those for a pattern or `*`. `None` if no rules match.
    pub fn find(&self, group: &str, kind: &str) -> Option<FoundRules<'_>> {
        self.candidates(group).find_map(|group| {
            let (kind, found) = group.rules().kind(kind)?;
            Some(group.of(self.origin, kind, found))
        })
    }

    /// Returns true if the rules of this layer for a kind read the objects that name its objects as owner.
    pub(crate) fn reads_children(&self, group: &str, kind: &str) -> bool {
        self.candidates(group).any(RuleGroup::names_children)
            && self.find(group, kind).is_some_and(|found| found.rules.asks_children())
    }

    /// Lists the kinds whose objects stand for clusters, sorted by group and kind.
    pub(crate) fn cluster_kinds(&self) -> &[GroupKind] {
        self.cluster_kinds.get_or_init(|| {
            // Few groups have such kinds, and the others need not be parsed for them.
            let has_some = |group: &&RuleGroup| match group.rules.get() {
                Some(rules) => !rules.clusters.is_empty(),
                None => group.texts.iter().any(|text| text.contains(CLUSTERS)),
            };
            let kinds = self.groups.values().filter(has_some).flat_map(|group| {
                let GroupRules { group, clusters, .. } = group.rules();
                clusters.keys().map(move |kind| GroupKind::new(&**group, &**kind))
            });
            let mut kinds: Vec<GroupKind> = kinds.collect();
            kinds.sort();
            kinds
        })
    }

    /// Returns the fields by which objects of a kind name the cluster for which they stand; `None` if they stand for none.
    pub(crate) fn cluster_fields(&self, group: &str, kind: &str) -> Option<&ClusterFields> {
        let is_it = |known: &&GroupKind| known.group == group && known.kind == kind;
        self.cluster_kinds().iter().find(is_it)?;
        self.groups.get(group)?.rules().clusters.get(kind)
    }

    /// Returns the rules of `group`, then those of its suffixes, the longest first.
    fn candidates(&self, group: &str) -> impl Iterator<Item = &RuleGroup> {
        let own = self.groups.get(group).into_iter();
        let alike = self.endings.iter().filter(move |(ending, _)| group.ends_with(&**ending));
        own.chain(alike.map(|(_, group)| group))
    }

    /// Lists the rules of all kinds, sorted by group and kind.
    pub fn all(&self) -> Vec<FoundRules<'_>> {
        let groups = self.groups.values().chain(self.endings.iter().map(|(_, group)| group));
        let mut all: Vec<_> = groups
            .flat_map(|group| {
                let rules = group.rules();
                rules.kinds.iter().map(|(kind, found)| group.of(self.origin, kind, found))
            })
            .collect();
        all.sort_by_key(|found| (found.group, found.kind));
        all
    }
}

/// The errors in rules files; never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleErrors(pub Vec<RuleFileError>);

impl std::fmt::Display for RuleErrors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0.as_slice() {
            [] => f.write_str("the rules files have no errors"),
            [one] => one.fmt(f),
            [first, rest @ ..] => write!(f, "{first}, and {} more", rest.len()),
        }
    }
}

impl std::error::Error for RuleErrors {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.first()?.source()
    }
}
