/**
 * Counts the rows that come, go or take another place between two orders. Rows that only shift because others did are
 * not counted: of those in both orders, the longest run that keeps its order stays.
 */
export function movedRows(before: readonly string[], now: readonly string[]): number {
  const places = new Map(before.map((id, index) => [id, index]));
  const kept = now.map((id) => places.get(id)).filter((place): place is number => place !== undefined);
  // The smallest last place of a rising run of each length.
  const ends: number[] = [];
  for (const place of kept) {
    let low = 0;
    let high = ends.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((ends[middle] ?? 0) < place) low = middle + 1;
      else high = middle;
    }
    ends[low] = place;
  }
  const [come, gone] = [now.length - kept.length, before.length - kept.length];
  // A page that is full loses a row at its end for each that comes: that is one change, not two.
  return Math.max(come, gone) + (kept.length - ends.length);
}
