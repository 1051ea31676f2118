//! Lists the files of the library, so that the crate can take them in.

#![expect(clippy::disallowed_methods, reason = "a build script reads files")]

use std::error::Error;
use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=library");
    let library = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("library");
    let mut groups = Vec::new();
    for entry in fs::read_dir(&library)? {
        let folder = entry?.path();
        let file = folder.join("rules.yaml");
        if file.is_file() {
            let name = folder.file_name().and_then(|name| name.to_str()).ok_or("a folder has an odd name")?;
            // `*` may stand in no name of a file on some systems.
            groups.push((name.replacen("_.", "*.", 1), file));
        }
    }
    groups.sort();
    let mut list = "&[\n".to_owned();
    for (group, file) in groups {
        writeln!(list, "    ({group:?}, include_str!({file:?})),")?;
    }
    list.push_str("]\n");
    fs::write(Path::new(&env::var("OUT_DIR")?).join("library.rs"), list)?;
    Ok(())
}
