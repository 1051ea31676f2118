// Adds to logs what a later reading brought, of which a part may be known.
import type { ContainerLog, LogText } from "../api/client";

/** Lines that are kept of each log, and logs of containers that are kept, those that were not read last included. */
const MOST = 2000;
const MOST_LOGS = 40;

/** The number of lines from which on a reading may have left out some. */
const FULL = 1000;

const nameOf = ({ subject: { pod, container } }: ContainerLog) => `${pod}/${container}`;

/** The time of a line with nine digits after the point, so that texts compare as times do. */
const stamp = ({ at }: LogText) => at.replace(/(?:\.(\d+))?Z$/, (_, digits: string | undefined) => `.${(digits ?? "").padEnd(9, "0")}Z`);

/** The lines of `newer` that come after the last one of `known`. Lines of the very same time are told apart by their number. */
function following(known: LogText[], newer: LogText[]): LogText[] {
  const last = known.at(-1);
  if (!last) return newer;
  const time = stamp(last);
  const same = known.filter((line) => stamp(line) === time).length;
  let seen = 0;
  const added = newer.filter((line) => {
    const own = stamp(line);
    if (own === time) return ++seen > same;
    return own > time;
  });
  const [first] = added;
  // A reading overlaps what is known, unless more was written than it brings.
  const isGap = first && !newer.some((line) => stamp(line) <= time) && newer.length >= FULL;
  return isGap ? [{ ...first, isAfterGap: true }, ...added.slice(1)] : added;
}

/** Returns the logs of `known` with the further lines of `newer`, and after them those of new containers. */
export function merged(known: ContainerLog[], newer: ContainerLog[]): ContainerLog[] {
  const all = new Map(newer.map((log) => [nameOf(log), log]));
  const grown = known.map((log) => {
    const now = all.get(nameOf(log));
    all.delete(nameOf(log));
    const lines = now ? following(log.lines, now.lines) : [];
    if (now && !lines.length && now.failure === log.failure) return log;
    return now ? { ...log, subject: now.subject, failure: now.failure, lines: [...log.lines, ...lines].slice(-MOST) } : log;
  });
  return [...grown, ...all.values()].slice(-MOST_LOGS);
}
