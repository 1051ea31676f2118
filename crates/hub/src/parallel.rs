//! Work on the parts of a list, on all processors.

use std::num::NonZeroUsize;
use std::thread::ScopedJoinHandle;

/// Splits `items` into as many parts as there are processors, each of at least `least` items, calls `work` with each on
/// a thread of its own, and returns the results in the order of the parts. A list of one part, or of none, stays on the
/// thread of the caller.
///
/// # Panics
///
/// Panics if `work` does.
pub(crate) fn in_parts<T: Sync, R: Send>(
    items: &[T],
    least: usize,
    work: impl Fn(&[T]) -> R + Sync,
) -> Vec<R> {
    let threads = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let threads = threads.min(items.len() / least.max(1));
    if threads < 2 {
        return vec![work(items)];
    }
    let work = &work;
    std::thread::scope(|scope| {
        let parts = items.chunks(items.len().div_ceil(threads));
        let running: Vec<_> = parts.map(|part| scope.spawn(move || work(part))).collect();
        let done = running.into_iter().map(ScopedJoinHandle::join);
        done.map(|result| result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_all_parts_come_in_order() {
        let items: Vec<usize> = (0..1_000).collect();
        for len in [0, 1, 2, 9, 1_000] {
            let parts = in_parts(&items[..len], 2, <[usize]>::to_vec);
            assert_eq!(parts.concat(), items[..len], "{len}");
            assert!(parts.iter().all(|part| parts.len() == 1 || part.len() >= 2), "{len}");
        }
    }
}
