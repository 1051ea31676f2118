// The home: what is wrong, where, since when, in the order in which it should be looked at.
import { Show } from "solid-js";
import { hub } from "../../api/client";
import type { Attention as AttentionAnswer } from "../../api/types";
import { createAnswer } from "../../lib/answer";
import { clusters as clusterCounts, hubAway } from "../../live/live";
import { createHeld, createHold } from "../../lib/held";
import { params } from "../../lib/router";
import { hubNow } from "../../lib/clock";
import { clockTime, count, number } from "../../lib/text";
import { Moved } from "../../parts/Moved";
import { Announce, CoverNote, ErrorNote, Loading, overviewCommand, ViewCommand } from "../../parts/Notes";
import { Changes } from "./Changes";
import { type Cause, Causes, causesOf } from "./Entry";
import { FleetCounts } from "./FleetCounts";
import { LostClusters } from "./LostClusters";

/** Causes worth a look, beside lost clusters, which have a list of their own. */
const groupsOf = (items: Cause[]) => ({
  errors: items.filter((one) => one.severity === "error" && one.axis !== "freshness"),
  waiting: items.filter((one) => one.severity === "waiting" && one.axis !== "freshness"),
  notices: items.filter((one) => one.severity === "notice"),
});

function sentence(data: AttentionAnswer, lost: number, stale: number, now: number): string {
  const silent = data.items.filter((one) => one.axis === "freshness" && one.severity !== "notice");
  const causes = data.items.filter((one) => one.severity !== "notice" && one.axis !== "freshness");
  const affected = causes.reduce((sum, one) => sum + one.count, 0);
  const parts: string[] = [];
  if (causes.length) {
    const names = new Set(causes.flatMap((one) => one.clusters));
    const where = causes.every((one) => one.clusterCount <= 5) ? ` in ${count(names.size, "cluster")}` : "";
    const n = data.total > data.items.length ? `More than ${number(causes.length)} problems` : count(causes.length, "problem");
    parts.push(`${n} ${causes.length === 1 ? "affects" : "affect"} ${number(affected)} of ${count(data.apps, "app")}${where}`);
  } else if (!silent.length && data.state === "complete") {
    return `All ${count(data.apps, "app")} in ${count(data.clusters, "cluster")} are well.`;
  } else parts.push(`No problem is known in ${count(data.apps, "app")}`);
  if (lost) {
    const since = silent.map((one) => one.since).filter((one): one is string => !!one).sort()[0];
    parts.push(`${count(lost, "cluster is", "clusters are")} lost${since ? ` since ${clockTime(since, now)}` : ""}`);
  }
  if (stale) parts.push(`${count(stale, "cluster is", "clusters are")} stale`);
  return `${parts.join("; ")}.`;
}

export function Attention() {
  const scope = () => params("cluster");
  const [answer, again] = createAnswer(
    () => ({ cluster: scope() }),
    async (key, signal) => {
      const data = await hub.attention({ ...key, limit: 100 }, signal);
      return { ...data, items: causesOf(data.items) };
    },
    { every: 1000 },
  );
  const hold = createHold();
  const held = createHeld(() => answer.data?.items as Cause[] | undefined, hold.isHeld);
  const groups = () => groupsOf(held.items());
  const headline = () => {
    const data = answer.data;
    if (!data) return "";
    const text = sentence(data, clusterCounts()?.lost ?? 0, clusterCounts()?.stale ?? 0, hubNow());
    return hubAway() ? `Before the hub went away: ${text.charAt(0).toLowerCase()}${text.slice(1)}` : text;
  };

  return (
    <div class="view attention">
      <header class="view-head">
        <h1>{headline() || "Needs attention"}</h1>
        <ViewCommand text={overviewCommand()} />
      </header>
      <Announce text={headline()} />
      <ErrorNote error={answer.error} what="What needs attention" retry={again} />
      <Show when={answer.data} fallback={<Show when={!answer.error}><Loading what="the problems of the fleet" /></Show>}>
        {(data) => (
          <div class="attention-columns">
            <div class="attention-main" {...hold.handlers}>
              <Moved rows={held.moved()} reorder={held.release} />
              <CoverNote state={data().state} missing={data().missing.filter((one) => one.state !== "stale")} omitted={data().missingOmitted} />
              <Causes title="Problems" entries={groups().errors} count={groups().errors.length} fleet={data().clusters} hasLeft={held.hasLeft} />
              <Causes title="Waiting" entries={groups().waiting} count={groups().waiting.length} fleet={data().clusters} hasLeft={held.hasLeft} />
              <LostClusters isHeld={hold.isHeld} />
              <Causes title="Notices" entries={groups().notices} count={groups().notices.length} fleet={data().clusters} hasLeft={held.hasLeft} />
              <Show when={!data().items.length && data().state === "complete"}>
                <p class="all-well muted">Nothing needs attention. What changes appears here by itself.</p>
              </Show>
            </div>
            <aside class="attention-aside" aria-label="The fleet">
              <FleetCounts scope={scope()} />
              <Changes scope={scope()} />
            </aside>
          </div>
        )}
      </Show>
    </div>
  );
}
