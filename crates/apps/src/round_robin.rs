//! A fair order for a list of which only the start is shown.

use std::collections::HashMap;

/// Sorts items so that their namespaces take turns: the first item of each namespace, then the second of each, and so
/// on.
///
/// An author in one namespace, who can make any number of items with any names, thus displaces no items of others.
/// Items of one turn keep their order.
pub fn round_robin<T>(items: Vec<T>, namespace: impl Fn(&T) -> &str) -> Vec<T> {
    let mut numbers: HashMap<String, usize> = HashMap::new();
    let mut turn = |item: &T| {
        let namespace = namespace(item);
        if let Some(number) = numbers.get_mut(namespace) {
            *number += 1;
            return *number;
        }
        numbers.insert(namespace.to_owned(), 0);
        0
    };
    let mut items: Vec<(usize, T)> = items.into_iter().map(|item| (turn(&item), item)).collect();
    items.sort_by_key(|(turn, _)| *turn);
    items.into_iter().map(|(_, item)| item).collect()
}

#[cfg(test)]
mod tests {
    use super::round_robin;

    #[test]
    fn namespaces_take_turns() {
        let items = vec![("a", 1), ("a", 2), ("a", 3), ("b", 1), ("c", 1), ("c", 2)];
        assert_eq!(
            round_robin(items, |item| item.0),
            [("a", 1), ("b", 1), ("c", 1), ("a", 2), ("c", 2), ("a", 3)]
        );
    }
}
