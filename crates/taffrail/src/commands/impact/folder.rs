//! The folders of a commit from which apps are delivered.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use taffrail_object::yaml;

use super::git::{self, GitError, TreeFile};

/// The names of the files by which kustomize knows a folder.
const KUSTOMIZATIONS: [&str; 3] = ["kustomization.yaml", "kustomization.yml", "Kustomization"];

/// The file that makes a folder a Helm chart.
const CHART: &str = "Chart.yaml";

/// The file that names what Flux leaves out of a source.
const SOURCE_IGNORE: &str = ".sourceignore";

/// Maximum number of folders that a kustomization may reach.
const MAX_REACHED: usize = 1_000;

/// The files of a commit.
pub(super) struct Tree {
    files: BTreeMap<String, TreeFile>,
}

/// The choice of files that a tool reads in a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// Those with one of these endings in the folder itself.
    Folder(&'static [&'static str]),
    /// Those with one of these endings in the folder and in all folders below it.
    Below(&'static [&'static str]),
}

impl Tree {
    /// Reads the names of the files of a commit.
    pub(super) fn read(commit: &str) -> Result<Tree, GitError> {
        let files = git::files(commit)?.into_iter().map(|file| (file.path.clone(), file));
        Ok(Tree { files: files.collect() })
    }

    /// Returns the files that a tool reads in a folder.
    pub(super) fn read_by_tool(&self, folder: &Folder, extent: Extent) -> Vec<&TreeFile> {
        let (is_deep, endings) = match extent {
            Extent::Folder(endings) => (false, endings),
            Extent::Below(endings) => (true, endings),
        };
        let is_read = |file: &&TreeFile| {
            let Some(inside) = folder.inside(&file.path) else { return false };
            let ending = inside.rsplit_once('.').map_or("", |(_, ending)| ending);
            (is_deep || !inside.contains('/')) && endings.contains(&ending)
        };
        self.files.values().filter(is_read).collect()
    }

    /// Returns the path of the first file that is called `name` in `folder`, or with `is_deep` below it.
    fn named(&self, folder: &Folder, names: &[&str], is_deep: bool) -> Option<&str> {
        let is_named = |path: &&str| {
            folder.inside(path).is_some_and(|inside| match inside.rsplit_once('/') {
                Some((_, name)) => is_deep && names.contains(&name),
                None => names.contains(&inside),
            })
        };
        self.files.keys().map(|path| &**path).find(is_named)
    }

    /// Returns the path of a kustomization in `folder`, or with `is_deep` below it.
    pub(super) fn kustomization(&self, folder: &Folder, is_deep: bool) -> Option<&str> {
        self.named(folder, &KUSTOMIZATIONS, is_deep)
    }

    /// Returns the path of the file that makes a folder a Helm chart.
    pub(super) fn chart(&self, folder: &Folder) -> Option<&str> {
        self.named(folder, &[CHART], false)
    }

    /// Returns the path of a file by which Flux leaves out files of `folder`: in it, above it or below it.
    pub(super) fn source_ignore(&self, folder: &Folder) -> Option<&str> {
        let above = folder.above().into_iter().find_map(|above| self.named(&above, &[SOURCE_IGNORE], false));
        above.or_else(|| self.named(folder, &[SOURCE_IGNORE], true))
    }

    /// Returns the paths that the kustomizations in `folder` and below it may use, and those that these use: each text in a
    /// kustomization that is the path of a file or folder. That is rather too much than too little.
    ///
    /// # Errors
    /// [`GitError`] if a kustomization cannot be read.
    pub(super) fn reached_by_kustomize(&self, folder: &Folder) -> Result<BTreeSet<String>, GitError> {
        let (mut reached, mut waiting) = (BTreeSet::new(), vec![folder.clone()]);
        while let Some(folder) = waiting.pop() {
            if reached.len() > MAX_REACHED || !reached.insert(folder.path.clone()) {
                continue;
            }
            let is_kustomization =
                |path: &&String| KUSTOMIZATIONS.contains(&path.rsplit('/').next().unwrap_or_default());
            let inside = self.files.keys().filter(|path| folder.inside(path).is_some());
            let files: Vec<&TreeFile> =
                inside.filter(is_kustomization).filter_map(|path| self.files.get(path)).collect();
            for (file, content) in files.iter().zip(git::contents(&files)?) {
                let home = Folder::of_file(&file.path);
                for text in texts(&content) {
                    let names = [Some(&*text), text.split_once('=').map(|(_, path)| path)];
                    let named = names.into_iter().flatten().filter_map(|name| home.join(name));
                    waiting.extend(named.filter(|it| self.has(it) && !reached.contains(&it.path)));
                }
            }
        }
        Ok(reached)
    }

    /// Returns true if there is such a file or folder.
    fn has(&self, folder: &Folder) -> bool {
        let is_it = |path: &str| folder.inside(path).is_some() || *path == folder.path;
        let mut similar = self.files.range(folder.path.clone()..).map(|(path, _)| path);
        similar.by_ref().take_while(|path| path.starts_with(&*folder.path)).any(|path| is_it(path))
    }
}

/// Returns all texts of a YAML document.
fn texts(content: &[u8]) -> Vec<String> {
    let Ok(text) = std::str::from_utf8(content) else { return Vec::new() };
    let Ok(document) = yaml::read_with_few_aliases::<Value>(text) else { return Vec::new() };
    let (mut found, mut waiting) = (Vec::new(), vec![document]);
    while let Some(value) = waiting.pop() {
        match value {
            Value::String(text) => found.push(text),
            Value::Array(items) => waiting.extend(items),
            Value::Object(fields) => waiting.extend(fields.into_iter().map(|(_, value)| value)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    found
}

/// A folder of the repository.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Folder {
    /// The path from the root, without a slash at its beginning or end; empty for the root.
    path: String,
}

impl Folder {
    /// Reads the path of a folder as delivery tools do: `./deploy/`, `deploy`, `/`. `None` for one that leads out of the
    /// repository.
    pub(super) fn new(path: &str) -> Option<Folder> {
        Folder::root().join(path.trim_start_matches('/'))
    }

    /// Returns the root of the repository.
    pub(super) fn root() -> Folder {
        Folder { path: String::new() }
    }

    fn of_file(path: &str) -> Folder {
        Folder { path: path.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned() }
    }

    /// Returns the folder, or file, to which a relative path leads from this one; `None` if that is outside of the
    /// repository.
    fn join(&self, relative: &str) -> Option<Folder> {
        if relative.starts_with('/') || relative.contains("://") {
            return None;
        }
        let mut parts: Vec<&str> = self.path.split('/').filter(|part| !part.is_empty()).collect();
        for part in relative.split('/') {
            match part {
                "" | "." => {}
                ".." => drop(parts.pop()?),
                part => parts.push(part),
            }
        }
        Some(Folder { path: parts.join("/") })
    }

    /// Returns the path from this folder of what is below it; `None` for what is not.
    pub(super) fn inside<'p>(&self, path: &'p str) -> Option<&'p str> {
        if self.path.is_empty() {
            return Some(path);
        }
        path.strip_prefix(&*self.path)?.strip_prefix('/')
    }

    /// Returns the folders above this one, the root first.
    fn above(&self) -> Vec<Folder> {
        let ends = self.path.match_indices('/').map(|(at, _)| at);
        let root = (!self.path.is_empty()).then_some(0);
        root.into_iter().chain(ends).map(|at| Folder { path: self.path[..at].to_owned() }).collect()
    }

    /// Returns the path for people: `.` for the root.
    pub(super) fn shown(&self) -> &str {
        if self.path.is_empty() { "." } else { &self.path }
    }

    /// Returns true if `path`, of a file or folder that others use, is this one, above it or below it.
    pub(super) fn touches(&self, changed: &str) -> bool {
        self.inside(changed).is_some() || self.path == changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_folders_are_read_as_delivery_tools_do() {
        for (path, shown) in [
            ("./deploy/web", "deploy/web"),
            ("deploy//web/", "deploy/web"),
            ("/deploy", "deploy"),
            ("", "."),
            ("./", "."),
            ("a/../b", "b"),
        ] {
            assert_eq!(Folder::new(path).unwrap().shown(), shown, "{path}");
        }
        assert_eq!(Folder::new("../other"), None);
        assert_eq!(Folder::new("a/../../b"), None);
    }

    #[test]
    fn what_is_inside_of_a_folder_is_not_what_only_begins_like_it() {
        let folder = Folder::new("deploy/web").unwrap();
        assert_eq!(folder.inside("deploy/web/a.yaml"), Some("a.yaml"));
        assert_eq!(folder.inside("deploy/web-2/a.yaml"), None);
        assert_eq!(folder.inside("deploy/web"), None);
        let above: Vec<_> = folder.above().iter().map(|it| it.shown().to_owned()).collect();
        assert_eq!(above, [".", "deploy"]);
        assert!(Folder::new("").unwrap().above().is_empty());
    }
}
