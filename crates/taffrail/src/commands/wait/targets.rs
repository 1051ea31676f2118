//! Parses the targets of the command line, and resolves them in each cluster.

use taffrail_apps::wait::{Selection, Target, Until};
use taffrail_apps::{AppQuery, InvalidAppQuery};
use taffrail_cluster::Discovery;
use taffrail_object::json::Parser;
use taffrail_object::kinds::{is_namespaced, listable, names_kind};
use taffrail_object::{GroupKind, LabelSelector, ObjectKey};

use super::arguments::WaitArguments;
use crate::command_error::CommandError;
use taffrail_observe::input::{self, Chunks};
use taffrail_observe::{InventoryArg, ObjectArg};

/// The targets that the command line names, before they are resolved in each cluster.
#[derive(Debug, Default)]
pub(super) struct ReadQuery {
    pub(super) apps: Vec<AppQuery>,
    words: Vec<TargetArg>,
    namespace: Option<String>,
    all_namespaces: bool,
    labels: Option<String>,
}

/// A target of `wait` as the command line or a file of `-f` names it, before it is looked up.
#[derive(Debug, PartialEq, Eq)]
enum TargetArg {
    Object(ObjectArg),
    /// All objects of a kind, which the user may give by any of its names.
    Kind(String),
    /// The key of an object in a file of `-f`. If the file gives no namespace, that of -n or the context counts.
    Manifest(ObjectKey),
    Inventory(InventoryArg),
}

impl ReadQuery {
    pub(super) fn read(arguments: &WaitArguments) -> Result<ReadQuery, CommandError> {
        let mut asked = ReadQuery {
            namespace: arguments.namespace.clone(),
            all_namespaces: arguments.all_namespaces,
            labels: arguments.selector.as_ref().map(LabelSelector::to_string),
            ..ReadQuery::default()
        };
        asked.words(&arguments.targets)?;
        for text in &arguments.inventory {
            let inventory = text.parse::<InventoryArg>().map_err(CommandError::usage)?;
            asked.words.push(TargetArg::Inventory(inventory));
        }
        if !arguments.files.is_empty() {
            asked.files(arguments)?;
        }
        if asked.labels.is_some() && !asked.words.iter().any(|word| matches!(word, TargetArg::Kind(_))) {
            return Err(CommandError::usage(
                "-l selects the objects of a kind by labels: write the kind without a name",
            ));
        }
        let is_named = |word: &TargetArg| matches!(word, TargetArg::Object(ObjectArg::Named { .. }));
        if asked.all_namespaces && asked.words.iter().any(is_named) {
            let complaint = CommandError::usage(
                "an object named KIND/NAME needs a namespace, and -A stands for all of them",
            );
            return Err(complaint.hint("name the object's namespace with -n, or write a kind without a name"));
        }
        if matches!(arguments.until, Until::Revision(_)) && !asked.words.is_empty() {
            return Err(CommandError::usage("--for revision=… waits for apps: only apps have revisions")
                .hint("with --for revision=… name only apps, each as app/NAME"));
        }
        Ok(asked)
    }

    fn words(&mut self, words: &[String]) -> Result<(), CommandError> {
        if words.first().is_some_and(|word| !word.contains('/')) {
            return self.kind_and_names(words);
        }
        for word in words {
            if let Some(name) = word.strip_prefix("app/") {
                self.app(name)?;
            } else if word.parse().is_ok_and(|query: AppQuery| query.is_full()) {
                self.app(word)?;
            } else {
                let object = word.parse().map_err(|_| {
                    CommandError::usage(format!("'{word}' names neither an object nor an app")).hint(
                        "name an object as KIND/NAME or [CLUSTER/]group/Kind/namespace/name, an app as app/NAME",
                    )
                })?;
                self.words.push(TargetArg::Object(object));
            }
        }
        Ok(())
    }

    fn app(&mut self, name: &str) -> Result<(), CommandError> {
        let query: AppQuery = name.parse().map_err(|error: InvalidAppQuery| CommandError::usage(error))?;
        self.apps.push(query.within(self.namespace.as_deref()));
        Ok(())
    }

    /// Adds the targets of the words `KIND,… NAME …` (apps for the kind `app`), or of `KIND,…` alone; fails if a name
    /// contains a slash.
    fn kind_and_names(&mut self, words: &[String]) -> Result<(), CommandError> {
        let Some((kinds, names)) = words.split_first() else { return Ok(()) };
        if names.iter().any(|name| name.contains('/')) {
            let complaint = CommandError::usage("KIND/NAME and KIND NAME cannot be mixed");
            return Err(complaint.hint("write every object as KIND/NAME: deploy/web svc/web"));
        }
        if kinds == "app" && !names.is_empty() {
            return names.iter().try_for_each(|name| self.app(name));
        }
        for kind in kinds.split(',').filter(|kind| !kind.is_empty()) {
            if names.is_empty() {
                self.words.push(TargetArg::Kind(kind.to_owned()));
            }
            self.words.extend(names.iter().map(|name| TargetArg::Object(ObjectArg::named(kind, name))));
        }
        Ok(())
    }

    fn files(&mut self, arguments: &WaitArguments) -> Result<(), CommandError> {
        let (sources, problems) = input::sources(&arguments.files, arguments.recursive);
        let mut complaints: Vec<CommandError> = problems.iter().map(CommandError::from).collect();
        let mut parser = Parser::new();
        let before = self.words.len();
        for source in sources {
            let name = source.name();
            let wrong = |what: String| CommandError::unreadable(format!("cannot read {name}: {what}"));
            let mut chunks = Chunks::new(source.open()?, &name, None);
            while let Some(chunk) = chunks.next_chunk().map_err(|error| wrong(error.to_string()))? {
                input::each(&chunk, &mut parser, |parsed| match parsed.object {
                    Ok(object) => {
                        let key = ObjectKey::of(&object);
                        if key.name.is_empty() {
                            complaints.push(wrong(format!("line {}: an object without a name", parsed.line)));
                        } else {
                            self.words.push(TargetArg::Manifest(key));
                        }
                    }
                    Err(fault) => complaints.push(wrong(format!("line {}: {fault}", parsed.line))),
                });
            }
        }
        // Half a file would look like all of it.
        if let Some(complaint) = complaints.into_iter().next() {
            return Err(complaint);
        }
        match self.words.len() == before {
            true => Err(CommandError::usage("the files named with -f contain no objects")),
            false => Ok(()),
        }
    }

    /// Returns the only target if it is a word without a dot that names neither a built-in kind nor one of a delivery
    /// tool, and no -l is given: the user may have meant an app of that name. Else returns `None`.
    pub(super) fn likely_app(&self) -> Option<&str> {
        match self.words.as_slice() {
            [TargetArg::Kind(kind)]
                if self.labels.is_none() && !kind.contains('.') && !is_known_kind(kind) =>
            {
                Some(kind)
            }
            _ => None,
        }
    }

    /// Returns true if all targets are apps.
    pub(super) fn is_of_apps(&self) -> bool {
        self.words.is_empty()
    }

    pub(super) fn has_inventories(&self) -> bool {
        self.words.iter().any(|word| matches!(word, TargetArg::Inventory(_)))
    }

    /// Returns the names of the clusters with which targets begin, one for each such target.
    pub(super) fn clusters(&self) -> Vec<String> {
        let of_apps = self.apps.iter().filter_map(AppQuery::cluster);
        let of_objects = self.words.iter().filter_map(|word| match word {
            TargetArg::Object(object) => object.cluster(),
            _ => None,
        });
        of_apps.chain(of_objects).map(str::to_owned).collect()
    }

    /// Returns the targets other than apps in `cluster`, whose kinds are in `discovery` (`None` before discovery);
    /// `namespace` is that of its context. A target whose kind is a word that `discovery` does not know is
    /// [`Target::UnknownKind`].
    pub(super) fn targets(
        &self,
        cluster: &str,
        discovery: Option<&Discovery>,
        namespace: &str,
    ) -> Vec<Target> {
        let namespace = self.namespace.as_deref().unwrap_or(namespace);
        let is_here = |word: &&TargetArg| match word {
            TargetArg::Object(object) => object.cluster().is_none_or(|own| own == cluster),
            _ => true,
        };
        self.words.iter().filter(is_here).map(|word| self.target(word, discovery, namespace)).collect()
    }

    fn target(&self, word: &TargetArg, discovery: Option<&Discovery>, namespace: &str) -> Target {
        let unknown = |word: &str, name: Option<&str>| Target::UnknownKind {
            word: word.to_owned(),
            name: name.map(str::to_owned),
            why: match discovery {
                None => Some("Taffrail has not read yet which kinds the server has".to_owned()),
                Some(discovery) => discovery.broken().first().map(|group| {
                    format!(
                        "the server has no known kind called {word}, but not all kinds could be read; {}: {}",
                        group.name, group.reason
                    )
                }),
            },
        };
        let resolved = |kind: &str| discovery.and_then(|discovery| discovery.resolve(kind));
        let within = |namespaced: bool| if namespaced { namespace } else { "" };
        match word {
            TargetArg::Object(ObjectArg::Key { key, .. }) => Target::Object(key.clone()),
            TargetArg::Object(ObjectArg::Named { kind, name }) => match resolved(kind) {
                Some(it) => Target::Object(ObjectKey::new(it.group, it.kind, within(it.namespaced), &**name)),
                None => unknown(kind, Some(name)),
            },
            TargetArg::Kind(kind) => match resolved(kind) {
                Some(it) => Target::Selection(Selection {
                    kind: GroupKind::new(it.group, it.kind),
                    namespace: (it.namespaced && !self.all_namespaces).then(|| namespace.to_owned()),
                    labels: self.labels.clone(),
                }),
                None => unknown(kind, None),
            },
            TargetArg::Manifest(key) => {
                let served = discovery.and_then(|it| it.kind(&key.group, &key.kind)).map(|it| it.namespaced);
                let namespaced = served.or_else(|| is_namespaced(&key.group, &key.kind));
                let place = match namespaced {
                    Some(false) => "",
                    Some(true) if key.namespace.is_empty() => namespace,
                    _ => &key.namespace,
                };
                Target::Object(ObjectKey { namespace: place.to_owned(), ..key.clone() })
            }
            TargetArg::Inventory(inventory) => {
                match discovery.and_then(|discovery| inventory.find(discovery, namespace)) {
                    Some((_, key)) => Target::Inventory(key),
                    None => unknown(inventory.kind(discovery), Some(&inventory.name)),
                }
            }
        }
    }
}

/// Kinds of the delivery tools, which need no server to be recognised as kinds, like the built-in ones.
const DELIVERY_KINDS: [&str; 8] = [
    "Kustomization",
    "HelmRelease",
    "GitRepository",
    "Application",
    "ApplicationSet",
    "RootSync",
    "RepoSync",
    "ResourceGroup",
];

fn is_known_kind(word: &str) -> bool {
    let built_in = listable().map(|(_, kind)| kind);
    built_in.chain(DELIVERY_KINDS).any(|kind| names_kind(word, "", kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str]) -> Result<ReadQuery, CommandError> {
        let mut asked = ReadQuery { namespace: Some("shop".to_owned()), ..ReadQuery::default() };
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        asked.words(&words).map(|()| asked)
    }

    #[test]
    fn targets_parse_in_every_form() {
        let key = |cluster: Option<&str>, key| {
            TargetArg::Object(ObjectArg::Key { cluster: cluster.map(str::to_owned), key })
        };
        let named = |kind: &str, name: &str| TargetArg::Object(ObjectArg::named(kind, name));
        for (words, expected) in [
            (vec!["deploy/web", "svc/web"], vec![named("deploy", "web"), named("svc", "web")]),
            (vec!["deploy", "web", "api"], vec![named("deploy", "web"), named("deploy", "api")]),
            (
                vec!["deploy,sts"],
                vec![TargetArg::Kind("deploy".to_owned()), TargetArg::Kind("sts".to_owned())],
            ),
            (
                vec!["apps/Deployment/shop/web"],
                vec![key(None, ObjectKey::new("apps", "Deployment", "shop", "web"))],
            ),
            (vec!["/Service/shop/web"], vec![key(None, ObjectKey::new("", "Service", "shop", "web"))]),
            (
                vec!["a/b//Service/shop/web"],
                vec![key(Some("a/b"), ObjectKey::new("", "Service", "shop", "web"))],
            ),
        ] {
            assert_eq!(read(&words).map(|asked| asked.words).ok(), Some(expected), "{words:?}");
        }
        for words in [vec!["app/shop"], vec!["app", "shop"]] {
            let asked = read(&words).ok().filter(|asked| asked.is_of_apps());
            assert_eq!(asked.map(|asked| asked.apps.len()), Some(1), "{words:?}");
        }
        for words in [vec!["deploy/"], vec!["a/b/c"], vec!["deploy", "svc/web"], vec!["app/"]] {
            assert!(read(&words).is_err(), "{words:?}");
        }
    }

    #[test]
    fn unknown_kinds_become_pending_targets() {
        let asked = read(&["widget/one"]).unwrap_or_default();
        let targets = asked.targets("one", None, "default");
        assert!(matches!(&targets[..], [Target::UnknownKind { why: Some(_), .. }]), "{targets:?}");
    }
}
