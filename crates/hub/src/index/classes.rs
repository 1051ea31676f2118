//! The classes of the pairs of a cluster, each with the number of its pairs.

use rustc_hash::FxHashMap;

use super::pair::PairClass;

/// The number of classes up to which those without pairs are kept.
const MIN_CLASSES: usize = 64;

/// The classes of the pairs that a cluster shows. The number of a class is its index.
#[derive(Debug, Clone, Default)]
pub(crate) struct PairClasses(Vec<CountedClass>);

/// A class, and the number of its pairs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CountedClass {
    pub(crate) class: PairClass,
    pub(crate) pairs: usize,
}

/// Classes whose pairs are being counted.
#[derive(Debug, Default)]
pub(crate) struct ClassCounter {
    classes: PairClasses,
    numbers: FxHashMap<PairClass, u32>,
}

impl PairClasses {
    /// Returns true if most classes have no pairs any more, so that the pairs should be counted again.
    pub(crate) fn is_sparse(&self) -> bool {
        let used = self.0.iter().filter(|counted| counted.pairs > 0).count();
        self.0.len() > MIN_CLASSES && self.0.len() > 2 * used
    }

    /// Returns the class with this number; `None` if there is none.
    pub(crate) fn get(&self, number: u32) -> Option<&PairClass> {
        self.0.get(number as usize).map(|counted| &counted.class)
    }

    /// Iterates over all classes in the order of their numbers, those without pairs among them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &CountedClass> {
        self.0.iter()
    }
}

impl ClassCounter {
    /// Makes a counter that goes on from the counts of `classes`.
    pub(crate) fn of(classes: &PairClasses) -> ClassCounter {
        let numbers = (0..).zip(classes.iter()).map(|(number, counted)| (counted.class, number));
        ClassCounter { classes: classes.clone(), numbers: numbers.collect() }
    }

    /// Counts a pair of this class; returns the number of the class.
    pub(crate) fn add(&mut self, class: PairClass) -> u32 {
        let PairClasses(all) = &mut self.classes;
        let next = u32::try_from(all.len()).unwrap_or(u32::MAX);
        let number = *self.numbers.entry(class).or_insert(next);
        match all.get_mut(number as usize) {
            Some(counted) => counted.pairs += 1,
            None => all.push(CountedClass { class, pairs: 1 }),
        }
        number
    }

    /// Removes a pair of the class with this number from its count.
    pub(crate) fn remove(&mut self, number: u32) {
        if let Some(counted) = self.classes.0.get_mut(number as usize) {
            counted.pairs = counted.pairs.saturating_sub(1);
        }
    }

    /// Returns the classes with their counts.
    pub(crate) fn finish(mut self) -> PairClasses {
        self.classes.0.shrink_to_fit();
        self.classes
    }
}
