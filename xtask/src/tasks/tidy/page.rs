//! Checks that the page with which the hub is compiled is that of its sources.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};
use taffrail_testkit::binary::workspace;

/// The sources of the page, as in `web/scripts/build.mjs`.
const SOURCES: [&str; 8] = [
    "docs/openapi.json",
    "web/index.html",
    "web/package-lock.json",
    "web/public",
    "web/scripts",
    "web/src",
    "web/tsconfig.json",
    "web/vite.config.ts",
];

/// The list of built files, which tells the digest of the sources that they were built from.
const BUILT: &str = "crates/hub/page/files.rs";

/// Adds a fault if the committed page was built from other sources than the present ones.
pub(super) fn check(faults: &mut Vec<String>) -> Result<()> {
    let built =
        fs::read_to_string(workspace().join(BUILT)).with_context(|| format!("cannot read {BUILT}"))?;
    if !built.contains(&digest()?) {
        let build = "run 'npm ci --ignore-scripts && npm run build' in web/";
        faults.push(format!("{BUILT}: the page was built from other sources; {build}"));
    }
    Ok(())
}

/// Returns the SHA-256 of the path, length and content of each source, in hexadecimal digits.
fn digest() -> Result<String> {
    let mut hash = Sha256::new();
    for source in SOURCES {
        for file in files_in(&workspace().join(source))? {
            let bytes = fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
            let name = file.strip_prefix(workspace()).unwrap_or(&file).display().to_string();
            hash.update(format!("{name} {}\n", bytes.len()));
            hash.update(bytes);
        }
    }
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Returns the file `path`, or all files in the folder `path`, in the order of their names.
fn files_in(path: &Path) -> Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let entries = fs::read_dir(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut inside: Vec<PathBuf> = entries.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    inside.sort();
    let files: Vec<Vec<PathBuf>> = inside.iter().map(|path| files_in(path)).collect::<Result<_>>()?;
    Ok(files.concat())
}
