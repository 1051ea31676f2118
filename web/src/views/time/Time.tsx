// The apps as they were at a past moment, from the history of the hub.
import { createEffect, For, Match, Show, Switch, untrack } from "solid-js";
import { hub, type HubError } from "../../api/client";
import type { PastApp } from "../../api/types";
import { createAnswer } from "../../lib/answer";
import { hubNow } from "../../lib/clock";
import { command, listFlags } from "../../lib/command";
import { createPaged } from "../../lib/paged";
import { refOf, refText, rowId } from "../../lib/refs";
import { go, param, params, place, withQuery } from "../../lib/router";
import { age, clockTime, count, exact, localInput, number } from "../../lib/text";
import { deliveryWord, STATUSES } from "../../lib/words";
import { Cell, Grid, type GridColumn, rowHeight } from "../../parts/Grid";
import { PastMark, SyncMark } from "../../parts/Marks";
import { ErrorNote, ListFoot, Loading, Note, ViewCommand } from "../../parts/Notes";
import { Name, Text } from "../../parts/Text";
import { StatusChips } from "../../parts/StatusChips";
import { NameCell } from "../apps/AppTable";
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

/** The first moment of the history at which what the hub follows had been read. */
async function earliest(signal: AbortSignal) {
  // Any answer tells the hub's time, and a moment after that is refused.
  await hub.clusters({ limit: 1 }, signal);
  const now = untrack(hubNow) - 1000;
  const { historySince } = await hub.past({ at: iso(now), limit: 1 }, signal);
  return { at: Math.min(Date.parse(historySince ?? "") + SETTLED, now) };
}

export default function Time() {
  const [begun] = createAnswer(() => (param("at") ? undefined : "begun"), (_, signal) => earliest(signal));
  createEffect(() => {
    const first = begun.data?.at;
    if (first !== undefined && !param("at")) go(withQuery({ at: iso(Math.max(untrack(hubNow) - FIRST, first)) }), { replace: true });
  });
  return (
    <Show when={param("at")} fallback={
      <div class="view list-view"><h1>The apps at a past moment</h1><Refusal error={begun.error} /><Show when={!begun.error}><Loading what="the history" rows={12} /></Show></div>
    }>
      {(at) => <Moment at={at()} />}
    </Show>
  );
}

/** Says why there is no answer about the past. */
function Refusal(props: { error: HubError | undefined; retry?: () => void }) {
  const isTooEarly = () => props.error?.parameter === "at";
  const [begun] = createAnswer(() => (isTooEarly() ? "begun" : undefined), (_, signal) => earliest(signal));
  return (
    <Switch fallback={<ErrorNote error={props.error} what="The list of apps then" {...(props.retry ? { retry: props.retry } : {})} />}>
      <Match when={props.error?.status === 404}><Note kind="quiet" title="This hub keeps no history.">{props.error?.hint}</Note></Match>
      <Match when={isTooEarly()}>
        <Note kind="warn" title="Of this moment the hub knows nothing." action={<Show when={begun.data}>{(first) => <a class="button" href={withQuery({ at: iso(first().at) })}>The earliest moment</a>}</Show>}>{props.error?.message}</Note>
      </Match>
    </Switch>
  );
}

function Moment(props: { at: string }) {
  const at = () => props.at;
  const isTime = () => !Number.isNaN(Date.parse(at()));
  const isAll = () => place().query.has("all");
  const statuses = () => param("status")?.split(",") ?? [];
  const scope = () => params("cluster");
  const question = () => ({
    at: at(), cluster: scope(), text: param("text"), status: param("status"),
    problems: isAll() || statuses().length ? undefined : "",
  });
  // The past does not change, and to read it costs the hub a look at all that it keeps.
  const list = createPaged(question, rowId, (key, cursor, signal) => hub.past({ ...key, limit: PAGE, cursor }, signal), { every: undefined });
  const [then] = createAnswer(() => ({ at: at(), cluster: scope() }), async (key, signal) => {
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
        <ViewCommand text={command("get", "apps", "--at", at(), ...listFlags({ status: statuses(), cluster: scope(), problems: question().problems === "" ? [""] : [] }))} />
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
        <StatusChips statuses={STATUSES.filter((one) => one !== "Terminating")} chosen={statuses()}
          choose={(next) => go(withQuery({ status: next, all: undefined }))} />
      </div>
      <Refusal error={list.error()} retry={() => void list.reorder()} />
      <Show when={list.order().length} fallback={
        <Show when={list.total() !== undefined && !list.isLoading() && !list.error()} fallback={<Show when={!list.error()}><Loading what="the history" rows={12} /></Show>}>
          <Note kind="quiet" title={question().problems === "" && !param("text") ? "No app had a problem then." : "No app matched these filters then."}
            action={<Show when={!isAll()}><a class="button" href={withQuery({ all: "", status: undefined, text: undefined })}>All apps then</a></Show>} />
        </Show>
      }>
        <Grid label="Apps then" layout="past-grid" columns={columns} count={list.order().length} total={total()} rowHeight={rowHeight(total())}
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
    <NameCell row={props.app} href={props.href} />
    <Cell column="cluster"><Name value={props.app.cluster} /></Cell>
    <Cell column="message" class={props.app.problem ? "" : "muted"}><span class="clip"><Text value={props.app.problem ?? "none"} /></span></Cell>
    <Cell column="sync"><SyncMark state={props.app.sync} isPast /></Cell>
    <Cell column="delivery" class="muted"><span class="clip">{deliveryWord(props.app.delivery)}</span></Cell>
  </>
);
