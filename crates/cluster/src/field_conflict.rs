//! Conflicts of an apply with other field managers, as the API server tells them.

use crate::request::StatusCause;

/// The reason of a cause in the API server's answer to an apply that is in conflict with other field managers.
const FIELD_MANAGER_CONFLICT: &str = "FieldManagerConflict";

/// A field that an apply would change though another manager owns it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldConflict {
    /// The path of the field as the server writes it, such as `.spec.replicas`.
    pub path: String,
    /// The conflict as the server words it, such as `conflict with "kubectl" using apps/v1`.
    pub message: String,
    /// The manager that owns the field; `None` if the server words the conflict in another way than Kubernetes.
    pub owner: Option<FieldOwner>,
}

/// The manager in a [`FieldConflict`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldOwner {
    /// The name of the manager.
    pub manager: String,
    /// The subresource by which it wrote the field, such as `status`; `None` for the object itself.
    pub subresource: Option<String>,
    /// The `apiVersion` in which it updated the object; `None` if it applied the field.
    pub updated_version: Option<String>,
}

impl FieldConflict {
    /// Returns the conflicts among the causes of the server's failure.
    pub(crate) fn among(causes: Vec<StatusCause>) -> Vec<FieldConflict> {
        let conflicts = causes.into_iter().filter(|cause| cause.reason == FIELD_MANAGER_CONFLICT);
        let conflicts = conflicts.map(|StatusCause { field, message, .. }| FieldConflict {
            owner: FieldOwner::parse(&message),
            path: field,
            message,
        });
        conflicts.collect()
    }
}

impl FieldOwner {
    /// Parses the message of a cause: `conflict with "kubectl" with subresource "scale" using apps/v1 at
    /// 2026-03-01T12:00:00Z`, of which all after the first name may be missing. Names are quoted as Go does.
    fn parse(message: &str) -> Option<FieldOwner> {
        let rest = message.strip_prefix("conflict with ")?;
        let (manager, rest) = quoted(rest)?;
        let (subresource, rest) = match rest.strip_prefix(" with subresource ") {
            Some(rest) => quoted(rest).map(|(name, rest)| (Some(name), rest))?,
            None => (None, rest),
        };
        let updated_version = match rest.strip_prefix(" using ") {
            Some(rest) => Some(rest.split(' ').next()?.to_owned()),
            None if rest.is_empty() => None,
            None => return None,
        };
        Some(FieldOwner { manager, subresource, updated_version })
    }
}

/// Splits a text that Go's `%q` quoted from the rest; `None` if it does not begin with one, or with one that Go and JSON
/// escape differently.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<String>();
    let name = values.next()?.ok()?;
    text.get(values.byte_offset()..).map(|rest| (name, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_are_read_as_the_server_words_them() {
        let owner = |manager: &str, subresource: Option<&str>, version: Option<&str>| FieldOwner {
            manager: manager.to_owned(),
            subresource: subresource.map(str::to_owned),
            updated_version: version.map(str::to_owned),
        };
        let cases = [
            (r#"conflict with "argocd""#, Some(owner("argocd", None, None))),
            (
                r#"conflict with "kubectl-client-side-apply" using apps/v1"#,
                Some(owner("kubectl-client-side-apply", None, Some("apps/v1"))),
            ),
            (
                r#"conflict with "a \"b\" using x" with subresource "scale" using apps/v1 at 2026-03-01T12:00:00Z"#,
                Some(owner("a \"b\" using x", Some("scale"), Some("apps/v1"))),
            ),
            (r#"conflict with "a" and others"#, None),
            (r#"conflict with "a"#, None),
            ("conflict with a", None),
            ("", None),
        ];
        for (message, expected) in cases {
            assert_eq!(FieldOwner::parse(message), expected, "{message}");
        }
    }

    #[test]
    fn only_causes_of_managers_are_conflicts() {
        let causes = vec![
            StatusCause {
                reason: "FieldValueInvalid".to_owned(),
                field: ".a".to_owned(),
                ..StatusCause::default()
            },
            StatusCause {
                reason: FIELD_MANAGER_CONFLICT.to_owned(),
                field: ".b".to_owned(),
                message: "theirs".to_owned(),
            },
        ];
        let conflict = FieldConflict { path: ".b".to_owned(), message: "theirs".to_owned(), owner: None };
        assert_eq!(FieldConflict::among(causes), [conflict]);
    }
}
