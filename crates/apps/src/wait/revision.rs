//! Comparison of revisions: tools write one commit in several ways, and users write the start of it.

use std::fmt;

/// The minimum length of an abbreviated commit; shorter texts count as names.
const MIN_HASH_LENGTH: usize = 4;

/// A revision as a user writes it: a commit or its start (`1e64462`, `sha1:1e64462`), a branch or tag with it
/// (`main@sha1:1e64462`), or a tag or version (`v1.2`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revision(String);

/// The parts of a revision: a branch, tag or version; the algorithm of the commit hash; the hash.
#[derive(Debug, PartialEq, Eq)]
struct RevisionParts<'t> {
    /// The branch, tag or version; `None` if the revision is only a commit.
    name: Option<&'t str>,
    algorithm: Option<&'t str>,
    hash: Option<&'t str>,
}

impl Revision {
    /// Makes a revision from a text, without checking it.
    pub fn new(text: &str) -> Revision {
        Revision(text.trim().to_owned())
    }

    /// Returns true if `applied`, as a tool writes it, has each part that this revision names: the start of the commit,
    /// and the name, compared without `refs/heads/`, `refs/tags/`, the `v` of a version and build metadata.
    ///
    /// ```
    /// use taffrail_apps::wait::Revision;
    ///
    /// let applied = "main@sha1:1e644628deb645c454f4db167e1041e95e2d0ba3";
    /// for same in ["1e64462", "sha1:1e644628", "main@sha1:1e64462", "main@1e64462", "main/1e64462"] {
    ///     assert!(Revision::new(same).is(applied), "{same}");
    /// }
    /// assert!(!Revision::new("main@sha1:2e64462").is(applied));
    /// assert!(Revision::new("v1.2").is("1.2"));
    /// ```
    pub fn is(&self, applied: &str) -> bool {
        let applied = applied.trim();
        if self.0 == applied {
            return true;
        }
        let (wanted, found) = (RevisionParts::of(&self.0), RevisionParts::of(applied));
        let same_hash = wanted.hash.is_none_or(|wanted| {
            found.hash.is_some_and(|found| {
                found.get(..wanted.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(wanted))
            })
        });
        let same_algorithm =
            wanted.algorithm.is_none_or(|wanted| found.algorithm.is_none_or(|it| it == wanted));
        let same_name = wanted
            .name
            .is_none_or(|wanted| found.name.is_some_and(|found| version(found) == version(wanted)));
        same_hash && same_algorithm && same_name && (wanted.hash.is_some() || wanted.name.is_some())
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl<'t> RevisionParts<'t> {
    fn of(text: &'t str) -> RevisionParts<'t> {
        // Flux wrote `main/<commit>` before it wrote `main@sha1:<commit>`.
        let split =
            text.rsplit_once('@').or_else(|| text.rsplit_once('/').filter(|(_, rest)| hash(rest).is_some()));
        let (name, rest) = split.map_or((None, text), |(name, rest)| (Some(name), rest));
        let (algorithm, digits) = match rest.split_once(':') {
            Some((algorithm, digits)) => (Some(algorithm), digits),
            None => (None, rest),
        };
        let name = name.map(short).filter(|name| !name.is_empty());
        match hash(digits) {
            Some(hash) => RevisionParts { name, algorithm, hash: Some(hash) },
            None => RevisionParts { name: Some(short(text)), algorithm: None, hash: None },
        }
    }
}

/// Returns the text if it may be the start of a commit hash, 4 to 128 hexadecimal digits; `None` for any other.
fn hash(text: &str) -> Option<&str> {
    let is_hex = text.bytes().all(|byte| byte.is_ascii_hexdigit());
    (is_hex && (MIN_HASH_LENGTH..=128).contains(&text.len())).then_some(text)
}

/// Removes `refs/heads/` or `refs/tags/` from a branch or tag.
fn short(name: &str) -> &str {
    name.strip_prefix("refs/heads/").or_else(|| name.strip_prefix("refs/tags/")).unwrap_or(name)
}

/// Removes the `v` before a version and the build metadata after it, which are often left out.
fn version(name: &str) -> &str {
    let begins_with_digit = |text: &&str| text.starts_with(|first: char| first.is_ascii_digit());
    let plain = name.strip_prefix('v').filter(begins_with_digit).unwrap_or(name);
    match plain.split_once('+') {
        Some((version, _)) if begins_with_digit(&plain) => version,
        _ => plain,
    }
}

#[cfg(test)]
mod tests {
    use super::Revision;

    #[test]
    fn revisions_are_compared_by_the_parts_they_name() {
        const COMMIT: &str = "1e644628deb645c454f4db167e1041e95e2d0ba3";
        let flux = format!("main@sha1:{COMMIT}");
        for (wanted, applied, is) in [
            (COMMIT, &*flux, true),
            (COMMIT, COMMIT, true),
            ("1e64", &flux, true),
            ("1E64462", &flux, true),
            ("1e6", &flux, false),
            ("2e64462", &flux, false),
            ("sha256:1e64462", &flux, false),
            ("main", &flux, true),
            ("other", &flux, false),
            ("refs/heads/main@sha1:1e64462", &flux, true),
            ("other@sha1:1e64462", &flux, false),
            // Argo CD reports the commit alone, without the branch.
            ("main@sha1:1e64462", COMMIT, false),
            ("v1.2", "refs/tags/v1.2", true),
            ("1.2.0", "v1.2.0", true),
            ("1.2.0", "1.2.0+5d1c36a2c1fa", true),
            ("1.2.0", "1.2.0@sha256:5d1c36a2c1fa", true),
            ("sha256:5d1c", "1.2.0@sha256:5d1c36a2c1fa", true),
            ("1.2", "1.2.0", false),
            ("vnext", "next", false),
            ("12345678", "12345678", true),
            ("", &flux, false),
            ("ü", "ü@sha1:1e64462", true),
        ] {
            assert_eq!(Revision::new(wanted).is(applied), is, "{wanted} of {applied}");
        }
    }
}
