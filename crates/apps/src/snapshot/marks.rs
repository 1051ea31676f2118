//! The results of lists, separate for metadata and whole objects: a list of metadata does not count as one of whole
//! objects.

use std::collections::{BTreeMap, HashSet};

use taffrail_object::Projection;

use crate::reads::read::{Read, Target};

/// The results of a read of metadata and of the same read of whole objects, kept apart because neither replaces the
/// other.
#[derive(Debug, Clone)]
pub(super) struct ByBody<T> {
    whole: Option<T>,
    metadata: Option<T>,
}

impl<T> Default for ByBody<T> {
    fn default() -> ByBody<T> {
        ByBody { whole: None, metadata: None }
    }
}

impl<T> ByBody<T> {
    pub(super) fn set(&mut self, projection: Projection, value: T) {
        *self.slot(projection) = Some(value);
    }

    fn slot(&mut self, projection: Projection) -> &mut Option<T> {
        match projection {
            Projection::Full => &mut self.whole,
            Projection::Metadata => &mut self.metadata,
        }
    }

    /// Lists the results of reads with at least the projection `wanted`, the result of the whole read first.
    pub(super) fn at_least(&self, wanted: Projection) -> impl Iterator<Item = &T> {
        self.whole.iter().chain(self.metadata.iter().filter(move |_| wanted == Projection::Metadata))
    }

    /// Returns the result of the read of metadata; `None` if there was none.
    pub(super) fn metadata(&self) -> Option<&T> {
        self.metadata.as_ref()
    }

    /// Returns the result of the read with the other projection than `projection`; `None` if there was none.
    pub(super) fn beside(&self, projection: Projection) -> Option<&T> {
        match projection {
            Projection::Full => self.metadata.as_ref(),
            Projection::Metadata => self.whole.as_ref(),
        }
    }

    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.whole.iter_mut().chain(self.metadata.iter_mut())
    }
}

/// The result of listing a kind in one namespace, or in all.
#[derive(Debug, Clone)]
pub(super) enum ListOutcome {
    /// All objects of the kind were read.
    Listed,
    /// The objects that a selector matches were read.
    Selected,
    /// The server does not serve the kind in this version.
    NotServed { version: String },
    /// The list failed.
    Failed {
        message: String,
        /// True if the server denied access, for metadata and whole objects alike.
        is_refused: bool,
    },
}

impl ListOutcome {
    fn is_listed(&self) -> bool {
        matches!(self, ListOutcome::Listed)
    }

    /// Returns true if the result holds for metadata and whole objects alike.
    fn is_of_any_body(&self) -> bool {
        matches!(self, ListOutcome::NotServed { .. } | ListOutcome::Failed { is_refused: true, .. })
    }
}

/// The result of a list that was removed for a time.
#[derive(Debug, Clone, Default)]
pub(super) struct TakenOut {
    /// True if the list has a selector.
    is_selected: bool,
    outcome: Option<ListOutcome>,
}

/// The results of all lists of one kind.
#[derive(Debug, Clone, Default)]
pub(super) struct KindMarks {
    everywhere: ByBody<ListOutcome>,
    namespaces: BTreeMap<String, ByBody<ListOutcome>>,
    /// The results of failed lists of all namespaces with a selector. They say nothing about lists in one
    /// namespace, which may be allowed.
    parts: ByBody<ListOutcome>,
    /// The lists that were made with selectors: namespace (`None`: all), selector and projection.
    selections: HashSet<(Option<String>, Target, Projection)>,
}

impl KindMarks {
    /// Returns the result of the list that covers a namespace (`None`: all) with at least the projection `wanted`;
    /// `None` if no list does.
    ///
    /// A successful list of all objects takes precedence, then the list nearest to the namespace, then a list of
    /// metadata that was refused or not served, as whole objects would be too; for all namespaces, at last a failed
    /// list with a selector.
    pub(super) fn find(&self, namespace: Option<&str>, wanted: Projection) -> Option<&ListOutcome> {
        let own = namespace.and_then(|namespace| self.namespaces.get(namespace));
        let places = || own.into_iter().chain([&self.everywhere]);
        let marks = || places().flat_map(|place| place.at_least(wanted));
        let of_any_body = || places().filter_map(ByBody::metadata).find(|mark| mark.is_of_any_body());
        let part = || self.parts.at_least(wanted).next().filter(|_| namespace.is_none());
        marks().find(|mark| mark.is_listed()).or_else(|| marks().next()).or_else(of_any_body).or_else(part)
    }

    /// Records `mark` as the result of the list `read`, which replaces an earlier result for the same namespace and
    /// projection; but the result of a list with a selector does not replace that of a successful list of all objects.
    pub(super) fn take(&mut self, read: &Read, mark: ListOutcome) {
        let Target::List { labels, fields } = &read.target else { return };
        let is_part = labels.is_some() || fields.is_some();
        if is_part {
            self.selections.insert((read.namespace.clone(), read.target.clone(), read.projection));
        }
        let mark = if is_part && mark.is_listed() { ListOutcome::Selected } else { mark };
        // A list of a part does not replace the result of a list of all.
        let known = self.place(read.namespace.as_deref());
        if is_part && known.is_some_and(|known| known.at_least(read.projection).any(ListOutcome::is_listed)) {
            return;
        }
        match &read.namespace {
            None if is_part && matches!(mark, ListOutcome::Failed { .. }) => {
                self.parts.set(read.projection, mark)
            }
            None => {
                // A list of all objects replaces the selected ones in namespaces.
                if mark.is_listed() {
                    self.forget_selected(read.projection);
                }
                self.everywhere.set(read.projection, mark);
            }
            Some(namespace) => {
                self.namespaces.entry(namespace.clone()).or_default().set(read.projection, mark)
            }
        }
    }

    /// Removes the result of a list in one namespace, unless another list with a selector shares it; returns it for
    /// [`KindMarks::put_back`].
    pub(super) fn take_out(&mut self, read: &Read) -> TakenOut {
        let (Target::List { labels, fields }, Some(namespace)) = (&read.target, &read.namespace) else {
            return TakenOut::default();
        };
        let is_part = labels.is_some() || fields.is_some();
        let selection = (read.namespace.clone(), read.target.clone(), read.projection);
        let is_selected = is_part && self.selections.remove(&selection);
        let is_beside = |(own, _, projection): &(Option<String>, Target, Projection)| {
            own.as_ref() == Some(namespace) && *projection == read.projection
        };
        // The lists of several parts have one result.
        let is_shared = is_part && self.selections.iter().any(is_beside);
        let Some(place) = self.namespaces.get_mut(namespace).filter(|_| !is_shared) else {
            return TakenOut { is_selected, outcome: None };
        };
        let outcome = place.slot(read.projection).take_if(|mark| !is_part || !mark.is_listed());
        if place.values_mut().next().is_none() {
            self.namespaces.remove(namespace);
        }
        TakenOut { is_selected, outcome }
    }

    /// Puts back what [`KindMarks::take_out`] removed.
    pub(super) fn put_back(&mut self, read: &Read, taken: TakenOut) {
        if taken.is_selected {
            self.selections.insert((read.namespace.clone(), read.target.clone(), read.projection));
        }
        if let (Some(namespace), Some(outcome)) = (&read.namespace, taken.outcome) {
            self.namespaces.entry(namespace.clone()).or_default().set(read.projection, outcome);
        }
    }

    fn forget_selected(&mut self, listed: Projection) {
        let bodies: &[Projection] = match listed {
            Projection::Full => &[Projection::Full, Projection::Metadata],
            Projection::Metadata => &[Projection::Metadata],
        };
        self.namespaces.retain(|_, place| {
            for projection in bodies {
                place.slot(*projection).take_if(|mark| matches!(mark, ListOutcome::Selected));
            }
            place.whole.is_some() || place.metadata.is_some()
        });
    }

    fn place(&self, namespace: Option<&str>) -> Option<&ByBody<ListOutcome>> {
        match namespace {
            None => Some(&self.everywhere),
            Some(namespace) => self.namespaces.get(namespace),
        }
    }

    /// Returns the error message of the last list in the same namespace (or in all) with the other projection; `None`
    /// if that did not fail.
    pub(super) fn failure_beside(&self, read: &Read) -> Option<&str> {
        match self.place(read.namespace.as_deref())?.beside(read.projection)? {
            ListOutcome::Failed { message, .. } => Some(message),
            _ => None,
        }
    }

    /// Replaces all results by a failure with the message `why`.
    pub(super) fn fail(&mut self, why: &str) {
        let failed = || ListOutcome::Failed { message: why.to_owned(), is_refused: false };
        self.parts = ByBody::default();
        self.everywhere = ByBody { whole: Some(failed()), metadata: Some(failed()) };
        self.namespaces.values_mut().flat_map(ByBody::values_mut).for_each(|mark| *mark = failed());
    }

    /// Returns true if the kind was listed in a single namespace; a failed list counts.
    pub(super) fn is_listed_in_some(&self) -> bool {
        !self.namespaces.is_empty()
    }

    /// Returns true if a list with exactly this `target` (selector) in this namespace (`None`: all) was made with at
    /// least the projection `wanted`; a failed list counts.
    pub(super) fn was_selected(&self, namespace: Option<&str>, target: &Target, wanted: Projection) -> bool {
        let was = |projection| {
            self.selections.contains(&(namespace.map(str::to_owned), target.clone(), projection))
        };
        was(Projection::Full) || wanted == Projection::Metadata && was(Projection::Metadata)
    }

    /// Returns true if a list with another `target` (selector) was made; a failed list counts.
    pub(super) fn has_selection_but(&self, target: &Target) -> bool {
        self.selections.iter().any(|(_, own, _)| own != target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_that_is_refused_everywhere_says_nothing_of_one_namespace() {
        let part = Target::List { labels: Some("app=web".to_owned()), fields: None };
        let read = Read {
            group: String::new(),
            version: "v1".to_owned(),
            kind: "Pod".to_owned(),
            plural: "pods".to_owned(),
            namespace: None,
            projection: Projection::Full,
            target: part,
        };
        let mut marks = KindMarks::default();
        marks.take(&read, ListOutcome::Failed { message: "forbidden".to_owned(), is_refused: true });
        assert!(matches!(marks.find(None, Projection::Full), Some(ListOutcome::Failed { .. })));
        assert!(marks.find(Some("shop"), Projection::Full).is_none());
        let whole = Read { target: Target::List { labels: None, fields: None }, ..read };
        marks.take(&whole, ListOutcome::Failed { message: "forbidden".to_owned(), is_refused: true });
        assert!(matches!(marks.find(Some("shop"), Projection::Full), Some(ListOutcome::Failed { .. })));
    }
}
