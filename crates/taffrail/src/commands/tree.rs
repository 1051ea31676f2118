//! `taffrail tree`: prints an app, its declared objects and their dependents as a tree.

use std::io::{self, Write};

use anstyle::Style;
use jiff::Timestamp;
use taffrail_api::question::{TreeAnswer, TreeView};
use taffrail_api::{AppTree, TreeList, TreeNode, text};
use taffrail_apps::ProblemSeverity;
use taffrail_object::ObjectKey;
use taffrail_status::Status;

use super::{changes, get, named};
use crate::cli::{ListOutput, TreeArguments, TreeOutput};
use crate::command_error::{CommandError, Exit, written};
use crate::output::answer::Console;
use crate::output::table::{Cell, Table};
use crate::output::{object_style, printable, screen, style};
use crate::source::{self, Source};
use crate::{phrase, say};

pub(crate) fn run(
    arguments: &TreeArguments,
    printed: &mut Option<TreeList>,
    source: &mut dyn Source,
    console: &Console,
) -> Result<Exit, CommandError> {
    let view = TreeView {
        name: arguments.name.clone(),
        apps: named::selection(&arguments.which),
        compact: arguments.compact,
        // Programs count for themselves.
        fold: !arguments.all && arguments.output != TreeOutput::Json,
        status: arguments.status.clone(),
    };
    let answer = source::ask("tree", &view, (&arguments.view, &arguments.hub), source, console)?;
    let TreeAnswer { fleet, items, errors, is_well } = answer;
    // Only documents contain failures.
    let told = if arguments.output == TreeOutput::Json { &*errors } else { &[] };
    let trees = TreeList::of(items, told);
    let Some(trees) = changes::news(printed, trees) else { return Ok(Exit::Yes) };
    written(match arguments.output {
        TreeOutput::Json => get::document(ListOutput::Json, trees, console),
        TreeOutput::Dot => {
            if let Some(left_out) = left_out(trees.items.iter().map(|tree| tree.left_out).sum()) {
                console.tell(phrase!("{}\n", printable(&left_out)));
            }
            dot(&trees.items, console)
        }
        TreeOutput::Text => text(&trees.items, fleet.clusters > 1, fleet.now, console),
    })?;
    let mut exit = get::tell(&fleet, &errors, arguments.output != TreeOutput::Json, console);
    if arguments.exit_status && !is_well {
        exit = exit.max(Exit::No);
    }
    Ok(exit)
}

fn text(trees: &[AppTree], several: bool, now: Timestamp, console: &Console) -> io::Result<()> {
    let mut out = console.people();
    let mut objects = Vec::new();
    for (number, tree) in trees.iter().enumerate() {
        if number > 0 {
            objects.push(None);
            say!(out)?;
        }
        if several {
            let home = if tree.home == tree.cluster { "" } else { &*tree.home };
            let declared = if home.is_empty() { String::new() } else { format!(" (declared in {home})") };
            objects.push(None);
            say!(out, "{}{}:", printable(&tree.cluster), printable(&declared))?;
        }
        // The header of the table.
        objects.push(None);
        let header = vec!["OBJECT", "STATUS", "AGE", "MESSAGE"];
        let mut table = Table::new(&mut out, header, screen()).spare(&["AGE"]).room(MIN_MESSAGE_WIDTH);
        let mut printer = Printer { table: &mut table, now };
        printer.node(&tree.root, "", "", None)?;
        table.finish()?;
        note_objects(&tree.root, (&tree.home, &tree.cluster), &mut objects);
        if let Some(left_out) = left_out(tree.left_out) {
            objects.push(None);
            say!(out, "{}", printable(&left_out))?;
        }
    }
    console.note_objects(objects);
    Ok(())
}

/// Adds the object of a node, and those of the nodes below it, in the order of their lines. The node's object is in
/// `cluster`, the objects below it are in `below`, unless the node is an app that delivers into another cluster.
fn note_objects(
    node: &TreeNode,
    (cluster, below): (&str, &str),
    objects: &mut Vec<Option<(String, ObjectKey)>>,
) {
    objects.push(node.object.as_ref().map(|object| (cluster.to_owned(), object.clone())));
    let below = node.cluster_below(below);
    node.children.iter().for_each(|child| note_objects(child, (below, below), objects));
}

/// Returns the line about `number` objects that `--status` leaves out; `None` if there are none.
fn left_out(number: usize) -> Option<String> {
    match number {
        0 => None,
        1 => Some("… 1 object with another status is left out".to_owned()),
        more => Some(format!("… {more} objects with another status are left out")),
    }
}

/// Width of the MESSAGE column, in columns of the screen, below which AGE is left out. It is small: most nodes are
/// ready and have no message, so AGE is worth more.
const MIN_MESSAGE_WIDTH: usize = 12;

/// The printer of a tree as a table with a row for each node, at the time `now`.
struct Printer<'t, W> {
    table: &'t mut Table<W>,
    now: Timestamp,
}

impl<W: Write> Printer<'_, W> {
    /// Prints a node and, by recursion, its children; the view limits their depth. `lead` precedes the node's own line,
    /// `below` the lines of its children. `inside` is the namespace of the parent node's object; `None` for
    /// children of an app.
    fn node(&mut self, node: &TreeNode, lead: &str, below: &str, inside: Option<&str>) -> io::Result<()> {
        let age = node.created.map(|at| text::span(self.now.as_second().saturating_sub(at.as_second())));
        // A line that stands for several objects has their note above it.
        let message = node.told();
        let note = node.note.as_deref().filter(|_| node.folded.is_none()).unwrap_or_default();
        let words: Vec<&str> = [note, &*message].into_iter().filter(|words| !words.is_empty()).collect();
        let blank = |text: String| if text.is_empty() { Cell::blank() } else { Cell::new(text) };
        self.table.row(vec![
            Cell::new(format!("{lead}{}", label(node, inside))),
            Cell::styled(node.words(), node_style(node)),
            blank(age.unwrap_or_default()),
            blank(text::revision(&words.join(": ")).into_owned()),
        ])?;
        let namespace = node.object.as_ref().map(|object| object.namespace.as_str());
        let declared_inside = node.app.is_none().then_some(namespace).flatten();
        let last = node.children.len().saturating_sub(1);
        for (at, child) in node.children.iter().enumerate() {
            let (branch, trunk) = if at == last { ("└── ", "    ") } else { ("├── ", "│   ") };
            self.node(child, &format!("{below}{branch}"), &format!("{below}{trunk}"), declared_inside)?;
        }
        Ok(())
    }
}

/// Returns the colour of a node; a Ready node with a problem is not green.
fn node_style(node: &TreeNode) -> Style {
    match node.besides() {
        Some(problem) if problem.severity == ProblemSeverity::Error => style(Status::Failed),
        Some(_) => style(Status::InProgress),
        None => object_style(node.status, node.sync),
    }
}

/// Returns the kind and name of a node's object, with its namespace unless that equals `inside`; the delivery tool and
/// name of an app without an object; else the note.
fn label(node: &TreeNode, inside: Option<&str>) -> String {
    match (&node.object, &node.app, &node.note) {
        (Some(object), _, _) if inside == Some(&object.namespace) => {
            format!("{} {}", object.kind, object.name)
        }
        (Some(object), _, _) => format!("{} {}", object.kind, path(object)),
        (None, Some(app), _) => format!("{} {}/{}", app.delivery, app.namespace, app.name),
        (None, None, note) => note.clone().unwrap_or_default(),
    }
}

fn path(object: &ObjectKey) -> String {
    if object.namespace.is_empty() {
        object.name.clone()
    } else {
        format!("{}/{}", object.namespace, object.name)
    }
}

/// Prints the trees to stdout in Graphviz's DOT language.
fn dot(trees: &[AppTree], console: &Console) -> io::Result<()> {
    fn add(node: &TreeNode, inside: Option<&str>, next: &mut usize, out: &mut String) -> usize {
        let own = *next;
        *next += 1;
        let colour = match node.status {
            Status::Current => "darkgreen",
            Status::InProgress | Status::Terminating => "darkorange",
            Status::Unknown => "purple",
            Status::Failed | Status::NotFound => "red",
        };
        let label = quoted(&format!("{}\n{}", label(node, inside), node.words()));
        out.push_str(&format!("  n{own} [label={label}, color={colour}];\n"));
        let namespace = node.object.as_ref().map(|object| object.namespace.as_str());
        let declared_inside = node.app.is_none().then_some(namespace).flatten();
        for child in &node.children {
            let child = add(child, declared_inside, next, out);
            out.push_str(&format!("  n{own} -> n{child};\n"));
        }
        own
    }

    let mut text = "digraph taffrail {\n  rankdir=LR;\n  node [shape=box, style=rounded];\n".to_owned();
    let mut next = 0;
    for tree in trees {
        add(&tree.root, None, &mut next, &mut text);
    }
    text.push_str("}\n");
    console.programs().write_all(text.as_bytes())
}

/// Quotes a text as a string of the DOT language.
fn quoted(text: &str) -> String {
    let lines: Vec<String> =
        text.lines().map(|line| printable(line).replace('\\', "\\\\").replace('"', "\\\"")).collect();
    format!("\"{}\"", lines.join("\\n"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn node(relation: &str, kind: &str, note: Option<&str>, children: &[Value]) -> Value {
        let mut node = json!({"relation": relation, "health": "Current", "effective": "Current", "status": "Current",
            "object": {"kind": kind, "namespace": "shop", "name": "x"}, "children": children});
        if kind == "Application" {
            node["app"] = json!({"delivery": "argo-application", "namespace": "shop", "name": "x"});
        }
        if let Some(note) = note {
            node["note"] = json!(note);
        }
        node
    }

    #[test]
    fn each_line_has_the_object_of_its_own_cluster() {
        let below = |note| node("declared", "Application", note, &[node("declared", "Service", None, &[])]);
        let mut line = node("owned", "Pod", None, &[]);
        line["object"] = Value::Null;
        let apps = [
            below(None),
            below(Some("suspended")),
            below(Some("in cluster ap, 1")),
            below(Some("suspended, in cluster us")),
            line,
        ];
        // The note of the root is about the app itself.
        let root = node("app", "Application", Some("in cluster x"), &apps);
        let root: TreeNode = serde_json::from_value(root).unwrap();
        let mut objects = Vec::new();
        note_objects(&root, ("home", "eu"), &mut objects);
        let clusters = objects.iter().map(|object| object.as_ref().map_or("-", |(cluster, _)| cluster));
        let clusters: Vec<&str> = clusters.collect();
        assert_eq!(clusters, ["home", "eu", "eu", "eu", "eu", "eu", "ap, 1", "eu", "us", "-"]);
    }
}
