//! Lists the files of the library and of the actions, so that the crate can include them.

#![expect(clippy::disallowed_methods, reason = "a build script reads files")]

use std::error::Error;
use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    let root = env::var("CARGO_MANIFEST_DIR")?;
    let out = env::var("OUT_DIR")?;
    fs::write(Path::new(&out).join("library.rs"), library(&Path::new(&root).join("library"))?)?;
    fs::write(Path::new(&out).join("actions.rs"), actions(&Path::new(&root).join("actions"))?)?;
    Ok(())
}

/// Returns the Rust source of a list of the groups in the folder `library`: pairs of name and text of the rules.
fn library(library: &Path) -> Result<String, Box<dyn Error>> {
    println!("cargo::rerun-if-changed=library");
    let mut groups = Vec::new();
    for entry in fs::read_dir(library)? {
        let folder = entry?.path();
        let file = folder.join("rules.yaml");
        if file.is_file() {
            let name = folder.file_name().and_then(|name| name.to_str()).ok_or("a folder has an odd name")?;
            // Some file systems do not allow `*` in file names.
            groups.push((name.replacen("_.", "*.", 1), file));
        }
    }
    groups.sort();
    let mut list = "&[\n".to_owned();
    for (group, file) in groups {
        writeln!(list, "    ({group:?}, include_str!({file:?})),")?;
    }
    list.push_str("]\n");
    Ok(list)
}

/// Returns the Rust source of a list of the scripts below `root`: pairs of path and text. It has no test cases.
fn actions(root: &Path) -> Result<String, Box<dyn Error>> {
    println!("cargo::rerun-if-changed=actions");
    let mut files = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "lua") {
                let parts: Option<Vec<&str>> =
                    path.strip_prefix(root)?.iter().map(|part| part.to_str()).collect();
                files.push((parts.ok_or("a file has an odd name")?.join("/"), path));
            }
        }
    }
    files.sort();
    let mut list = "&[\n".to_owned();
    for (name, file) in files {
        writeln!(list, "    ({name:?}, include_str!({file:?})),")?;
    }
    list.push_str("]\n");
    Ok(list)
}
