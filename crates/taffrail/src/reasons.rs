//! The table of the reasons of errors, each with its meaning and a hint.

use taffrail_cluster::Reason;

/// The reason of the error about a script of actions that failed.
pub(crate) const SCRIPT_FAILED: &str = "ScriptFailed";

/// The reason of the error about a manifest that cannot be compared.
pub(crate) const INVALID_MANIFEST: &str = "InvalidManifest";

/// The reason of the error about manifests that declare nothing.
pub(crate) const NO_OBJECTS: &str = "NoObjects";

/// The reason of the error about an app of which the repository does not tell the objects.
pub(crate) const UNTOLD: &str = "Untold";

/// The reasons of errors that are not errors of a request to a server: name, meaning and hint.
const OWN: [(&str, &str, &str); 15] = [
    (
        "DiscoveryFailed",
        "The server could not list the kinds of a group.",
        "`kubectl get apiservices` shows which API service is down; its kinds are Unknown until then",
    ),
    (
        "Empty",
        "A dump contains no objects.",
        "check the file; `taffrail dump` writes one with all objects that you may read",
    ),
    (
        INVALID_MANIFEST,
        "A manifest is not valid, so that its objects are not compared.",
        "correct the file at the line that the message names",
    ),
    (
        "Malformed",
        "An object does not have the structure of its kind; it was read as far as possible.",
        "check the object with `kubectl get -o yaml`, and the tool that writes it",
    ),
    (
        "NameTaken",
        "A cluster that a Secret names would have the name of a context of the kubeconfig.",
        "give the context in the kubeconfig another name",
    ),
    (
        NO_OBJECTS,
        "The manifests declare no object.",
        "check the files, and the program before the pipe; an empty input is taken for a mistake",
    ),
    (
        "NotInDump",
        "The dump does not contain an object or kind, because it was not read when the dump was written.",
        "write the dump again with sufficient rights, and without -n",
    ),
    (
        "NotJudged",
        "Judging an object, or those of a namespace, would take too long or too many steps.",
        "check which objects fill the namespace that the message names; a longer --timeout judges more objects",
    ),
    ("Overlap", "Several apps declare the same object.", "remove the object from all of these apps but one"),
    (
        "OwnersUnread",
        "Objects may belong to apps that could not be read, so that it is not known whether they are orphaned.",
        "read the apps that the message names: their cluster must answer, and you need a role that allows to list them",
    ),
    (
        SCRIPT_FAILED,
        "A script of actions failed, or was stopped.",
        "correct the script at the line that the message names",
    ),
    (
        "TooLarge",
        "The dump has reached its maximum size.",
        "raise the maximum size of the dump with `taffrail dump --max-size`",
    ),
    (
        "TooMany",
        "The dump has reached its maximum number of kinds or of Helm releases.",
        "dump a single namespace with `taffrail dump -n`",
    ),
    (
        UNTOLD,
        "The repository does not tell which objects an app declares, so that the impact on them is not known.",
        "render the manifests as the message says, and compare them with `taffrail diff`",
    ),
    (
        "Unreadable",
        "A dump could not be read, or not completely.",
        "check that the file is complete, and YAML or JSON as printed by `kubectl get -o yaml`",
    ),
];

/// Returns the hint for an error with this reason: what the user can do about it; `None` for an unknown reason.
pub(crate) fn hint(reason: &str) -> Option<&'static str> {
    let of_clusters = Reason::ALL.iter().find(|known| known.as_str() == reason).map(|known| known.hint());
    of_clusters.or_else(|| OWN.iter().find(|(word, ..)| *word == reason).map(|(.., hint)| *hint))
}

/// Returns all reasons with their meaning and hint, sorted by reason.
#[cfg(test)]
pub(crate) fn table() -> Vec<(&'static str, &'static str, &'static str)> {
    let meaning = |reason: Reason| match reason {
        Reason::Timeout => {
            "The cluster took longer than --timeout, or a request longer than --request-timeout."
        }
        Reason::Unauthorized => "The server does not accept the credentials.",
        Reason::Forbidden => "The server accepts the credentials, but does not allow them this request.",
        Reason::NotFound => "The server has no such object, or no such kind.",
        Reason::CertificateInvalid => {
            "The server's certificate is not trusted, is for another name, or is not valid yet."
        }
        Reason::CertificateExpired => "The server's certificate has expired.",
        Reason::ConnectionRefused => "No process listens at the server's address.",
        Reason::ConnectionLost => "The connection broke before the answer was complete.",
        Reason::ConnectionFailed => {
            "The server is unreachable, or the two ends do not speak the same protocol."
        }
        Reason::NameNotResolved => "The server's name does not resolve.",
        Reason::ProxyFailed => "The proxy did not connect to the server.",
        Reason::ExecPluginFailed => "The exec plugin did not give credentials.",
        Reason::CredentialsInvalid => "The credentials cannot be used or renewed.",
        Reason::NotJson => "The answer is not JSON; perhaps it does not come from an API server.",
        Reason::UnexpectedAnswer => "The answer is JSON, but not of the requested form.",
        Reason::ServerError => "The server failed.",
        Reason::TooManyRequests => "The server asks to wait longer than --timeout.",
        Reason::Gone => "The server no longer keeps the version that was being read.",
        Reason::OverLimit => {
            "A limit is exceeded: a cluster sends too much, a namespace has too many apps, or apps name too many objects, kinds or namespaces in another cluster."
        }
        Reason::BadRequest => "The server rejects the request.",
        Reason::Conflict => "Another client changed the object since it was read.",
        Reason::Invalid => "The server, or one of its webhooks, rejects the changed object.",
        Reason::BadKubeconfig => "The kubeconfig, or this context in it, cannot be used.",
        _ => "",
    };
    let of_clusters = Reason::ALL.iter().map(|reason| (reason.as_str(), meaning(*reason), reason.hint()));
    let mut all: Vec<_> = of_clusters.chain(OWN).collect();
    all.sort_unstable();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_a_meaning_and_a_hint() {
        for (reason, meaning, of_table) in table() {
            assert!(!meaning.is_empty(), "{reason}");
            assert_eq!(hint(reason), Some(of_table), "{reason}");
        }
        assert_eq!(hint("NoSuchReason"), None);
    }
}
