//! Reads dumps: each file becomes the snapshot of one cluster.
//!
//! A dump that `taffrail dump` wrote states which scopes were read: an object of them that it does not contain does not
//! exist, and everything else is unknown. It is queried like a cluster, by the plan of reads, so it gives the same
//! answers. Any other dump is regarded as complete.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use taffrail_apps::{
    Answer, AppLabels, NOT_IN_DUMP, Objects, Read, ReadQuery, Rounds, Scope, ScopeError, Snapshot, Target,
    plan_reads, wanted_elsewhere,
};
use taffrail_cluster::chain;
use taffrail_object::json::Parser;
use taffrail_object::{Object, Projection};
use taffrail_status::{ActiveRules, ClusterState as _};

use crate::ending::Ending;
use crate::error::ObserveError;
use crate::fleet::FleetSnapshot;
use crate::input::{self, Chunks, InputShape, InputSource};
use crate::recording::{CLOSING, Closing, GROUP, OPENING, Opening, RecordedScope, State};
use crate::rules::FleetRules;

/// Prefix of the comment that may be a dump's first line; the address of the API server follows it.
const SERVER: &str = "# server:";

/// The arguments of [`read_dumps`].
#[derive(Debug)]
pub struct DumpRequest<'d> {
    /// Files, folders of files, or `-` for stdin.
    pub paths: &'d [PathBuf],
    /// The time at which the objects are judged; `None` for the newest time that the dumps state, or for the present
    /// time if one of them states none.
    pub now: Option<Timestamp>,
    /// The rules by which the objects are judged.
    pub rules: Arc<dyn FleetRules>,
    /// The labels whose values name the apps of objects that no tool declares.
    pub labels: AppLabels,
}

/// One dump file, read and parsed.
struct File {
    snapshot: Snapshot,
    recording: Option<Recording>,
}

/// The first and the last line of a dump that `taffrail dump` wrote.
struct Recording {
    opening: Opening,
    /// The last line; `None` if it is missing, states another number of objects than the dump has, or is not the only
    /// one, or if a part of the dump could not be parsed.
    closing: Option<Closing>,
}

/// Reads dumps, in the order of `paths`, and answers, in each that `taffrail dump` wrote, the query that `asked`
/// returns for its contents. A scope that could not be read when a dump was written is an error only if the query needs
/// it. Dumps that state the same cluster's name are called as their files instead.
///
/// # Errors
/// Returns an error if `paths` contain no file. A file that cannot be read becomes a snapshot with an error, and a
/// folder without files that can be read one of the `problems`.
pub fn read_dumps(
    request: DumpRequest<'_>,
    asked: &dyn Fn(&Snapshot) -> ReadQuery,
) -> Result<FleetSnapshot, ObserveError> {
    let DumpRequest { paths, now: fixed, rules: judging, labels } = request;
    let rules = &judging.active();
    let (sources, mut problems) = input::sources(paths, false);
    if sources.is_empty()
        && let Some(problem) = problems.pop()
    {
        return Err(problem);
    }
    let current = Timestamp::now();
    let mut files: Vec<File> = sources.iter().map(|source| file(source, fixed, current)).collect();
    // Also of a cluster that did not answer is known when it was asked.
    let times: Option<Vec<Timestamp>> =
        files.iter().map(|file| file.recording.as_ref()?.opening.observed_at.parse().ok()).collect();
    let recorded = times.and_then(|times| times.into_iter().max());
    let is_fleet = files.len() > 1;
    let names: Vec<String> = files.iter().map(|file| file.snapshot.name().to_owned()).collect();
    for (file, source) in files.iter_mut().zip(&sources) {
        // Two dumps of one cluster, of two times perhaps, are told apart by the names of their files.
        if let InputSource::File(path) = source
            && names.iter().filter(|name| *name == file.snapshot.name()).count() > 1
        {
            file.snapshot.set_name(stem(path));
        }
    }
    for File { snapshot, recording } in &mut files {
        let Some(recording) = recording else { continue };
        let asked = asked(snapshot);
        let namespace = asked.namespace.clone().or_else(|| recording.opening.namespace.clone());
        let asked = ReadQuery { namespace, follow: asked.declarations && is_fleet, ..asked };
        recording.answer(snapshot, &asked, rules);
    }
    let follows = |file: &File| file.recording.is_some() && asked(&file.snapshot).declarations;
    if is_fleet && files.iter().any(follows) {
        let clusters: Vec<_> = files.iter().map(|file| &file.snapshot as &dyn Objects).collect();
        let mut wanted: BTreeMap<_, _> = wanted_elsewhere(&clusters);
        for File { snapshot, recording } in &mut files {
            let (Some(recording), Some(objects)) = (recording, wanted.remove(snapshot.name())) else {
                continue;
            };
            let asked = asked(snapshot);
            let namespace = asked.namespace.clone().or_else(|| recording.opening.namespace.clone());
            let asked = ReadQuery { namespace, follow: true, objects, ..asked };
            recording.answer(snapshot, &asked, rules);
        }
    }
    let now = fixed.or(recorded).unwrap_or(current);
    let snapshots = files.into_iter().map(|file| file.snapshot).collect();
    let problems = problems.iter().map(ObserveError::told).collect();
    Ok(FleetSnapshot { snapshots, now, rules: judging, problems, labels, rows: None })
}

fn file(source: &InputSource, fixed: Option<Timestamp>, current: Timestamp) -> File {
    let file = source.name();
    let name = match source {
        InputSource::Stdin => "stdin".to_owned(),
        InputSource::File(path) => stem(path),
    };
    let mut chunks = match source.open() {
        Ok(reader) => Chunks::new(reader, &file, None),
        Err(error) => {
            let snapshot = Snapshot::lost(name, "Unreadable", chain(&error));
            return File { snapshot, recording: None };
        }
    };
    let mut snapshot = Snapshot::dump(&*name, fixed.unwrap_or(current));
    if fixed.is_none() {
        snapshot.set_undated();
    }
    let mut opening = None;
    let mut closing = None;
    // The lines after the first that hold no object: one in a whole dump.
    let mut lines_behind_first: u64 = 0;
    let mut lines: u64 = 0;
    let mut is_whole = true;
    let mut parser = Parser::new();
    let mut is_cut = false;
    let mut ending = Ending::default();
    loop {
        let chunk = match chunks.next_chunk() {
            Ok(Some(chunk)) => chunk,
            Ok(None) => break,
            Err(error) => {
                snapshot.report_unreadable(&file, format!("{file}: {error}"));
                is_whole = false;
                break;
            }
        };
        if chunk.line == 1 {
            if let Some(server) = server(&chunk.text) {
                snapshot.add_server(server);
            }
            let first = chunk.text.split(|&byte| byte == b'\n').next();
            opening = first.and_then(Opening::read).and_then(|opening| {
                let observed_at: Timestamp = opening.observed_at.parse().ok()?;
                snapshot = recorded(&opening, observed_at);
                Some(opening)
            });
        }
        is_cut = chunk.shape == InputShape::Yaml && !chunk.text.ends_with(b"\n");
        input::each(&chunk, &mut parser, |parsed| {
            let place = format!("{file}:{}", parsed.line);
            let kept = match parsed.object {
                Ok(object) if opening.is_some() && object.group() == GROUP => {
                    if object.kind() != OPENING || parsed.line != 1 {
                        lines_behind_first += 1;
                        let is_only = object.kind() == CLOSING && lines_behind_first == 1;
                        closing = is_only.then(|| end(&object)).flatten();
                    }
                    return;
                }
                Ok(object) => {
                    if chunk.shape == InputShape::Yaml && !parsed.is_item {
                        ending.see(&object);
                    }
                    keep(&mut snapshot, &object, opening.is_some())
                }
                Err(fault) => Err(fault.to_string()),
            };
            lines += 1;
            if let Err(error) = kept {
                is_whole = false;
                snapshot.report_unreadable(&place, format!("{place}: {error}"));
            }
        });
    }
    if let (Some(opening), Some(Closing { lost: Some(lost), lines: 0, .. })) = (&opening, &closing)
        && (is_whole, lines) == (true, 0)
    {
        snapshot = Snapshot::lost(&*opening.metadata.name, &*lost.reason, &*lost.message);
        if !opening.server.is_empty() {
            snapshot.add_server(&*opening.server);
        }
    }
    let is_lost = closing.as_ref().is_some_and(|closing| closing.lost.is_some());
    if is_cut {
        // kubectl ends what it prints with the end of a line. What a cut object says last may be half of a word.
        snapshot.report_unreadable(
            &file,
            format!("{file}: the dump ends in the middle of a line, so it may be cut"),
        );
    } else if ending.is_cut() {
        let message = format!(
            "{file}: the dump may be cut: its last object lacks a field that an API server always prints"
        );
        snapshot.report_unreadable(&file, message);
    }
    if !is_lost && snapshot.all().next().is_none() && snapshot.errors().is_empty() {
        let message = "the dump holds no objects".to_owned();
        snapshot.report(ScopeError {
            scope: Scope::Input(file.clone()),
            reason: "Empty".to_owned(),
            message,
        });
    }
    let Some(opening) = opening else { return File { snapshot, recording: None } };
    match &closing {
        Some(closing) if closing.lines == lines => {}
        Some(closing) => {
            let message =
                format!("{file}: the dump holds {lines} objects of the {} that were written", closing.lines);
            snapshot.report_unreadable(&file, message);
            is_whole = false;
        }
        None => {
            let message =
                format!("{file}: the dump is cut: its last line, which says what was read, is missing");
            snapshot.report_unreadable(&file, message);
        }
    }
    let recording = Recording { opening, closing: closing.filter(|_| is_whole) };
    File { snapshot, recording: Some(recording) }
}

/// Returns an empty snapshot of a dumped cluster, with the server, version, clock difference, kinds and time that the
/// dump's first line states.
fn recorded(opening: &Opening, observed_at: Timestamp) -> Snapshot {
    let mut snapshot = Snapshot::live(&*opening.metadata.name, observed_at);
    snapshot.add_server(&*opening.server);
    if let Some(version) = &opening.version {
        snapshot.set_version(&**version);
    }
    if let Some(seconds) = opening.clock_ahead_seconds {
        snapshot.set_clock_ahead(SignedDuration::from_secs(seconds));
    }
    snapshot.set_kinds(opening.catalog());
    snapshot
}

fn end(object: &Object<'_>) -> Option<Closing> {
    serde_json::from_value(object.root().to_tree().ok()?).ok()
}

impl Recording {
    /// Answers the reads that the plan makes for `asked`, with the result that each had when the dump was written. Does
    /// nothing if the dump has no valid last line, or if its cluster did not answer.
    fn answer(&self, snapshot: &mut Snapshot, asked: &ReadQuery, rules: &ActiveRules<'_>) {
        /// Maximum number of rounds of planning reads and answering them; reads planned later stay unanswered. No
        /// plan needs as many.
        const ROUNDS: usize = 20;

        // That it was cut, or damaged, or that the cluster did not answer, is reported once.
        if self.closing.as_ref().is_none_or(|closing| closing.lost.is_some()) {
            return;
        }
        self.mark_read(snapshot);
        let mut rounds = Rounds::default();
        for _ in 0..ROUNDS {
            let reads = plan_reads(snapshot, asked, rules, &mut rounds);
            if reads.is_empty() {
                break;
            }
            for read in &reads {
                let answer = self.of_read(snapshot, read);
                snapshot.answer(read, answer);
            }
            // That a part of a kind was asked for does not make the rest of it unknown.
            self.mark_read(snapshot);
        }
        rounds.report(snapshot);
    }

    /// Marks each scope that was read completely, or whose kind the server did not serve, so that an object missing in
    /// it counts as absent, not as unknown.
    fn mark_read(&self, snapshot: &mut Snapshot) {
        for scope in self.scopes() {
            match scope.state {
                State::Read => snapshot.answer(&scope.read(), Answer::Objects(Vec::new())),
                State::NotServed => snapshot.answer(&scope.read(), Answer::NotFound),
                State::Forbidden | State::Failed => {}
            }
        }
    }

    fn scopes(&self) -> &[RecordedScope] {
        self.closing.as_ref().map_or(&[], |closing| &closing.scopes)
    }

    fn of_read(&self, snapshot: &Snapshot, read: &Read) -> Answer {
        let Some(closing) = &self.closing else {
            let message = "the dump is cut, or not all of it could be read".to_owned();
            return Answer::Failed { reason: "Unreadable".to_owned(), message };
        };
        let not_held = |why: &str| {
            let message = format!("{}: {why}", purpose(read));
            Answer::Failed { reason: NOT_IN_DUMP.to_owned(), message }
        };
        if let Target::Object(name) = &read.target {
            let namespace = read.namespace.as_deref().unwrap_or_default();
            let unread = closing.unread.iter().find(|unread| {
                (&*unread.group, &*unread.kind) == (&*read.group, &*read.kind)
                    && (&*unread.namespace, &*unread.name) == (namespace, &**name)
            });
            if let Some(unread) = unread {
                return failed(unread.reason == "Forbidden", &unread.reason, &unread.message);
            }
            let key = taffrail_object::ObjectKey::new(&*read.group, &*read.kind, namespace, &**name);
            if let taffrail_status::Presence::Present(found) = snapshot.get(key.as_ref()) {
                return match found.projection.covers(read.projection) {
                    true => Answer::Objects(Vec::new()),
                    false => not_held("the dump does not hold the values of this object"),
                };
            }
        }
        let scope = closing.scopes.iter().find(|scope| scope.covers(read));
        match scope.map(|scope| (scope.state, scope)) {
            None => not_held(
                "the dump does not contain this object or kind, because it was not read when the dump was written",
            ),
            Some((State::Read, _)) if matches!(read.target, Target::Object(_)) => Answer::NotFound,
            Some((State::Read, _)) => Answer::Objects(Vec::new()),
            Some((State::NotServed, _)) => Answer::NotFound,
            Some((State::Forbidden, scope)) => failed(true, &scope.reason, &scope.message),
            Some((State::Failed, scope)) => failed(false, &scope.reason, &scope.message),
        }
    }
}

/// Describes a read for error messages, as for a live cluster, such as `list deployments.apps in namespace shop`.
fn purpose(read: &Read) -> String {
    let dot = if read.group.is_empty() { "" } else { "." };
    let (verb, name) = match &read.target {
        Target::List { .. } => ("list", String::new()),
        Target::Object(name) => ("get", format!("/{name}")),
    };
    let place =
        read.namespace.iter().map(|namespace| format!(" in namespace {namespace}")).collect::<String>();
    format!("{verb} {}{dot}{}{name}{place}", read.plural, read.group)
}

fn failed(is_forbidden: bool, reason: &str, message: &str) -> Answer {
    let message = message.to_owned();
    match is_forbidden {
        true => Answer::Forbidden { message },
        false => Answer::Failed { reason: reason.to_owned(), message },
    }
}

fn keep(snapshot: &mut Snapshot, object: &Object<'_>, is_recorded: bool) -> Result<(), String> {
    // Of Secrets that are not Helm's only the metadata is written down.
    let is_masked =
        is_recorded && (object.group(), object.kind()) == ("", "Secret") && object.at(&["data"]).is_none();
    let document = object.to_document().map_err(|error| error.to_string())?;
    let projection = if is_masked { Projection::Metadata } else { Projection::Full };
    snapshot.insert(document, projection).map_err(|error| error.to_string())
}

/// Returns the file's name without its extension, which names the cluster of a dump that states no name, or the name of
/// another dump.
fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

fn server(text: &[u8]) -> Option<String> {
    let line = text.split(|&byte| byte == b'\n').next()?;
    let server = std::str::from_utf8(line).ok()?.strip_prefix(SERVER)?.trim();
    (!server.is_empty()).then(|| server.to_owned())
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use serde_json::{Value, json};
    use taffrail_object::json::OwnedDocument;

    use super::*;
    use crate::recording::VERSION;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn opening() -> Value {
        json!({"apiVersion": VERSION, "kind": OPENING, "metadata": {"name": "one"}, "server": "https://one",
            "observedAt": NOW.to_string(), "kinds": []})
    }

    fn closing() -> Value {
        json!({"apiVersion": VERSION, "kind": CLOSING, "metadata": {"name": "one"}, "lines": 0, "scopes": []})
    }

    #[test]
    fn dump_with_more_than_one_last_line_has_none() {
        for (number, is_valid) in [(0, false), (1, true), (2, false), (3, false)] {
            let mut dump = tempfile::NamedTempFile::new().unwrap();
            writeln!(dump, "{}", opening()).unwrap();
            (0..number).for_each(|_| writeln!(dump, "{}", closing()).unwrap());
            let read = file(&InputSource::File(dump.path().to_owned()), None, NOW);
            assert_eq!(read.recording.unwrap().closing.is_some(), is_valid, "{number}");
        }
    }

    #[test]
    fn values_of_an_object_are_missing_only_if_the_dump_has_its_metadata_alone() {
        let recording = Recording {
            opening: serde_json::from_value(opening()).unwrap(),
            closing: serde_json::from_value(closing()).unwrap(),
        };
        let secret =
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "shop", "name": "a"}});
        for (held, asked, is_held) in [
            (Projection::Full, Projection::Full, true),
            (Projection::Full, Projection::Metadata, true),
            (Projection::Metadata, Projection::Metadata, true),
            (Projection::Metadata, Projection::Full, false),
        ] {
            let mut snapshot = Snapshot::live("one", NOW);
            let document = OwnedDocument::parse(secret.to_string().into_bytes()).unwrap();
            snapshot.insert(document, held).unwrap();
            let read = Read {
                group: String::new(),
                version: "v1".to_owned(),
                kind: "Secret".to_owned(),
                plural: "secrets".to_owned(),
                namespace: Some("shop".to_owned()),
                target: Target::Object("a".to_owned()),
                projection: asked,
            };
            let answer = recording.of_read(&snapshot, &read);
            assert_eq!(matches!(answer, Answer::Objects(_)), is_held, "{held:?} {asked:?}: {answer:?}");
        }
    }
}
