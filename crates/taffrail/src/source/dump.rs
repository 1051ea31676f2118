//! Dumps: a file is a cluster.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use taffrail_apps::{Body, Snapshot};
use taffrail_status::Object;
use taffrail_status::json::{OwnedDocument, Parser};

use crate::complaint::Complaint;
use crate::input::{self, Chunks, Source};

/// What the first line of a dump says before the address of its API server.
const SERVER: &str = "# server:";

/// Reads the dumps that `paths` name: files, or folders of files.
pub(super) fn read(
    paths: &[PathBuf],
    now: Timestamp,
    is_dated: bool,
) -> Result<(Vec<Snapshot>, Vec<Complaint>), Complaint> {
    let (sources, mut complaints) = input::sources(paths, false);
    if sources.is_empty()
        && let Some(complaint) = complaints.pop()
    {
        return Err(complaint);
    }
    let snapshots = sources.iter().map(|source| snapshot(source, now, is_dated)).collect();
    Ok((snapshots, complaints))
}

fn snapshot(source: &Source, now: Timestamp, is_dated: bool) -> Snapshot {
    let file = source.name();
    let name = match source {
        Source::Stdin => "stdin".to_owned(),
        Source::File(path) => stem(path),
    };
    let mut chunks = match source.open() {
        Ok(reader) => Chunks::new(reader, &file, None),
        Err(complaint) => return Snapshot::lost(name, "Unreadable", complaint.to_string()),
    };
    let mut snapshot = Snapshot::dump(name, now);
    if !is_dated {
        snapshot.set_undated();
    }
    let mut parser = Parser::new();
    loop {
        let chunk = match chunks.next() {
            Ok(Some(chunk)) => chunk,
            Ok(None) => return snapshot,
            Err(error) => {
                snapshot.report_unreadable(&file, format!("{file}: {error}"));
                return snapshot;
            }
        };
        if chunk.line == 1
            && let Some(server) = server(&chunk.text)
        {
            snapshot.add_server(server);
        }
        input::each(&chunk, &mut parser, |parsed| {
            let place = format!("{file}:{}", parsed.line);
            let kept = match parsed.object {
                Ok(object) => keep(&mut snapshot, &object),
                Err(fault) => Err(fault.to_string()),
            };
            if let Err(error) = kept {
                snapshot.report_unreadable(&place, format!("{place}: {error}"));
            }
        });
    }
}

fn keep(snapshot: &mut Snapshot, object: &Object<'_>) -> Result<(), String> {
    let document = input::json(object)?;
    let document = OwnedDocument::parse(document).map_err(|error| error.to_string())?;
    snapshot.insert(document, Body::Whole).map_err(|error| error.to_string())
}

/// The name of a dump's cluster: the file's, without its extension.
fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

fn server(text: &[u8]) -> Option<String> {
    let line = text.split(|&byte| byte == b'\n').next()?;
    let server = std::str::from_utf8(line).ok()?.strip_prefix(SERVER)?.trim();
    (!server.is_empty()).then(|| server.to_owned())
}
