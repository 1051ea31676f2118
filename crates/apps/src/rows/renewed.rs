//! Clusters in which anything may have changed, and the results that concern them.

use std::collections::BTreeSet;

use super::{KeptRow, LastRows};
use crate::delivery::DeclaredPart;
use crate::fleet::Fleet;
use crate::objects::Objects;

/// The facts by which an update notices that a cluster was added, removed, renamed or merged with another.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Identity {
    name: String,
    id: Option<String>,
    servers: Vec<String>,
    /// The index of the cluster in the fleet; `None` for an alias of an earlier cluster.
    pub(super) place: Option<usize>,
    twin_of: Option<String>,
}

impl Identity {
    /// Returns the facts that decide where the apps of all clusters are; the rest of an identity concerns only the rows
    /// of its cluster.
    pub(super) fn place(&self) -> (&str, &[String], Option<usize>, Option<&str>) {
        let Identity { name, id: _, servers, place, twin_of } = self;
        (name, servers, *place, twin_of.as_deref())
    }
}

/// Returns the identities of `clusters`, in their order.
pub(super) fn identities(fleet: &Fleet<'_>, clusters: &[&dyn Objects]) -> Vec<Identity> {
    let mut members = fleet.members.iter().enumerate().peekable();
    let identity = |objects: &&dyn Objects| {
        let member = members.next_if(|(_, member)| std::ptr::addr_eq(member.objects, *objects));
        Identity {
            name: objects.name().to_owned(),
            id: objects.id().map(ToString::to_string),
            servers: objects.servers().to_vec(),
            place: member.map(|(place, _)| place),
            twin_of: member.and_then(|(_, member)| member.twin_of.clone()),
        }
    };
    clusters.iter().map(identity).collect()
}

/// The results to compute again.
#[derive(Debug, Default)]
pub(super) struct Renewed {
    /// The numbers of the rows.
    pub(super) rows: BTreeSet<u32>,
    /// The kept declarations.
    pub(super) parts: Vec<DeclaredPart>,
}

/// Returns the results that concern the clusters with the indexes `renewed` in the fleet: the rows with one of them as
/// home or target, and the rows and kept declarations of each home with an app there. A row, and a declaration, depends
/// only on its home and its target. The label groups of the renewed clusters are not among the results.
pub(super) fn concerned(kept: &LastRows, renewed: &BTreeSet<usize>) -> Renewed {
    if renewed.is_empty() {
        return Renewed::default();
    }
    let LastRows { found, rows, part_nodes, .. } = kept;
    let there = found.all().filter(|app| app.cluster().is_some_and(|cluster| renewed.contains(&cluster)));
    let homes: BTreeSet<usize> = there.map(|app| app.home).chain(renewed.iter().copied()).collect();
    let is_concerned = |row: &&KeptRow| {
        let home = row.declaring.home(found);
        renewed.contains(&row.cluster) || home.is_none_or(|home| homes.contains(&home))
    };
    let is_of_home = |part: &&DeclaredPart| {
        let (DeclaredPart::Object(home, _) | DeclaredPart::ArgoHomes(home) | DeclaredPart::Helm(home)) = part;
        homes.contains(home)
    };
    Renewed {
        rows: rows.iter().filter(is_concerned).map(|row| row.number).collect(),
        parts: part_nodes.keys().filter(is_of_home).cloned().collect(),
    }
}
