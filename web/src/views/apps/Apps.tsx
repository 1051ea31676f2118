// All apps in all clusters: filtered, sorted or grouped by the address.
import { createEffect, createSignal, on, Show } from "solid-js";
import { hub } from "../../api/client";
import { createAnswer } from "../../lib/answer";
import { command, listFlags } from "../../lib/command";
import { counts as fleetCounts, hubAway } from "../../live/live";
import { useKeys } from "../../lib/keys";
import { go, param, withQuery } from "../../lib/router";
import { count, number } from "../../lib/text";
import { AXES } from "../../lib/words";
import { ViewCommand } from "../../parts/Notes";
import { Refused } from "../../parts/Refused";
import { AppTable } from "./AppTable";
import { FilterBar } from "./FilterBar";
import { FILTER_WORDS, type FilterName, type Filters, GROUPS, groupTitle, labelGroup, readFilters, SORTS, toParams } from "./filters";
import { Groups } from "./Groups";

/** The filters of the address, without those that the hub refused, which are named instead. */
function createFilters() {
  const [refused, setRefused] = createSignal<{ name: FilterName; why: string }[]>([]);
  const all = () => readFilters();
  // A corrected address is tried anew.
  createEffect(on(() => JSON.stringify(all()), () => setRefused([]), { defer: true }));
  const filters = (): Filters => {
    const used = all();
    for (const { name } of refused()) delete used[name];
    return used;
  };
  const refuse = (name: string, why: string) =>
    setRefused((list) => (list.some((one) => one.name === name) || !(name in FILTER_WORDS) ? list : [...list, { name: name as FilterName, why }]));
  return { all, filters, refused, refuse };
}

export function Apps() {
  const { all, filters, refused, refuse } = createFilters();
  const known = (name: string, words: object) => { const value = param(name); return value !== undefined && value in words ? value : undefined; };
  const groupBy = () => { const value = param("group-by"); return value !== undefined && groupTitle(value) ? value : undefined; };
  const sort = () => known("sort", SORTS) ?? "status";
  const unknown = () => [
    ...(param("group-by") && !groupBy() ? [{ name: "group-by", title: "The grouping", why: `'${param("group-by")}' is not one; use one of ${Object.keys(GROUPS).join(", ")}, or ${labelGroup("LABEL")}` }] : []),
    ...(param("sort") && param("sort") !== sort() ? [{ name: "sort", title: "The order", why: `'${param("sort")}' is not one; use one of ${Object.keys(SORTS).join(", ")}` }] : []),
    ...refused().map(({ name, why }) => ({ name, title: `The filter ${FILTER_WORDS[name]}`, why })),
  ];
  const [summary] = createAnswer(
    () => toParams(filters()),
    (key, signal) => hub.groups({ ...key, "group-by": "status", limit: 20 }, signal),
    { every: 1000 },
  );
  useKeys("Apps", [
    { keys: "z", what: "Problems only", act: () => go(withQuery({ problems: filters().problems ? undefined : [...AXES] }), { replace: true }) },
  ]);
  const shown = () => summary.data?.items.reduce((sum, one) => sum + one.apps, 0) ?? 0;
  const bad = () => summary.data?.items.reduce((sum, one) => sum + one.problems, 0) ?? 0;
  const sentence = () => {
    const whole = fleetCounts()?.total;
    if (!summary.data) return "Apps";
    const isFiltered = Object.keys(filters()).length > 0;
    const of = isFiltered && whole !== undefined ? `${number(shown())} of ${count(whole, "app")} ${shown() === 1 ? "matches" : "match"}` : count(shown(), "app");
    if (isFiltered && shown() === 0 && summary.data.state === "complete") return `No app matches, of ${number(whole ?? 0)}.`;
    const where = isFiltered ? "" : ` in ${count(summary.data.clusters, "cluster")}`;
    return `${of}${where}; ${bad() ? `${number(bad())} ${bad() === 1 ? "has a problem" : "have problems"}` : summary.data.state === "complete" ? "none has a problem" : "no problem is known yet"}${hubAway() ? ", as last known" : ""}.`;
  };
  const text = () =>
    command("get", "apps", ...listFlags({ ...(all() as Record<string, string[]>), ...(groupBy() ? {} : { sort: [sort()] }) }));

  return (
    <div class="view list-view">
      <header class="view-head">
        <h1>{sentence()}</h1>
        <ViewCommand text={text()} />
      </header>
      <FilterBar filters={all()} />
      <Refused list={unknown()} />
      <Show when={groupBy()} fallback={<AppTable filters={filters()} sort={sort()} refuse={refuse} />}>
        {(by) => <Groups by={by()} filters={filters()} refuse={refuse} />}
      </Show>
    </div>
  );
}
