//! A kubeconfig that another cluster holds in a Secret: one context, without files.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::file::{FileText, Named};
use super::{Context, Kubeconfig, KubeconfigError};

/// The name of the context, and of its cluster and user, in a kubeconfig made of one [`Entries`].
const ONLY: &str = "it";

/// The maximum number of contexts, of clusters and of users in the kubeconfig of a Secret; a kubeconfig with more is
/// refused. Finding equal names takes quadratic time.
const MAX_ENTRIES: usize = 1_000;

/// The unparsed fields of the cluster and the user of one context.
pub(crate) struct Entries {
    pub(crate) cluster: Map<String, Value>,
    pub(crate) user: Map<String, Value>,
}

/// The reason why no context of a kubeconfig could be chosen.
pub(crate) enum NotChosen {
    Kubeconfig(KubeconfigError),
    /// There is no current context, and the number of contexts is not one.
    Ambiguous(usize),
    /// The current context, its cluster or its user is not defined, is defined twice, or is malformed.
    Broken(&'static str),
    /// There are more contexts, clusters or users than this maximum.
    TooMany(usize),
}

impl Entries {
    /// Returns the entries of the current context of a kubeconfig, or, if it sets none, of its only context. Reads no
    /// file.
    pub(crate) fn choose(kubeconfig: &[u8]) -> Result<Entries, NotChosen> {
        let file = Path::new("kubeconfig");
        let text = FileText::parse_without_aliases(file, kubeconfig).map_err(NotChosen::Kubeconfig)?;
        if [&text.contexts, &text.clusters, &text.users].iter().any(|list| list.len() > MAX_ENTRIES) {
            return Err(NotChosen::TooMany(MAX_ENTRIES));
        }
        let mut all = Kubeconfig { current: text.current.clone(), ..Kubeconfig::default() };
        all.add(file, text);
        let context = match (&all.current, &all.contexts[..]) {
            (Some(current), contexts) => contexts.iter().find(|context| context.name == *current),
            (None, [only]) => Some(only),
            (None, contexts) => return Err(NotChosen::Ambiguous(contexts.len())),
        };
        let context =
            context.ok_or(NotChosen::Broken("the kubeconfig does not define its current-context"))?;
        let field = |key: &str| context.body.get(key).and_then(Value::as_str).filter(|name| !name.is_empty());
        let cluster = field("cluster").and_then(|name| all.clusters.get(name));
        let cluster =
            cluster.ok_or(NotChosen::Broken("the kubeconfig does not define the cluster of its context"))?;
        let user = match field("user") {
            Some(name) => Some(
                all.users
                    .get(name)
                    .ok_or(NotChosen::Broken("the kubeconfig does not define the user of its context"))?,
            ),
            None => None,
        };
        if context.twice || cluster.twice || user.is_some_and(|user| user.twice) {
            return Err(NotChosen::Broken(
                "the kubeconfig defines its context, or the cluster or user of that, twice",
            ));
        }
        let fields = |entry: &Named| match &entry.body {
            Value::Object(fields) => Ok(fields.clone()),
            _ => Err(NotChosen::Broken("the cluster or user of the kubeconfig's context is malformed")),
        };
        Ok(Entries { cluster: fields(cluster)?, user: user.map(fields).transpose()?.unwrap_or_default() })
    }

    /// Returns the context with these entries, called `name`. The entries must name no file.
    pub(crate) fn context(self, name: &str) -> Result<Context, KubeconfigError> {
        let file: Arc<Path> = Arc::from(Path::new("kubeconfig"));
        let entry = |body| Named { name: ONLY.to_owned(), file: file.clone(), line: 1, body, twice: false };
        let kubeconfig = Kubeconfig {
            contexts: vec![entry(json!({"cluster": ONLY, "user": ONLY}))],
            clusters: [(ONLY.to_owned(), entry(Value::Object(self.cluster)))].into(),
            users: [(ONLY.to_owned(), entry(Value::Object(self.user)))].into(),
            ..Kubeconfig::default()
        };
        let context = kubeconfig.context(ONLY)?;
        Ok(Context { name: name.to_owned(), ..context })
    }
}
