//! The Rust code of the protocol between agents and a hub, generated from its definition.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use taffrail_testkit::binary::workspace;

/// The folder of the definition, below the workspace.
const DEFINITIONS: &str = "crates/api/proto";

/// The file of the definition, below [`DEFINITIONS`].
const DEFINITION: &str = "taffrail/agent/v1/agent.proto";

/// The package of the definition.
const PACKAGE: &str = "taffrail.agent.v1";

/// The module that holds the types of the messages, for the stubs that use them.
const MESSAGES: &str = "::taffrail_api::agent_protocol";

/// The files that are generated, below the workspace.
const GENERATED: [(&str, Part); 3] = [
    ("crates/api/src/agent_protocol/generated.rs", Part::Messages),
    ("crates/hub/src/agents/generated.rs", Part::Server),
    ("crates/agent/src/generated.rs", Part::Client),
];

/// A part of the code that is generated from the definition.
#[derive(Clone, Copy)]
enum Part {
    Messages,
    Server,
    Client,
}

/// Writes the generated files.
pub(super) fn write() -> Result<()> {
    generate(|path, code| fs::write(path, code).with_context(|| format!("cannot write {}", path.display())))
}

/// Adds a fault for each generated file that does not follow from the definition.
pub(super) fn check(faults: &mut Vec<String>) -> Result<()> {
    generate(|path, code| {
        if fs::read_to_string(path).unwrap_or_default() != code {
            faults.push(format!(
                "{} does not follow from {DEFINITIONS}/{DEFINITION}: run `cargo xtask docs`",
                path.display()
            ));
        }
        Ok(())
    })
}

/// Calls `take` with the path and the code of each file.
fn generate(mut take: impl FnMut(&Path, &str) -> Result<()>) -> Result<()> {
    let definitions = workspace().join(DEFINITIONS);
    let files =
        protox::compile([DEFINITION], [definitions]).context("cannot compile the protocol of agents")?;
    let folder = tempfile::tempdir()?;
    for (path, part) in GENERATED {
        let builder = tonic_prost_build::configure()
            .out_dir(folder.path())
            .build_server(matches!(part, Part::Server))
            .build_client(matches!(part, Part::Client))
            .build_transport(false)
            .btree_map(".")
            // An empty one takes two bytes in a message.
            .boxed(format!(".{PACKAGE}.Half.body.declared"))
            .boxed(format!(".{PACKAGE}.Half.body.observed"))
            .emit_rerun_if_changed(false);
        let builder = match part {
            Part::Messages => builder,
            Part::Server | Part::Client => builder.extern_path(format!(".{PACKAGE}"), MESSAGES),
        };
        builder.compile_fds(files.clone()).context("cannot generate the code of the protocol of agents")?;
        let made = folder.path().join(format!("{PACKAGE}.rs"));
        format_code(&made)?;
        take(&workspace().join(path), &fs::read_to_string(&made)?)?;
    }
    Ok(())
}

/// Formats a file like the code of the workspace.
fn format_code(path: &PathBuf) -> Result<()> {
    let config = workspace().join("rustfmt.toml");
    let status = Command::new("rustfmt")
        .args(["--edition", "2024", "--config-path"])
        .args([&config, path])
        .status()
        .context("cannot run rustfmt")?;
    ensure!(status.success(), "rustfmt ended with {status}");
    Ok(())
}
