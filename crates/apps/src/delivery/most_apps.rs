//! A limit on the number of apps of one cluster, because each of them is a row in every view.
//!
//! Namespaces share the limit evenly, so that an author who makes apps in one takes no row from the others. Within a
//! namespace label groups are left out first, because an app of a tool that is left out may declare any of their
//! objects.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use taffrail_object::ObjectKeyRef;

use super::labels::LabelGroups;
use super::{DECLARING, Declarations, config_sync, resource_group};
use crate::fleet::Fleet;
use crate::noting::keys_of;
use crate::objects::Objects;
use crate::scope::{Scope, ScopeError};

/// The maximum number of apps that one cluster declares and that are shown; of more, the namespaces with the most apps
/// lose some, see [`Shares`].
pub(crate) const MAX_APPS: usize = 20_000;

/// The maximum number of namespaces of a cluster for which apps that were left out are reported one by one; the last
/// error counts the others.
const MAX_ERRORS: usize = 50;

/// The numbers of apps by namespace.
pub(crate) type AppNumbers = BTreeMap<String, usize>;

/// The number of apps that each namespace of a cluster may still have; namespaces that lose none are not listed.
#[derive(Debug, Default)]
pub(super) struct Shares(AppNumbers);

impl Shares {
    /// Divides `most` places among namespaces with these `numbers` of apps: evenly, where what a namespace does not
    /// need is divided among the others.
    fn of(numbers: &AppNumbers, most: usize) -> Shares {
        let mut sorted: Vec<usize> = numbers.values().copied().collect();
        sorted.sort_unstable();
        let (mut left, mut waiting) = (most, sorted.len());
        for number in sorted {
            if number > left / waiting {
                break;
            }
            (left, waiting) = (left - number, waiting - 1);
        }
        if waiting == 0 {
            return Shares::default();
        }
        let (level, mut rest) = (left / waiting, left % waiting);
        let mut shares = AppNumbers::new();
        for (namespace, number) in numbers.iter().filter(|(_, number)| **number > level) {
            let share = level + usize::from(rest > 0);
            rest = rest.saturating_sub(1);
            if share < *number {
                shares.insert(namespace.clone(), share);
            }
        }
        Shares(shares)
    }

    /// Divides [`MAX_APPS`] places among the namespaces of a cluster, by the number of objects that declare an app.
    pub(super) fn of_declaring(objects: &dyn Objects) -> Shares {
        let kinds = || DECLARING.iter().copied().flatten();
        let all = || kinds().flat_map(|(group, kind)| keys_of(objects, group, kind));
        if all().count() <= MAX_APPS {
            return Shares::default();
        }
        let mut numbers = AppNumbers::new();
        for observed in all().filter(|observed| declares(objects, observed.key)) {
            count(&mut numbers, observed.key.namespace, 1);
        }
        Shares::of(&numbers, MAX_APPS)
    }

    /// Divides [`MAX_APPS`] places among the namespaces of a cluster that has other apps in these `numbers`, which come
    /// first, and an app in each of `namespaces`.
    pub(super) fn beside<'n>(numbers: &AppNumbers, namespaces: impl Iterator<Item = &'n str>) -> Shares {
        let mut all = numbers.clone();
        namespaces.for_each(|namespace| count(&mut all, namespace, 1));
        let Shares(mut shares) = Shares::of(&all, MAX_APPS);
        for (namespace, share) in &mut shares {
            *share = share.saturating_sub(numbers.get(namespace).copied().unwrap_or_default());
        }
        Shares(shares)
    }

    /// Takes the place of one app; returns false if its namespace has none left.
    pub(super) fn take(&mut self, namespace: &str) -> bool {
        self.0.get_mut(namespace).is_none_or(|left| {
            let has_place = *left > 0;
            *left = left.saturating_sub(1);
            has_place
        })
    }

    /// Takes the place of the app that an object declares, if it declares one; returns false if its namespace has none
    /// left.
    pub(super) fn take_for(&mut self, objects: &dyn Objects, key: ObjectKeyRef<'_>) -> bool {
        self.0.is_empty() || !declares(objects, key) || self.take(key.namespace)
    }
}

/// Returns false for an inventory of Config Sync, which declares no app of its own.
fn declares(objects: &dyn Objects, key: ObjectKeyRef<'_>) -> bool {
    key.kind != resource_group::KIND || !config_sync::owns(objects, key)
}

/// Adds `more` to the number of a namespace.
pub(super) fn count(numbers: &mut AppNumbers, namespace: &str, more: usize) {
    match numbers.get_mut(namespace) {
        Some(number) => *number = number.saturating_add(more),
        None => drop(numbers.insert(namespace.to_owned(), more)),
    }
}

/// The apps of a fleet that are left out, because their clusters declare more than [`MAX_APPS`].
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ExcessApps {
    /// The indices of apps of tools.
    apps: HashSet<usize>,
    /// The label groups, each by index of the cluster, namespace and name.
    groups: HashSet<(usize, String, String)>,
    /// The namespaces of these apps, each with the index of its cluster.
    pub(crate) namespaces: BTreeSet<(usize, String)>,
    pub(crate) errors: Vec<(usize, ScopeError)>,
}

impl ExcessApps {
    /// Returns the apps to leave out of those that tools declare and of the label groups of each cluster with more than
    /// [`MAX_APPS`] of them: those beyond the share of their namespace; with an error for each of at most
    /// [`MAX_ERRORS`] namespaces.
    pub(crate) fn of(found: &Declarations, groups: &[LabelGroups]) -> ExcessApps {
        let mut left_out = ExcessApps::default();
        for (home, groups) in groups.iter().enumerate() {
            let declared = found.totals.get(home).copied().unwrap_or_default();
            if declared.saturating_add(groups.number()) <= MAX_APPS {
                continue;
            }
            let mut numbers = found.numbers(home);
            groups.names().for_each(|(namespace, _)| count(&mut numbers, namespace, 1));
            let mut shares = Shares::of(&numbers, MAX_APPS);
            left_out.report(home, &shares, &numbers);
            for (place, app) in found.apps.iter().enumerate().filter(|(_, app)| app.home == home) {
                if !shares.take(&app.namespace) {
                    left_out.apps.insert(place);
                }
            }
            for (namespace, name) in groups.names() {
                if !shares.take(namespace) {
                    left_out.groups.insert((home, namespace.to_owned(), name.to_owned()));
                }
            }
        }
        left_out
    }

    fn report(&mut self, home: usize, shares: &Shares, numbers: &AppNumbers) {
        self.namespaces.extend(shares.0.keys().map(|namespace| (home, namespace.clone())));
        let more = shares.0.len().saturating_sub(MAX_ERRORS);
        let told = shares.0.iter().take(MAX_ERRORS).enumerate().map(|(at, (namespace, share))| {
            let number = numbers.get(namespace).copied().unwrap_or_default();
            let lost = number.saturating_sub(*share);
            let mut message = format!(
                "namespace {namespace} has {number} apps, of which {lost} are left out: at most {MAX_APPS} apps of a \
                 cluster are shown, and the namespaces with the most apps lose theirs first"
            );
            if more > 0 && at + 1 == MAX_ERRORS {
                message.push_str(&format!("; the same in {more} more namespaces"));
            }
            let scope = Scope::Namespace(namespace.clone());
            (home, ScopeError { scope, reason: "OverLimit".to_owned(), message })
        });
        self.errors.extend(told);
    }

    /// Returns true if no app is left out.
    pub(crate) fn is_empty(&self) -> bool {
        self.namespaces.is_empty()
    }

    /// Returns true if the app of a tool with this index is left out.
    pub(crate) fn has_app(&self, place: usize) -> bool {
        self.apps.contains(&place)
    }

    /// Returns true if a label group (index of the cluster, namespace and name) is left out.
    pub(crate) fn has_group(&self, group: &(usize, String, String)) -> bool {
        self.groups.contains(group)
    }

    /// Returns the namespaces of the apps that are left out, each with the name of its cluster.
    pub(crate) fn names(&self, fleet: &Fleet<'_>) -> BTreeSet<(String, String)> {
        let name =
            |(home, namespace): &(usize, String)| (fleet.objects(*home).name().to_owned(), namespace.clone());
        self.namespaces.iter().map(name).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what each namespace keeps of its apps.
    fn kept(numbers: &[(&str, usize)], most: usize) -> Vec<usize> {
        let all = numbers.iter().map(|(name, number)| ((*name).to_owned(), *number)).collect();
        let Shares(shares) = Shares::of(&all, most);
        numbers.iter().map(|(name, number)| shares.get(*name).copied().unwrap_or(*number)).collect()
    }

    #[test]
    fn namespaces_share_the_limit_evenly() {
        assert!(kept(&[], 10).is_empty());
        assert_eq!(kept(&[("a", 4), ("b", 6)], 10), [4, 6], "within the limit");
        assert_eq!(kept(&[("a", 100), ("b", 3), ("c", 1)], 10), [6, 3, 1], "the largest loses");
        assert_eq!(kept(&[("a", 100), ("b", 50), ("c", 2)], 10), [4, 4, 2], "the largest lose alike");
        assert_eq!(kept(&[("a", 100), ("b", 50), ("c", 1)], 10), [5, 4, 1], "the rest goes by name");
        assert_eq!(kept(&[("a", 5), ("b", 4), ("c", 2)], 10), [4, 4, 2]);
        let many: Vec<String> = (0..20).map(|at| format!("n{at:02}")).collect();
        let many: Vec<(&str, usize)> = many.iter().map(|name| (&**name, 1)).collect();
        assert_eq!(kept(&many, 10).iter().sum::<usize>(), 10, "more namespaces than places");
    }

    #[test]
    fn apps_that_come_first_take_their_places_first() {
        let numbers: AppNumbers = [("a".to_owned(), MAX_APPS - 1)].into();
        let Shares(shares) = Shares::beside(&numbers, ["a", "a", "b"].into_iter());
        assert_eq!(shares, [("a".to_owned(), 0)].into());
    }
}
