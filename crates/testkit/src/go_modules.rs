//! The sources of Go modules: files that answers are compared on, and other projects' own tests, which run in a copy in
//! the user's cache.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::kube::cache;

/// Returns the folder of a module in Go's module cache, and downloads it if it is not there.
///
/// # Errors
/// If Go is missing, or cannot download the module.
pub fn folder(module: &str, version: &str) -> Result<PathBuf> {
    let name = format!("{module}@{version}");
    let go = |arguments: &[&str]| {
        Command::new("go")
            .args(arguments)
            // A module may ask for a later Go than this one; nothing of it is built.
            .env("GOTOOLCHAIN", "local")
            .env("GOFLAGS", "-mod=mod")
            .current_dir(std::env::temp_dir())
            .stdin(Stdio::null())
            .output()
            .context("cannot run `go`, which downloads modules: install Go 1.26 or later from go.dev/dl")
    };
    let output = go(&["env", "GOMODCACHE"])?;
    let folder = Path::new(String::from_utf8_lossy(&output.stdout).trim()).join(escaped(&name));
    if !folder.is_dir() {
        let output = go(&["mod", "download", "-json", &name])?;
        if !folder.is_dir() {
            bail!("`go mod download {name}` failed: {}", String::from_utf8_lossy(&output.stdout).trim());
        }
    }
    Ok(folder)
}

/// Returns the folder of a copy of a module in the user's cache, in which its tests can run.
///
/// # Errors
/// If the module cannot be downloaded or copied.
pub fn copy(module: &str, version: &str) -> Result<PathBuf> {
    let from = folder(module, version)?;
    kept(&format!("{}@{version}", module.replace('/', "_")), |copy| copy_files(&from, copy))
}

/// Returns the folder `name` among the suites in the user's cache, which `fill` fills if it is not there. A failure leaves
/// nothing that looks complete.
pub(crate) fn kept(name: &str, fill: impl FnOnce(&Path) -> Result<()>) -> Result<PathBuf> {
    let parent = cache()?.join("suites");
    create(&parent)?;
    let kept = parent.join(name);
    let lock = kept.with_added_extension("lock");
    let lock = File::create(&lock).with_context(|| format!("cannot create {}", lock.display()))?;
    lock.lock().context("cannot lock the cache of test suites")?;
    if kept.is_dir() {
        return Ok(kept);
    }
    let unfinished = kept.with_added_extension("unfinished");
    let _ = fs::remove_dir_all(&unfinished);
    create(&unfinished)?;
    fill(&unfinished)?;
    fs::rename(&unfinished, &kept).with_context(|| format!("cannot create {}", kept.display()))?;
    Ok(kept)
}

pub(crate) fn create(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))
}

/// Copies files without their permissions: those of Go's module cache cannot be written.
pub(crate) fn copy_files(from: &Path, to: &Path) -> Result<()> {
    create(to)?;
    let unreadable = || format!("cannot read {}", from.display());
    for entry in fs::read_dir(from).with_context(unreadable)? {
        let from = entry.with_context(unreadable)?.path();
        let to = to.join(from.file_name().unwrap_or_default());
        if from.is_dir() {
            copy_files(&from, &to)?;
        } else {
            let content = fs::read(&from).with_context(|| format!("cannot read {}", from.display()))?;
            fs::write(&to, content).with_context(|| format!("cannot write {}", to.display()))?;
        }
    }
    Ok(())
}

/// Returns a module's name as its folder has it: capital letters are small ones behind an exclamation mark.
fn escaped(name: &str) -> String {
    let mut escaped = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            escaped.push('!');
        }
        escaped.push(letter.to_ascii_lowercase());
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capital_letters_of_modules_are_escaped_in_folders() {
        assert_eq!(escaped("github.com/BurntSushi/toml@v1.2.3"), "github.com/!burnt!sushi/toml@v1.2.3");
    }
}
