// The one sentence that answers how an app is.
import type { AppRow } from "../../api/types";
import { hubNow } from "../../lib/clock";
import { age, count, number, plain, shortRevision } from "../../lib/text";
import { spaced, statusWord } from "../../lib/words";

export function sentenceOf(row: AppRow): string {
  const ago = (time: string) => age(hubNow() - Date.parse(time));
  const since = row.since ? ` for ${ago(row.since)}` : "";
  if (row.freshness.state !== "live") {
    const seen = row.freshness.observedAt ? ` for ${ago(row.freshness.observedAt)}` : "";
    return `Cluster ${plain(row.cluster)} is ${row.freshness.state}${seen}; the app was ${statusWord(row.health)} when it was last seen.`;
  }
  // Nobody read the objects, so their number is not known either.
  if (row.unobserved?.includes("objects")) {
    if (row.said) return `Its controller says that it is ${spaced(statusWord(row.health))}${since}; its objects were not read.`;
    if (row.health === "Unknown") return `Its objects in cluster ${plain(row.cluster)} are not observed.`;
  }
  const bad = row.objects - row.counts.Current;
  if (row.health !== "Current") {
    const worst = row.worst ? `${row.worst.kind} ${plain(row.worst.name)}` : "The app";
    const of = bad > 0 ? `; ${number(bad)} of ${count(row.objects, "declared object")} ${bad === 1 ? "is" : "are"} not ready` : "";
    return `${worst} is ${spaced(statusWord(row.health))}${since}${of}.`;
  }
  const problem = row.problem;
  if (problem?.axis === "check" && problem.severity !== "notice") return `All ${count(row.objects, "object")} are ready, but its check ${plain(problem.state)} is false${since}.`;
  if (problem && problem.severity !== "notice") return `All ${count(row.objects, "object")} are ready, but its ${problem.axis} is ${spaced(problem.state)}${since}.`;
  const at = row.sync.applied ? ` at ${shortRevision(row.sync.applied)}` : "";
  if (row.suspended) return `All ${count(row.objects, "object")} are ready${at}; the app is suspended.`;
  return row.objects === 1 ? `Its object is ready${at}.` : `All ${count(row.objects, "object")} are ready${at}.`;
}
