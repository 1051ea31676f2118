//! The folders of a commit from which apps are delivered.

use std::cell::OnceCell;
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

/// The names of the files, and of folders, that Flux leaves out of every source.
const LEFT_OUT_BY_FLUX: [&str; 16] = [
    ".git",
    ".github",
    ".circleci",
    ".gitignore",
    ".gitmodules",
    ".gitattributes",
    ".travis.yml",
    ".gitlab-ci.yml",
    "appveyor.yml",
    ".drone.yml",
    "cloudbuild.yaml",
    "codeship-services.yml",
    "codeship-steps.yml",
    ".goreleaser.yml",
    ".sops.yaml",
    ".flux.yaml",
];

/// Returns true if Flux leaves a file out of every source.
fn is_left_out_by_flux(path: &str) -> bool {
    path.split('/').any(|part| LEFT_OUT_BY_FLUX.contains(&part))
}

/// Maximum number of folders that a kustomization may reach.
const MAX_REACHED: usize = 1_000;

/// Maximum number of texts of kustomizations that are looked at for one app.
const MAX_TEXTS: usize = 200_000;

/// The files of a commit.
pub(super) struct Tree {
    files: BTreeMap<String, TreeFile>,
    /// The paths of symbolic links and submodules.
    others: BTreeSet<String>,
    /// The texts of each kustomization, by its path; `None` for one that cannot be read.
    kustomizations: OnceCell<BTreeMap<String, Option<Vec<String>>>>,
}

/// The choice of files that a tool reads in a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// The files with one of these endings in the folder itself.
    Folder(&'static [&'static str]),
    /// The files with one of these endings in the folder and in all folders below it.
    Below(&'static [&'static str]),
    /// The same, without what Flux leaves out of every source.
    BelowAsFlux(&'static [&'static str]),
}

impl Tree {
    /// Reads the names of the files of a commit.
    pub(super) fn read(commit: &str) -> Result<Tree, GitError> {
        let (files, others) = git::files(commit)?;
        let files = files.into_iter().map(|file| (file.path.clone(), file)).collect();
        Ok(Tree { files, others: others.into_iter().collect(), kustomizations: OnceCell::new() })
    }

    /// Returns the files that a tool reads in a folder.
    pub(super) fn read_by_tool(&self, folder: &Folder, extent: Extent) -> Vec<&TreeFile> {
        let (is_deep, endings) = match extent {
            Extent::Folder(endings) => (false, endings),
            Extent::Below(endings) | Extent::BelowAsFlux(endings) => (true, endings),
        };
        let is_left_out = |path: &str| matches!(extent, Extent::BelowAsFlux(_)) && is_left_out_by_flux(path);
        let is_read = |file: &&TreeFile| {
            let Some(inside) = folder.inside(&file.path) else { return false };
            let ending = inside.rsplit_once('.').map_or("", |(_, ending)| ending);
            (is_deep || !inside.contains('/')) && endings.contains(&ending) && !is_left_out(&file.path)
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

    /// Returns the path of a symbolic link or submodule in `folder`, or below it.
    pub(super) fn other(&self, folder: &Folder) -> Option<&str> {
        let is_inside = |path: &&String| folder.inside(path).is_some() || folder.path == **path;
        self.others.iter().find(is_inside).map(|path| &**path)
    }

    /// Returns the path of the first file in `folder`, or below it, whose name `is_named` accepts.
    pub(super) fn file_named(&self, folder: &Folder, is_named: impl Fn(&str) -> bool) -> Option<&str> {
        let name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
        let mut inside = self.files.keys().filter(|path| folder.inside(path).is_some());
        inside.find(|path| is_named(&name(path))).map(|path| &**path)
    }

    /// Returns true if there is any file in `folder`, or below it.
    pub(super) fn has_files(&self, folder: &Folder) -> bool {
        self.files.keys().any(|path| folder.inside(path).is_some())
    }

    /// Returns true if the kustomizations in `folder` and below it, or those that these use, may use one of the paths
    /// `changed`: each text in a kustomization that is the path of a file or folder counts. Where that cannot be told, they
    /// may.
    ///
    /// # Errors
    /// [`GitError`] if kustomizations cannot be read.
    pub(super) fn may_reach(&self, folder: &Folder, changed: &BTreeSet<String>) -> Result<bool, GitError> {
        let kustomizations = match self.kustomizations.get() {
            Some(read) => read,
            None => {
                let read = self.read_kustomizations()?;
                self.kustomizations.get_or_init(|| read)
            }
        };
        let (mut reached, mut waiting, mut looked_at) = (BTreeSet::new(), vec![folder.clone()], 0);
        while let Some(folder) = waiting.pop() {
            if !reached.insert(folder.path.clone()) {
                continue;
            }
            if reached.len() > MAX_REACHED || changed.iter().any(|path| folder.touches(path)) {
                return Ok(true);
            }
            for (path, texts) in kustomizations.iter().filter(|(path, _)| folder.inside(path).is_some()) {
                let Some(texts) = texts else { return Ok(true) };
                looked_at += texts.len() + 1;
                if looked_at > MAX_TEXTS {
                    return Ok(true);
                }
                let home = Folder::of_file(path);
                for text in texts {
                    // A base at another place may be this repository.
                    if text.contains("://") || text.contains("?ref=") {
                        return Ok(true);
                    }
                    let names = [Some(&**text), text.split_once('=').map(|(_, path)| path)];
                    let named = names.into_iter().flatten().filter_map(|name| home.join(name));
                    waiting.extend(named.filter(|it| !reached.contains(&it.path) && self.has(it)));
                }
            }
        }
        Ok(false)
    }

    fn read_kustomizations(&self) -> Result<BTreeMap<String, Option<Vec<String>>>, GitError> {
        let is_kustomization =
            |path: &str| KUSTOMIZATIONS.contains(&path.rsplit('/').next().unwrap_or_default());
        let files: Vec<&TreeFile> = self.files.values().filter(|file| is_kustomization(&file.path)).collect();
        let contents = git::contents(&files)?;
        Ok(files.iter().zip(contents).map(|(file, content)| (file.path.clone(), texts(&content))).collect())
    }

    /// Returns true if there is such a file or folder.
    fn has(&self, folder: &Folder) -> bool {
        let below = format!("{}/", folder.path);
        let mut first = self.files.range(below.clone()..).take(1);
        folder.path.is_empty()
            || self.files.contains_key(&folder.path)
            || first.any(|(path, _)| path.starts_with(&below))
    }
}

/// Returns all texts of a YAML document; `None` for what is none.
fn texts(content: &[u8]) -> Option<Vec<String>> {
    let document = yaml::read_with_few_aliases::<Value>(std::str::from_utf8(content).ok()?).ok()?;
    let (mut found, mut waiting) = (Vec::new(), vec![document]);
    while let Some(value) = waiting.pop() {
        match value {
            Value::String(text) => found.push(text),
            Value::Array(items) => waiting.extend(items),
            Value::Object(fields) => waiting.extend(fields.into_iter().map(|(_, value)| value)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    Some(found)
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

    /// Returns true if a path is this one, or below it.
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
