// The apps as they were at a past moment, from the history of the hub.
import { createEffect, For, Match, Show, Switch, untrack } from "solid-js";
import { hub } from "../../api/client";
import type { PastApp, Status } from "../../api/types";
import { createAnswer } from "../../lib/answer";
import { hubNow } from "../../lib/clock";
import { command, listFlags } from "../../lib/command";
import { createPaged } from "../../lib/paged";
import { narrow } from "../../lib/prefs";
import { refOf, refText, rowId } from "../../lib/refs";
import { go, param, params, place, withQuery } from "../../lib/router";
import { age, clockTime, count, exact, localInput, number } from "../../lib/text";
import { deliveryWord, spaced, STATUSES, statusWord } from "../../lib/words";
import { Glyph, SyncGlyph } from "../../parts/Glyph";
import { Cell, Grid, type GridColumn } from "../../parts/Grid";
import { PastMark } from "../../parts/Marks";
import { ErrorNote, ListFoot, Loading, Note, ViewCommand } from "../../parts/Notes";
import { Name, Text } from "../../parts/Text";
import { FilterText } from "../apps/FilterBar";

const PAGE = 100;
const MINUTE = 60_000;
/** How long ago the view begins if its address names no moment, and how long after the beginning of the history at least. */
const FIRST = 15 * MINUTE;
const SETTLED = 10_000;
const STEPS = [-60, -5, 5, 60];
const AGO: [string, number][] = [["15 min ago", 15], ["1 h ago", 60], ["6 h ago", 360], ["1 day ago", 1440]];

const iso = (millis: number) => new Date(millis).toISOString();
const toAgo = (minutes: number) => go(withQuery({ at: iso(hubNow() - minutes * MINUTE) }));

export default function Time() {
  const [range] = createAnswer(() => "range", async (_, signal) => {
    // Any answer tells the hub's time, and a moment after that is refused.
    await hub.clusters({ limit: 1 }, signal);
    const { historySince } = await hub.past({ at: iso(untrack(hubNow) - 1000), limit: 1 }, signal);
    return { since: Date.parse(historySince ?? "") };
  });
  const earliest = () => range.data && Math.min(range.data.since + SETTLED, untrack(hubNow) - 1000);
  createEffect(() => {
    const begun = earliest();
    if (!param("at") && begun) go(withQuery({ at: iso(Math.max(untrack(hubNow) - FIRST, begun)) }), { replace: true });
  });
  const at = () => param("at") ?? "";
  const isTime = () => !Number.isNaN(Date.parse(at()));
  const isAll = () => place().query.has("all");
  const statuses = () => param("status")?.split(",") ?? [];
  const scope = () => params("cluster");
  const question = () => ({
    at: at() || iso(untrack(hubNow) - 1000), cluster: scope(), text: param("text"), status: param("status"),
    problems: isAll() || statuses().length ? undefined : "",
  });
  // The past does not change, and to read it costs the hub a look at all that it keeps.
  const list = createPaged(question, rowId, (key, cursor, signal) => hub.past({ ...key, limit: PAGE, cursor }, signal), { every: undefined });
  const [then] = createAnswer(() => (at() ? { at: at(), cluster: scope() } : undefined), async (key, signal) => {
    const [all, bad] = await Promise.all([
      hub.past({ ...key, limit: 1 }, signal),
      hub.past({ ...key, problems: "", limit: 1 }, signal),
    ]);
    return { apps: all.total, bad: bad.total };
  });

  const total = () => list.total() ?? 0;
  const row = (index: number) => list.rows[list.order()[index] ?? ""];
  const href = (app: PastApp) => withQuery({ app: refText(refOf(app)), home: refOf(app).home, tab: "history" });
  const sentence = () => {
    const data = then.data;
    if (!data || !isTime()) return "The apps at a past moment";
    const when = `At ${clockTime(at(), hubNow())}, ${age(hubNow() - Date.parse(at()))} ago,`;
    if (!data.apps) return `${when} no app is recorded.`;
    return data.bad ? `${when} ${number(data.bad)} of ${count(data.apps, "app")} had a problem.` : `${when} none of ${count(data.apps, "app")} had a problem.`;
  };
  const toggle = (word: string) => {
    const next = statuses().includes(word) ? statuses().filter((one) => one !== word) : [...statuses(), word];
    go(withQuery({ status: next.length ? next.join(",") : undefined, all: undefined }));
  };
  const move = (minutes: number) => isTime() && go(withQuery({ at: iso(Math.min(Date.parse(at()) + minutes * MINUTE, hubNow())) }));
  const columns: GridColumn[] = [
    { name: "status", title: "Status then" },
    { name: "name", title: "App" },
    { name: "cluster", title: "Cluster" },
    { name: "message", title: "Problem then" },
    { name: "sync", title: "Sync then" },
    { name: "delivery", title: "Delivery" },
  ];

  return (
    <div class="view list-view">
      <header class="view-head">
        <h1>{sentence()}</h1>
        <ViewCommand text={command("get", "apps", ...(at() ? ["--at", at()] : []), ...listFlags({ status: statuses(), cluster: scope(), problems: question().problems === "" ? [""] : [] }))} />
      </header>
      <div class="filters" role="group" aria-label="Moment">
        <label class="filter-time">
          <span class="reader">Moment, in your time zone</span>
          <input type="datetime-local" step="1" value={isTime() ? localInput(at()) : ""} onChange={(event) => { const to = Date.parse(event.currentTarget.value); if (!Number.isNaN(to)) go(withQuery({ at: iso(to) })); }} />
        </label>
        <For each={STEPS}>
          {(minutes) => <button type="button" class="chip" onClick={() => move(minutes)}>{minutes < 0 ? "−" : "+"}{age(Math.abs(minutes) * MINUTE)}</button>}
        </For>
        <For each={AGO}>{([title, minutes]) => <button type="button" class="chip" onClick={() => toAgo(minutes)}>{title}</button>}</For>
      </div>
      <div class="filters" role="group" aria-label="Filters">
        <FilterText value={param("text") ?? ""} set={(text) => go(withQuery({ text: text || undefined }), { replace: true })} />
        <button type="button" class="chip" data-on={question().problems === ""} aria-pressed={question().problems === ""} onClick={() => go(withQuery({ all: question().problems === "" ? "" : undefined, status: undefined }))}>With a problem</button>
        <div class="chip-row">
          <For each={STATUSES.filter((one) => one !== "Terminating")}>
            {(one: Status) => (
              <button type="button" class="chip" data-on={statuses().includes(statusWord(one))} aria-pressed={statuses().includes(statusWord(one))} onClick={() => toggle(statusWord(one))}>
                <Glyph status={one} /> {statusWord(one)}
              </button>
            )}
          </For>
        </div>
      </div>
      <Switch fallback={<ErrorNote error={list.error()} what="The list of apps then" retry={() => void list.reorder()} />}>
        <Match when={list.error()?.status === 404}><Note kind="quiet" title="This hub keeps no history.">{list.error()?.hint}</Note></Match>
        <Match when={list.error()?.parameter === "at"}>
          <Note kind="warn" title="Of this moment the hub knows nothing." action={<Show when={earliest()}>{(begun) => <a class="button" href={withQuery({ at: iso(begun()) })}>The earliest moment</a>}</Show>}>{list.error()?.message}</Note>
        </Match>
      </Switch>
      <Show when={list.order().length} fallback={
        <Show when={list.total() !== undefined && !list.isLoading() && !list.error()} fallback={<Show when={!list.error()}><Loading what="the history" rows={12} /></Show>}>
          <Note kind="quiet" title={question().problems === "" && !param("text") ? "No app had a problem then." : "No app matched these filters then."}
            action={<Show when={!isAll()}><a class="button" href={withQuery({ all: "", status: undefined, text: undefined })}>All apps then</a></Show>} />
        </Show>
      }>
        <Grid label="Apps then" layout="past-grid" columns={columns} count={list.order().length} total={total()} rowHeight={narrow() ? 60 : total() > 200 ? 28 : 36}
          reset={JSON.stringify(question())} isOpen={(index) => { const app = row(index); return !!app && refText(refOf(app)) === param("app"); }}
          open={(index) => { const app = row(index); if (app) go(href(app)); }} nearEnd={() => void list.more()} onRange={list.shows}
          row={(index) => <Show when={row(index)}>{(app) => <Row app={app()} href={href(app())} />}</Show>} />
      </Show>
      <ListFoot isPast state={list.cover()?.state} missing={list.cover()?.missing} omitted={list.cover()?.missingOmitted}>
        <Show when={isTime()}><span class="grid-end">{exact(at())}; what was not recorded is not known. Names and labels of clusters are those of today.</span></Show>
      </ListFoot>
    </div>
  );
}

const Row = (props: { app: PastApp; href: string }) => (
  <>
    <Cell column="status"><PastMark state={props.app} /></Cell>
    <Cell column="name">
      <a class="row-link" href={props.href} tabIndex={-1}><Name value={props.app.name} class="strong" /></a>
      <Show when={props.app.namespace && props.app.namespace !== props.app.name}><span class="muted clip row-namespace"><Text value={props.app.namespace} /></span></Show>
    </Cell>
    <Cell column="cluster"><Name value={props.app.cluster} /></Cell>
    <Cell column="message" class={props.app.problem ? "" : "muted"}><span class="clip"><Text value={props.app.problem ?? "none"} /></span></Cell>
    <Cell column="sync"><span class="mark sync-mark" data-sync={props.app.sync}><SyncGlyph state={props.app.sync} /><span class="mark-word">{spaced(props.app.sync)}</span></span></Cell>
    <Cell column="delivery" class="muted"><span class="clip">{deliveryWord(props.app.delivery)}</span></Cell>
  </>
);
