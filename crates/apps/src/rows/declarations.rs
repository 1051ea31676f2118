//! Dependency tracking: from declarations that were read again to rows and label groups.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use taffrail_object::ObjectKey;

use super::changes::RowLog;
use super::{Declaring, LastRows, Plan, Subject};
use crate::declaration::Declaration;
use crate::delivery::most_apps::ExcessApps;
use crate::delivery::{Declarations, DeclaredPart};

/// Updates the nodes of the kept declarations after some were read or dropped; returns how many were read.
pub(super) fn note_parts(kept: &mut LastRows) -> usize {
    let LastRows { parts, part_nodes, graph, .. } = kept;
    let (gone, fresh) = parts.take_changes();
    for node in gone.iter().filter_map(|part| part_nodes.remove(part)) {
        graph.remove(node);
    }
    let number = fresh.len();
    for (part, asked) in fresh {
        match part_nodes.get(&part) {
            Some(node) => graph.set(*node, asked),
            None => {
                let node = graph.add(Subject::Declared(part.clone()), asked);
                part_nodes.insert(part, node);
            }
        }
    }
    number
}

/// Records in `changed` the rows whose declaring objects changed: attributes that a row does not show, such as labels,
/// may differ too.
pub(super) fn note_declared(kept: &LastRows, parts: &[DeclaredPart], changed: &mut RowLog) {
    let objects: HashSet<(usize, &ObjectKey)> = (parts.iter())
        .filter_map(|part| match part {
            DeclaredPart::Object(home, key) => Some((*home, key)),
            _ => None,
        })
        .collect();
    if objects.is_empty() {
        return;
    }
    for row in &kept.rows {
        let Declaring::Tool(place) = row.declaring else { continue };
        let Some(app) = kept.found.apps.get(place) else { continue };
        if app.declaring.as_ref().is_some_and(|key| objects.contains(&(app.home, key))) {
            changed.note(row.number);
        }
    }
}

/// Matches the rows with the new declarations of the tools, which replace `old`; adds to `plan` the rows to
/// add, remove and judge again.
pub(super) fn reconcile(kept: &mut LastRows, old: &Declarations, plan: &mut Plan) {
    let LastRows { found, rows, .. } = kept;
    let name = |app: &Declaration| {
        let cluster = app.cluster().unwrap_or(app.home);
        (app.home, cluster, app.delivery, app.namespace.clone(), app.name.clone())
    };
    let is_one = |(before, after): (&Arc<Declaration>, &Arc<Declaration>)| {
        Arc::ptr_eq(before, after) || name(before) == name(after)
    };
    // The new index of each old declaration, where it is not the same.
    let mut taken: Option<HashMap<usize, usize>> = None;
    if old.apps.len() != found.apps.len() || !old.apps.iter().zip(&found.apps).all(is_one) {
        let mut known: HashMap<_, VecDeque<usize>> = HashMap::new();
        for (place, app) in old.all().enumerate() {
            known.entry(name(app)).or_default().push_back(place);
        }
        let taken = taken.insert(HashMap::new());
        for (place, app) in found.all().enumerate() {
            match known.get_mut(&name(app)).and_then(VecDeque::pop_front) {
                Some(old) => drop(taken.insert(old, place)),
                None => plan.fresh.push(Declaring::Tool(place)),
            }
        }
    }
    let title = |found: &Declarations, app: &Declaration| Some(name(found.get(app.delivered_by?)?));
    for row in rows {
        let Declaring::Tool(before) = &mut row.declaring else { continue };
        let place = taken.as_ref().map_or(Some(*before), |taken| taken.get(before).copied());
        let Some(place) = place else {
            plan.gone.insert(row.number);
            continue;
        };
        let both = old.apps.get(*before).zip(found.apps.get(place));
        *before = place;
        let is_same = both.is_some_and(|(before, after)| {
            (Arc::ptr_eq(before, after) || before.says_as(after)) && title(old, before) == title(found, after)
        });
        if !is_same {
            plan.again.insert(row.number);
        }
    }
}

/// Returns true if the app of a declaration has no row because its cluster has too many apps.
pub(super) fn is_left_out(left_out: &ExcessApps, declaring: &Declaring) -> bool {
    match declaring {
        Declaring::Tool(place) => left_out.has_app(*place),
        Declaring::Labels(name) => left_out.has_group(name),
    }
}

/// Decides again which apps are left out because their cluster has too many, and adds to `plan` the rows to add and to
/// remove. Returns true if any apps were left out before or are left out now.
pub(super) fn leave_out(kept: &mut LastRows, plan: &mut Plan) -> bool {
    let left_out = ExcessApps::of(&kept.found, &kept.groups);
    let before = std::mem::replace(&mut kept.left_out, left_out);
    let LastRows { left_out, rows, found, groups, .. } = kept;
    if before.is_empty() && left_out.is_empty() {
        return false;
    }
    let gone = rows.iter().filter(|row| is_left_out(left_out, &row.declaring)).map(|row| row.number);
    plan.gone.extend(gone);
    let with_rows: HashSet<&Declaring> =
        rows.iter().filter(|row| !plan.gone.contains(&row.number)).map(|row| &row.declaring).collect();
    let of_groups = groups.iter().enumerate().flat_map(|(home, groups)| {
        let name = move |(namespace, name): (&str, &str)| (home, namespace.to_owned(), name.to_owned());
        groups.names().map(name).map(Declaring::Labels)
    });
    let all = (0..found.apps.len()).map(Declaring::Tool).chain(of_groups);
    plan.fresh = all.filter(|it| !is_left_out(left_out, it) && !with_rows.contains(it)).collect();
    true
}

/// Returns the objects that an app claims in only one of two lists of declarations, each with the index of its
/// cluster.
///
/// Returns `None` if the lists differ in more than the objects that apps claim: then any object may belong to another
/// app than before.
pub(super) fn moved_claims(
    one: &[Arc<Declaration>],
    other: &[Arc<Declaration>],
) -> Option<Vec<(usize, ObjectKey)>> {
    if one.len() != other.len() {
        return None;
    }
    let mut moved = Vec::new();
    for (one, other) in one.iter().zip(other).filter(|(one, other)| !Arc::ptr_eq(one, other)) {
        if !one.is_claimant_as(other) {
            return None;
        }
        let Some(cluster) = one.cluster() else { continue };
        let claims = [one, other].map(|app| app.objects.iter().chain(&app.claimant.hooks));
        let [before, after] = claims.map(HashSet::<&ObjectKey>::from_iter);
        moved.extend(before.symmetric_difference(&after).map(|key| (cluster, (*key).clone())));
    }
    Some(moved)
}
