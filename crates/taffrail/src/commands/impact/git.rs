//! The Git repository of the working folder, read by the program `git`.

use std::collections::BTreeSet;
use std::io::{self, BufRead as _, BufReader, Read, Write as _};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;

/// Maximum length of a listing that `git` prints, in bytes.
const MAX_LISTING: u64 = 64 << 20;

/// Maximum length of all files that are read of a commit, in bytes.
const MAX_CONTENT: u64 = 256 << 20;

/// Maximum length of what is kept of the errors that `git` prints, in bytes.
const MAX_ERRORS: u64 = 64 << 10;

/// The failure of a question to `git`.
#[derive(Debug, thiserror::Error)]
pub(super) enum GitError {
    /// The program cannot be run.
    #[error("cannot run git")]
    NotRun(#[source] io::Error),
    /// The program failed.
    #[error("git cannot {what}: {message}")]
    Failed {
        /// The question, as an infinitive.
        what: String,
        /// The first line that the program printed about it.
        message: String,
    },
    /// The working folder is in no repository.
    #[error("this folder is in no Git repository")]
    NoRepository,
    /// There is no such commit.
    #[error("there is no commit '{0}' in this repository")]
    NoCommit(String),
    /// The two commits cannot be merged.
    #[error("the commits cannot be merged without a conflict{}", in_files(.0))]
    Conflict(Vec<String>),
    /// The text is no range of commits.
    #[error("'{0}' is no range of commits")]
    NoRange(String),
    /// No commit has the path.
    #[error("neither commit has '{0}'")]
    NoPath(String),
    /// The answer is too long.
    #[error("git cannot {what}: the answer has more than {limit} bytes")]
    TooLarge {
        /// The question, as an infinitive.
        what: String,
        /// The greatest number of bytes.
        limit: u64,
    },
}

impl GitError {
    /// Returns advice for the user, if there is any.
    pub(super) fn hint(&self) -> Option<&'static str> {
        match self {
            GitError::NotRun(_) => Some("install git, and run the command in a clone of the repository"),
            GitError::NoRange(_) => {
                Some("name two commits, such as main..HEAD, or main...HEAD for a merge of HEAD into main")
            }
            GitError::TooLarge { .. } => Some("name a folder with --path"),
            GitError::NoPath(_) => Some("--path is meant from the working folder"),
            GitError::NoRepository => Some("run the command in a clone of the repository"),
            GitError::NoCommit(_) => Some(
                "see 'git branch -a'; a clone without its history (in CI) needs more of it: git fetch --unshallow",
            ),
            GitError::Conflict(_) => Some("merge the base into the branch first, or use BASE..HEAD"),
            GitError::Failed { .. } => None,
        }
    }
}

/// The two states of the repository that are compared, by the identities of commits or trees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Commits {
    pub(super) base: String,
    /// The state after the change.
    pub(super) after: String,
    /// The commit that brings the change.
    pub(super) head: String,
}

/// A file of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TreeFile {
    /// The path from the root of the repository, with slashes.
    pub(super) path: String,
    /// The identity of its content.
    blob: String,
    /// Its length in bytes.
    size: u64,
}

/// Returns the states of a range: `BASE..HEAD`, or `BASE...HEAD` for `BASE` before and after a merge of `HEAD`. A side that
/// is left out is the commit that is checked out.
pub(super) fn range(text: &str) -> Result<Commits, GitError> {
    let (base, head, is_merge) = match (text.split_once("..."), text.split_once("..")) {
        (Some((base, head)), _) => (base, head, true),
        (None, Some((base, head))) => (base, head, false),
        (None, None) => return Err(GitError::NoRange(text.to_owned())),
    };
    let (base, head) = (commit(base)?, commit(head)?);
    let after = match is_merge {
        // The tree goes into the store of objects, where nothing refers to it.
        true => merged(&base, &head)?,
        false => head.clone(),
    };
    Ok(Commits { base, after, head })
}

/// Returns the tree that a merge makes.
fn merged(base: &str, head: &str) -> Result<String, GitError> {
    let arguments = ["merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", base, head];
    let Asked { output, failure } = run("merge the commits", &arguments)?;
    let mut parts = ended_by_zero(&output).map(text);
    match (parts.next(), failure) {
        (Some(tree), None) => Ok(tree.trim().to_owned()),
        // With a conflict its answer is a tree, too, and then the files.
        (Some(_), Some(_)) => Err(GitError::Conflict(parts.collect())),
        (None, failure) => Err(failure.unwrap_or_else(|| GitError::Failed {
            what: "merge the commits".to_owned(),
            message: "it answered nothing".to_owned(),
        })),
    }
}

fn in_files(paths: &[String]) -> String {
    match paths {
        [] => String::new(),
        paths => format!(" in {}", paths.join(", ")),
    }
}

fn commit(name: &str) -> Result<String, GitError> {
    let name = if name.is_empty() { "HEAD" } else { name };
    let wanted = format!("{name}^{{commit}}");
    let what = format!("find the commit '{name}'");
    let found = ask(&what, &["rev-parse", "--verify", "--quiet", "--end-of-options", &wanted]);
    match found {
        Ok(found) => Ok(line(&found)),
        Err(GitError::Failed { .. }) if ask(&what, &["rev-parse", "--git-dir"]).is_err() => {
            Err(GitError::NoRepository)
        }
        Err(GitError::Failed { .. }) => Err(GitError::NoCommit(name.to_owned())),
        Err(error) => Err(error),
    }
}

/// Returns the URLs from which the repository is fetched, without credentials.
pub(super) fn remotes() -> Result<Vec<String>, GitError> {
    let what = "list the remotes";
    let names = ask(what, &["remote"])?;
    let mut urls = Vec::new();
    for name in String::from_utf8_lossy(&names).lines() {
        let found = ask(what, &["remote", "get-url", "--all", "--end-of-options", name])?;
        urls.extend(String::from_utf8_lossy(&found).lines().map(str::to_owned));
    }
    Ok(urls)
}

/// Returns the paths from the root of the repository that differ between the commits, below `paths`, which are meant from
/// the working folder; below the root if there are none.
pub(super) fn changed(commits: &Commits, paths: &[String]) -> Result<BTreeSet<String>, GitError> {
    let mut arguments =
        vec!["diff", "--name-only", "--no-renames", "--no-relative", "--no-ext-diff", "--no-textconv", "-z"];
    arguments.extend([&*commits.base, &*commits.after, "--"]);
    arguments.extend(paths.iter().map(|path| &**path));
    Ok(ended_by_zero(&ask("compare the commits", &arguments)?).map(text).collect())
}

/// Checks that one of the commits has each of `paths`, which are meant from the working folder.
///
/// # Errors
/// [`GitError::NoPath`] for one that neither has.
pub(super) fn check(commits: &Commits, paths: &[String]) -> Result<(), GitError> {
    for path in paths {
        let has = |commit: &str| -> Result<bool, GitError> {
            Ok(!ask("find the path", &["ls-tree", "--name-only", "-z", commit, "--", path])?.is_empty())
        };
        if !has(&commits.base)? && !has(&commits.after)? {
            return Err(GitError::NoPath(path.clone()));
        }
    }
    Ok(())
}

/// Returns the files of a commit, and the paths of its symbolic links and submodules.
pub(super) fn files(commit: &str) -> Result<(Vec<TreeFile>, Vec<String>), GitError> {
    let listed = ask("list the files of the commit", &["ls-tree", "-r", "-l", "-z", "--full-tree", commit])?;
    let file = |entry: &[u8]| {
        let at = entry.iter().position(|byte| *byte == b'\t')?;
        let (facts, path) = (text(entry.get(..at)?), text(entry.get(at + 1..)?));
        let mut facts = facts.split_ascii_whitespace();
        let (mode, _, blob, size) = (facts.next()?, facts.next()?, facts.next()?, facts.next()?);
        Some(match mode {
            "100644" | "100755" => Ok(TreeFile { path, blob: blob.to_owned(), size: size.parse().ok()? }),
            _ => Err(path),
        })
    };
    let (mut files, mut others) = (Vec::new(), Vec::new());
    for entry in ended_by_zero(&listed).filter_map(file) {
        match entry {
            Ok(file) => files.push(file),
            Err(path) => others.push(path),
        }
    }
    Ok((files, others))
}

/// Returns the contents of files, in their order.
pub(super) fn contents(files: &[&TreeFile]) -> Result<Vec<Vec<u8>>, GitError> {
    let what = "read the files of the commit";
    if files.iter().map(|file| file.size).sum::<u64>() > MAX_CONTENT {
        return Err(GitError::TooLarge { what: what.to_owned(), limit: MAX_CONTENT });
    }
    let mut git = Git::start(&["cat-file", "--batch"], Stdio::piped())?;
    let (input, output) = (git.child.stdin.take(), git.child.stdout.take());
    let read = std::thread::scope(|scope| {
        // Neither side waits for the other.
        scope.spawn(move || {
            let mut input = input?;
            files.iter().try_for_each(|file| input.write_all(format!("{}\n", file.blob).as_bytes())).ok()
        });
        let mut output = BufReader::new(output.ok_or(io::ErrorKind::BrokenPipe)?);
        files.iter().map(|file| content(&mut output, file)).collect::<io::Result<Vec<Vec<u8>>>>()
    });
    let ended = git.end(what);
    let read = read.map_err(|error| GitError::Failed { what: what.to_owned(), message: error.to_string() });
    ended.and(read)
}

/// Reads the content of a file from the output of `git cat-file --batch`.
fn content(output: &mut impl io::BufRead, file: &TreeFile) -> io::Result<Vec<u8>> {
    let mut head = String::new();
    output.by_ref().take(1_000).read_line(&mut head)?;
    if head.trim_end() != format!("{} blob {}", file.blob, file.size) {
        return Err(io::Error::other(format!("it answered '{}' about {}", head.trim_end(), file.path)));
    }
    let mut content = Vec::new();
    output.by_ref().take(file.size).read_to_end(&mut content)?;
    let mut newline = [0];
    output.read_exact(&mut newline)?;
    Ok(content)
}

/// The output of `git`, and its failure if it failed.
struct Asked {
    output: Vec<u8>,
    failure: Option<GitError>,
}

/// Runs `git` with these arguments in the working folder, and returns its output. `what` says in errors what for.
fn ask(what: &str, arguments: &[&str]) -> Result<Vec<u8>, GitError> {
    let Asked { output, failure } = run(what, arguments)?;
    failure.map_or(Ok(output), Err)
}

/// Runs `git` like [`ask`], and returns its output also if it failed.
fn run(what: &str, arguments: &[&str]) -> Result<Asked, GitError> {
    let mut git = Git::start(arguments, Stdio::null())?;
    let mut output = Vec::new();
    let read = match git.child.stdout.take() {
        Some(from) => from.take(MAX_LISTING + 1).read_to_end(&mut output),
        None => Ok(0),
    };
    if output.len() as u64 > MAX_LISTING {
        drop(git.child.kill());
        drop(git.end(what));
        return Err(GitError::TooLarge { what: what.to_owned(), limit: MAX_LISTING });
    }
    let failure = git.end(what).err();
    read.map_err(GitError::NotRun)?;
    Ok(Asked { output, failure })
}

/// The running program.
struct Git {
    child: Child,
    /// Reads the errors that it prints.
    errors: JoinHandle<Vec<u8>>,
}

impl Git {
    fn start(arguments: &[&str], input: Stdio) -> Result<Git, GitError> {
        let mut child = Command::new("git")
            .args(["--no-pager", "--literal-pathspecs"])
            .args(arguments)
            .env("LC_ALL", "C")
            // Nothing is written, not even an index that is refreshed.
            .env("GIT_OPTIONAL_LOCKS", "0")
            .stdin(input)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(GitError::NotRun)?;
        let printed = child.stderr.take();
        let errors = std::thread::spawn(move || {
            let mut kept = Vec::new();
            if let Some(mut printed) = printed {
                let begun = printed.by_ref().take(MAX_ERRORS).read_to_end(&mut kept);
                drop(begun.and_then(|_| io::copy(&mut printed, &mut io::sink())));
            }
            kept
        });
        Ok(Git { child, errors })
    }

    /// Waits for the end of the program. `what` says in errors what it was asked for.
    fn end(mut self, what: &str) -> Result<(), GitError> {
        let status = self.child.wait().map_err(GitError::NotRun)?;
        if status.success() {
            return Ok(());
        }
        let said = text(&self.errors.join().unwrap_or_default());
        let message = said.lines().find(|line| !line.trim().is_empty()).map_or_else(
            || status.to_string(),
            |line| line.trim_start_matches("fatal: ").trim_start_matches("error: ").to_owned(),
        );
        Err(GitError::Failed { what: what.to_owned(), message })
    }
}

fn line(output: &[u8]) -> String {
    text(output).trim_end().to_owned()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn ended_by_zero(output: &[u8]) -> impl Iterator<Item = &[u8]> {
    output.split(|byte| *byte == 0).filter(|entry| !entry.is_empty())
}

/// Returns the host and path of the URL of a repository, by which two URLs of one repository are equal whatever their
/// protocol and user: `github.com/example/fleet` of `git@github.com:example/fleet.git`. `None` for what is no URL.
pub(super) fn place(url: &str) -> Option<String> {
    let (rest, is_short) = match url.split_once("://") {
        Some((_, rest)) => (rest, false),
        // The short form of SSH.
        None => (url, true),
    };
    let (host, path) = match is_short {
        true => rest.split_once(':')?,
        false => rest.split_once('/')?,
    };
    let host = host.rsplit('@').next().unwrap_or_default();
    let host = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let path = path.trim_matches('/');
    let path = path.strip_suffix(".git").unwrap_or(path);
    let is_whole = !host.is_empty() && !path.is_empty();
    is_whole.then(|| format!("{}/{path}", host.to_ascii_lowercase()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_one_repository_are_at_one_place() {
        for url in [
            "https://github.com/example/fleet",
            "https://token@GitHub.com/example/fleet.git/",
            "ssh://git@github.com:22/example/fleet.git",
            "git@github.com:example/fleet.git",
            "git@github.com:/example/fleet",
        ] {
            assert_eq!(place(url).as_deref(), Some("github.com/example/fleet"), "{url}");
        }
        for url in ["https://github.com", "fleet", "", "git@:a", "/srv/fleet.git"] {
            assert_eq!(place(url), None, "{url}");
        }
        assert_ne!(place("https://github.com/example/fleet"), place("https://github.com/other/fleet"));
    }
}
