//! The names by which questions name an app or an object.

use std::fmt;
use std::str::FromStr;

use taffrail_apps::{AppQuery, Objects, Snapshot};
use taffrail_object::kinds::names_kind;
use taffrail_object::{ObjectKey, ObjectKeyRef};
use taffrail_status::{ClusterState as _, Presence};

/// The name of an app or an object, as users write it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubjectName {
    text: String,
    form: NameForm,
}

/// The form of a [`SubjectName`].
#[derive(Debug, Clone, PartialEq, Eq)]
enum NameForm {
    /// `[CLUSTER/]group/Kind/namespace/name`
    Key { cluster: Option<String>, key: ObjectKey },
    /// A text that may be the name of an app or `KIND/NAME`; the objects that were read decide.
    Words(AppQuery),
}

/// The error for a text that can be the name of neither an app nor an object; holds the text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is neither the name of an app nor of an object")]
pub struct InvalidSubject(pub String);

impl FromStr for SubjectName {
    type Err = InvalidSubject;

    fn from_str(text: &str) -> Result<SubjectName, InvalidSubject> {
        let of = |form| Ok(SubjectName { text: text.to_owned(), form });
        let query = text.parse::<AppQuery>();
        match query {
            // The full name of an app has as many parts as that of an object.
            Ok(query) if query.cluster().is_some() => return of(NameForm::Words(query)),
            _ => {}
        }
        if let Some((cluster, key)) = ObjectKey::in_cluster(text) {
            return of(NameForm::Key { cluster: Some(cluster.to_owned()), key });
        }
        match (text.parse(), query) {
            (Ok(key), _) => of(NameForm::Key { cluster: None, key }),
            (Err(_), Ok(query)) => of(NameForm::Words(query)),
            (Err(_), Err(_)) => Err(InvalidSubject(text.to_owned())),
        }
    }
}

impl fmt::Display for SubjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl SubjectName {
    /// Returns the key of the object, if the name is a full key; `None` for other forms.
    pub(in crate::question) fn key(&self) -> Option<&ObjectKey> {
        match &self.form {
            NameForm::Key { key, .. } => Some(key),
            NameForm::Words(_) => None,
        }
    }

    /// Returns the name as that of an app; `None` if it is the key of an object.
    pub(in crate::question) fn query(&self) -> Option<&AppQuery> {
        match &self.form {
            NameForm::Key { .. } => None,
            NameForm::Words(query) => Some(query),
        }
    }

    /// Returns the cluster in `CLUSTER/group/Kind/namespace/name` or `CLUSTER/DELIVERY/NAMESPACE/NAME`; `None` for any
    /// other form.
    pub(in crate::question) fn cluster(&self) -> Option<&str> {
        match &self.form {
            NameForm::Key { cluster, .. } => cluster.as_deref(),
            NameForm::Words(query) => query.cluster(),
        }
    }

    /// Returns the clusters that the name begins with and, for an app, ends with.
    pub(in crate::question) fn clusters_mut(&mut self) -> Vec<&mut String> {
        match &mut self.form {
            NameForm::Key { cluster, .. } => cluster.iter_mut().collect(),
            NameForm::Words(query) => query.clusters_mut().collect(),
        }
    }

    /// Splits the name into kind and name; `None` if it does not have the form `KIND/NAME`.
    pub(in crate::question) fn kind_and_name(&self) -> Option<(&str, &str)> {
        match &self.form {
            NameForm::Key { .. } => None,
            NameForm::Words(_) => self.text.split_once('/').filter(|(_, name)| !name.contains('/')),
        }
    }

    /// Returns the keys of objects to read for `KIND/NAME` in a cluster that was read in part: for each served kind
    /// that matches, the object in `namespace` if it is unread; and the objects already read, in the namespace `chosen`
    /// by the user or in any if it is `None`. Empty for other forms of names, and if the served kinds are not known.
    pub(in crate::question) fn keys(
        &self,
        snapshot: &Snapshot,
        namespace: &str,
        chosen: Option<&str>,
    ) -> Vec<ObjectKey> {
        let Some(((kind, name), catalog)) = self.kind_and_name().zip(snapshot.kinds()) else {
            return Vec::new();
        };
        let keys = catalog.iter().filter(|served| served.is_called(kind)).map(|served| {
            let namespace = if served.namespaced { namespace } else { "" };
            ObjectKey::new(&*served.group, &*served.kind, namespace, name)
        });
        let unread = keys.filter(|key| matches!(snapshot.get(key.as_ref()), Presence::Unobserved(_)));
        // Known objects need more reads too: their kind may have been listed for apps of other namespaces, and evidence
        // was then read only there.
        let known = snapshot.all().filter(|it| self.is_object(it.key, chosen));
        unread.chain(known.map(|it| it.key.to_owned())).collect()
    }

    /// Returns true if the name can be only that of an app, because it has no slash.
    pub(in crate::question) fn is_of_app(&self) -> bool {
        matches!(self.form, NameForm::Words(_)) && !self.text.contains('/')
    }

    /// Returns true if the name means the object with this `key`. For `KIND/NAME` a namespaced object must be in
    /// `namespace`, or in any if that is `None`.
    pub(in crate::question) fn is_object(&self, key: ObjectKeyRef<'_>, namespace: Option<&str>) -> bool {
        match (self.key(), self.kind_and_name()) {
            (Some(own), _) => own.as_ref() == key,
            (None, Some((kind, name))) => {
                name == key.name
                    && (key.namespace.is_empty() || namespace.is_none_or(|it| it == key.namespace))
                    && names_kind(kind, key.group, key.kind)
            }
            (None, None) => false,
        }
    }
}
