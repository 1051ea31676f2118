//! Reads the rules that judge objects, as `--rules` selects them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use taffrail_object::Object;
use taffrail_object::json::Parser;
use taffrail_rules::cel::{HealthChecks, Predicate};
use taffrail_rules::kapp::WaitRules;
#[cfg(feature = "lua")]
use taffrail_rules::lua::Customizations;
use taffrail_rules::{Folder, Layer, Origin, RuleErrors, RuleSet, Script};
use taffrail_status::assess::{Budgets, Options, Patience};
use taffrail_status::{ActiveRules, Fork, Kstatus, Trust};

use crate::cel::Interpreter;
use crate::command_error::chain;
use taffrail_observe::FleetRules;
use taffrail_observe::input::{self, Chunk, InputShape};

/// The rules that `--rules` selects: Taffrail's, those of kstatus, or those in a folder before Taffrail's.
#[derive(Debug, Clone, Default)]
pub(crate) struct RuleSource {
    /// The rules of the selected folder, then Taffrail's library. Without a folder the library is loaded at the
    /// first use.
    set: Arc<OnceLock<RuleSet>>,
    /// True if kstatus was selected: then its rules replace those in `set`.
    is_kstatus: bool,
}

/// Returns Taffrail's library, which can also read rules that objects in clusters define.
fn shipped() -> RuleSet {
    let interpreter = Interpreter::default();
    RuleSet::shipped().teachable(move |text, names| interpreter.read_of_cluster(text, names))
}

/// The selected rules with the user's options: the effect of PodDisruptionBudgets, the time limit and the trust.
#[derive(Debug, Clone)]
pub(crate) struct RulesWithOptions {
    source: RuleSource,
    kstatus: Kstatus,
    options: Options,
}

impl RuleSource {
    /// Parses the value of `--rules`: `taffrail`, `kstatus` or the name of a folder, whose rules it reads. The error is
    /// a message for the user.
    pub(crate) fn read(text: &str) -> Result<RuleSource, String> {
        match text {
            "taffrail" => Ok(RuleSource::default()),
            "kstatus" => Ok(RuleSource { is_kstatus: true, ..RuleSource::default() }),
            // A misspelt name is no folder.
            name if !name.contains(['/', '.']) && !Path::new(name).is_dir() => {
                Err("the rules must be taffrail, kstatus or a folder with rules".to_owned())
            }
            folder => {
                let set = of_folder(Path::new(folder)).map_err(|fault| fault.to_string())?;
                Ok(RuleSource { set: Arc::new(set.into()), is_kstatus: false })
            }
        }
    }

    /// Returns the rules of the selected folder, then Taffrail's library. If kstatus was selected,
    /// [`RulesWithOptions::active`] ignores them.
    #[inline]
    pub(crate) fn set(&self) -> &RuleSet {
        self.set.get_or_init(shipped)
    }

    /// Returns true if only the rules of kstatus apply.
    pub(crate) fn is_kstatus(&self) -> bool {
        self.is_kstatus
    }

    /// Combines the rules with the effect `pdb` of PodDisruptionBudgets, the time limit for judging each cluster's
    /// objects, and the user's trust in rules of clusters, which kstatus ignores.
    pub(crate) fn with_options(&self, pdb: Budgets, patience: Patience, trust: &Trust) -> RulesWithOptions {
        let patience = Some(patience);
        // kstatus knows of no tool, so no trust in one changes what it says.
        let trust = if self.is_kstatus { Trust::default() } else { trust.clone() };
        let options = Options { pdb, patience, trust };
        RulesWithOptions { source: self.clone(), kstatus: Kstatus::default(), options }
    }
}

impl RulesWithOptions {
    /// Returns the rules with this variant of kstatus, which only matters if the rules of kstatus apply.
    pub(crate) fn with_fork(self, fork: Fork) -> RulesWithOptions {
        RulesWithOptions { kstatus: Kstatus { fork }, ..self }
    }

    /// Returns the rules with another time limit for judging each cluster's objects.
    pub(crate) fn with_patience(mut self, patience: Patience) -> RulesWithOptions {
        self.options.patience = Some(patience);
        self
    }

    /// Returns the rules of the selected folder, then Taffrail's library, without rules that clusters define. If
    /// kstatus was selected, [`RulesWithOptions::active`] ignores them.
    pub(crate) fn set(&self) -> &RuleSet {
        self.source.set()
    }

    /// Returns the rules to judge with: those of kstatus if it was selected, else [`RulesWithOptions::set`], which
    /// can also use rules that clusters define.
    #[inline]
    pub(crate) fn active(&self) -> ActiveRules<'_> {
        match self.source.is_kstatus {
            true => ActiveRules { rules: &self.kstatus, cluster_rules: None, options: &self.options },
            false => self.source.set().active(&self.options),
        }
    }
}

impl FleetRules for RulesWithOptions {
    fn active(&self) -> ActiveRules<'_> {
        RulesWithOptions::active(self)
    }
}

/// Returns a time limit of `limit` for judging one cluster's objects, which starts now; `bound` names it in messages.
pub(crate) fn patience(bound: String, limit: Duration) -> Patience {
    let began = Instant::now();
    Patience::new(limit, bound, move || began.elapsed())
}

/// The reason why the rules of a folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FolderError {
    #[error("cannot read {}: {error}", path.display())]
    Unreadable { path: PathBuf, error: io::Error },
    #[error(
        "there are no rules in {}: no rules.yaml there or in its folders, no healthCheckExprs of Flux, no waitRules of kapp and no health.lua of Argo CD",
        path.display()
    )]
    Nothing { path: PathBuf },
    #[error("the rules in {} cannot be used: {what}", path.display())]
    Foreign { path: PathBuf, what: String },
    #[error("{}", told(.0))]
    Rules(RuleErrors),
}

/// Returns the texts of all errors of rule files, one per line, each with its hint in parentheses.
fn told(errors: &RuleErrors) -> String {
    let told = errors.0.iter().map(|error| {
        let hint = error.hint().map(|hint| format!(" ({hint})")).unwrap_or_default();
        format!("{}{hint}", chain(error))
    });
    told.collect::<Vec<_>>().join("\n")
}

fn of_folder(path: &Path) -> Result<RuleSet, FolderError> {
    let folders = folders(path)?;
    let files = folders.iter().flat_map(|folder| &folder.rules);
    let mut files = files.map(|(file, text)| (file.as_str(), text.as_str())).peekable();
    let mut scripts = scripts(path)?;
    scripts.extend(script_in_lua(path)?);
    if files.peek().is_none() && scripts.is_empty() {
        return Err(FolderError::Nothing { path: path.to_owned() });
    }
    let layer = Layer::read(Origin::User, files).map_err(FolderError::Rules)?;
    Ok(scripts.into_iter().fold(shipped().with(layer), RuleSet::with_script))
}

/// Reads the health rules of other tools from the YAML files directly in a folder: `healthCheckExprs` of Flux objects
/// and `waitRules` of kapp's configurations. Skips `rules.yaml`, `cases.yaml` and the tests in Argo CD's layout.
fn scripts(folder: &Path) -> Result<Vec<Box<dyn Script>>, FolderError> {
    const OWN: [&str; 2] = ["rules.yaml", "cases.yaml"];
    const CASES: [&str; 2] = ["health_test.yaml", "action_test.yaml"];

    let (sources, _) = input::sources(&[folder.to_owned()], false);
    let (mut scripts, interpreter) = (Vec::new(), Interpreter::default());
    for source in sources {
        let input::InputSource::File(path) = source else { continue };
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        // Of Argo CD's layout: objects there are cases.
        if CASES.contains(&name) || OWN.contains(&name) || !name.ends_with(".yaml") && !name.ends_with(".yml")
        {
            continue;
        }
        let text = fs::read(&path).map_err(|error| FolderError::Unreadable { path: path.clone(), error })?;
        let source = path.display().to_string().as_str().into();
        let chunk = Chunk { source, line: 1, shape: InputShape::Yaml, text };
        let mut fault = None;
        input::each(&chunk, &mut Parser::new(), |parsed| {
            let read = parsed.object.map_err(|fault| format!("line {}: {fault}", parsed.line));
            match read.and_then(|object| script(&object, &interpreter)) {
                Ok(script) => scripts.extend(script),
                Err(what) => drop(fault.get_or_insert(what)),
            }
        });
        if let Some(what) = fault {
            return Err(FolderError::Foreign { path, what });
        }
    }
    Ok(scripts)
}

fn script(object: &Object<'_>, interpreter: &Interpreter) -> Result<Option<Box<dyn Script>>, String> {
    match (object.group(), object.kind()) {
        ("kustomize.toolkit.fluxcd.io", "Kustomization") | ("helm.toolkit.fluxcd.io", "HelmRelease") => {
            let tree = object.to_tree().map_err(|error| error.to_string())?;
            let read = |text: &str, names| Ok(Box::new(interpreter.read(text, names)?) as Box<dyn Predicate>);
            let checks = HealthChecks::of_object(Origin::User, &tree, &read);
            let checks = checks.map_err(|error| chain(&error))?;
            Ok(checks.map(|checks| Box::new(checks) as Box<dyn Script>))
        }
        ("kapp.k14s.io", "Config") => {
            let rules =
                WaitRules::of_config(Origin::User, &object.to_tree().map_err(|error| error.to_string())?);
            let rules = rules.map_err(|error| chain(&error))?;
            Ok(rules.map(|rules| Box::new(rules) as Box<dyn Script>))
        }
        _ => Ok(None),
    }
}

/// Reads the scripts of a folder in the layout of Argo CD's `resource_customizations`; `None` if it has none.
#[cfg(feature = "lua")]
fn script_in_lua(path: &Path) -> Result<Option<Box<dyn Script>>, FolderError> {
    let scripts = scripts_in_lua(path)?;
    Ok((!scripts.is_empty()).then(|| Box::new(scripts) as Box<dyn Script>))
}

/// The reason why Lua scripts cannot run in a build without the feature `lua`.
#[cfg(not(feature = "lua"))]
pub(crate) const WITHOUT_LUA: &str = "this taffrail was built without the feature `lua`, which runs scripts";

/// Returns an error for a folder with scripts in the layout of Argo CD's `resource_customizations`, else `None`.
#[cfg(not(feature = "lua"))]
fn script_in_lua(path: &Path) -> Result<Option<Box<dyn Script>>, FolderError> {
    match customizations(path, CustomizationFiles::Scripts)?.first() {
        None => Ok(None),
        Some((file, _)) => Err(FolderError::Foreign {
            path: path.join(file),
            what: format!("they are Lua scripts, and {WITHOUT_LUA}"),
        }),
    }
}

/// Reads and parses the scripts of a folder in the layout of Argo CD's `resource_customizations`.
#[cfg(feature = "lua")]
pub(crate) fn scripts_in_lua(path: &Path) -> Result<Customizations, FolderError> {
    let files = customizations(path, CustomizationFiles::Scripts)?;
    let texts = files.iter().map(|(path, text)| (path.as_str(), text.as_str()));
    Ok(Customizations::of_folder(Origin::User, texts))
}

/// The files that [`customizations`] reads of a folder: only its Lua scripts, or also its YAML files, which hold the
/// scripts' test cases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CustomizationFiles {
    /// The files `health.lua`, `discovery.lua` and `action.lua`.
    Scripts,
    /// The scripts and all YAML files, among them the scripts' cases.
    Cases,
}

/// Reads the scripts (and with [`CustomizationFiles::Cases`] the YAML files) of a folder in the layout of Argo CD's
/// `resource_customizations`: the path of each below the folder, with `/`, and its content, sorted by path. Empty if
/// the folder has no scripts.
pub(crate) fn customizations(
    path: &Path,
    wanted: CustomizationFiles,
) -> Result<Vec<(String, String)>, FolderError> {
    /// Maximum depth below the folder at which folders are searched; deeper ones are skipped.
    const DEEPEST: usize = 8;

    let mut folders = vec![(path.to_owned(), String::new(), 0)];
    let (mut scripts, mut others) = (Vec::new(), Vec::new());
    while let Some((folder, prefix, depth)) = folders.pop() {
        let unreadable = |error| FolderError::Unreadable { path: folder.clone(), error };
        for entry in fs::read_dir(&folder).map_err(unreadable)? {
            let path = entry.map_err(unreadable)?.path();
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
            let inside = format!("{prefix}{name}");
            if path.is_dir() {
                if depth < DEEPEST {
                    folders.push((path, format!("{inside}/"), depth + 1));
                }
            } else if matches!(name, "health.lua" | "discovery.lua" | "action.lua") {
                scripts.push((inside, path));
            } else if name.ends_with(".yaml") || name.ends_with(".yml") {
                others.push((inside, path));
            }
        }
    }
    if scripts.is_empty() {
        return Ok(Vec::new());
    }
    if wanted == CustomizationFiles::Cases {
        scripts.extend(others);
    }
    scripts.sort();
    let read = |(inside, path): (String, PathBuf)| match fs::read(&path) {
        Ok(text) => Ok((inside, String::from_utf8_lossy(&text).into_owned())),
        Err(error) => Err(FolderError::Unreadable { path, error }),
    };
    scripts.into_iter().map(read).collect()
}

/// Reads `rules.yaml` and `cases.yaml` of a folder and of the folders directly in it, these sorted by name; leaves out
/// folders with neither file.
pub(crate) fn folders(path: &Path) -> Result<Vec<Folder>, FolderError> {
    let unreadable = |error| FolderError::Unreadable { path: path.to_owned(), error };
    let mut inside: Vec<PathBuf> = fs::read_dir(path)
        .and_then(|entries| entries.map(|entry| entry.map(|entry| entry.path())).collect())
        .map_err(unreadable)?;
    inside.retain(|path| path.is_dir());
    inside.sort();
    let mut folders = vec![folder(path, String::new())?];
    for path in inside {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        folders.push(folder(&path, name)?);
    }
    folders.retain(|folder| !(folder.rules.is_empty() && folder.cases.is_empty()));
    Ok(folders)
}

fn folder(path: &Path, name: String) -> Result<Folder, FolderError> {
    let read = |file: &str| {
        let file = path.join(file);
        match fs::read_to_string(&file) {
            Ok(text) => Ok(vec![(file.display().to_string(), text)]),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(FolderError::Unreadable { path: file, error }),
        }
    };
    Ok(Folder { rules: read("rules.yaml")?, cases: read("cases.yaml")?, name })
}
