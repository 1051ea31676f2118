//! The table of reasons for which data could not be read, with hints.

use taffrail_cluster::Reason;

/// Reasons that only Taffrail gives, not a server.
const OWN: [(&str, &str, &str); 9] = [
    (
        "DiscoveryFailed",
        "The server could not say which kinds a group has.",
        "`kubectl get apiservices` shows which API service is down; its kinds are Unknown until then",
    ),
    (
        "Empty",
        "A dump holds no objects.",
        "is it the file that was meant? `taffrail dump` writes one with all that you may read",
    ),
    (
        "Malformed",
        "An object is not of the form that its kind has; it was read as far as possible.",
        "look at the object with `kubectl get -o yaml`, and at what writes it",
    ),
    (
        "NotInDump",
        "A dump does not hold it: it was not read when the dump was written.",
        "write the dump again with the rights, and without the -n, that it takes to read it",
    ),
    (
        "NotJudged",
        "Judging it would take too long, or too many steps.",
        "look at what fills that namespace; a longer --timeout, or -n for another namespace, judges more",
    ),
    ("Overlap", "Several apps declare the same object.", "remove it from all of them but one"),
    ("TooLarge", "A dump is as large as it may be.", "`taffrail dump --max-size` sets how large it may be"),
    (
        "TooMany",
        "A dump holds only so many kinds, and so many releases of Helm.",
        "`taffrail dump -n` writes one namespace",
    ),
    (
        "Unreadable",
        "A dump could not be read, or not all of it.",
        "is the file whole, and YAML or JSON as `kubectl get -o yaml` prints it?",
    ),
];

/// Returns the hint for a reason.
pub(crate) fn hint(reason: &str) -> Option<&'static str> {
    let of_clusters = Reason::ALL.iter().find(|known| known.as_str() == reason).map(|known| known.hint());
    of_clusters.or_else(|| OWN.iter().find(|(word, ..)| *word == reason).map(|(.., hint)| *hint))
}

/// Returns all reasons with their meaning and hint, sorted by reason.
#[cfg(test)]
pub(crate) fn table() -> Vec<(&'static str, &'static str, &'static str)> {
    let meaning = |reason: Reason| match reason {
        Reason::Timeout => "The cluster took longer than --timeout.",
        Reason::Unauthorized => "The server does not accept who we are.",
        Reason::Forbidden => "The server knows who we are and does not allow this.",
        Reason::NotFound => "The server has no such object, or no such kind.",
        Reason::CertificateInvalid => "The server's certificate is not to be trusted.",
        Reason::CertificateExpired => "The server's certificate has expired.",
        Reason::ConnectionRefused => "Nobody listens at the server's address.",
        Reason::ConnectionLost => "The connection broke before the answer was complete.",
        Reason::ConnectionFailed => {
            "There is no way to the server, or the two ends do not speak the same protocol."
        }
        Reason::NameNotResolved => "The server's name has no address.",
        Reason::ProxyFailed => "The proxy did not let us through.",
        Reason::ExecPluginFailed => "The program that should have given credentials did not.",
        Reason::CredentialsInvalid => "The credentials cannot be used or renewed.",
        Reason::NotJson => "The answer is not JSON; perhaps it comes from something else than an API server.",
        Reason::UnexpectedAnswer => "The answer is JSON, but not what was asked for.",
        Reason::ServerError => "The server failed.",
        Reason::TooManyRequests => "The server asks for more patience than --timeout has.",
        Reason::Gone => "What was being read is no longer kept by the server.",
        Reason::OverLimit => {
            "More than is read: a cluster sends too much, or apps name too many objects, or objects of too many kinds, or in too many namespaces, in another cluster."
        }
        Reason::BadRequest => "The server rejects the request as it stands.",
        Reason::Conflict => "What was to be changed was changed by somebody else since it was read.",
        Reason::Invalid => {
            "The server, or a webhook of it, does not accept the object that a change would make."
        }
        Reason::BadKubeconfig => "The kubeconfig, or this context of it, cannot be used.",
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
