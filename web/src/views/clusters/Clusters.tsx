// The clusters: how fresh each is, and its worst.
import { createSignal, Show } from "solid-js";
import { hub } from "../../api/client";
import type { ClusterRow } from "../../api/types";
import { command, listFlags } from "../../lib/command";
import { clusters as counts, hubAway } from "../../live/live";
import { createPaged } from "../../lib/paged";
import { go, param, withQuery } from "../../lib/router";
import { count, number, plain } from "../../lib/text";
import { nodesWord, STATUSES } from "../../lib/words";
import { Age } from "../../parts/Age";
import { Bar, CountList } from "../../parts/Bar";
import { Moved } from "../../parts/Moved";
import { Cell, Grid, type GridColumn, rowHeight } from "../../parts/Grid";
import { FreshMark, StatusMark } from "../../parts/Marks";
import { Menu } from "../../parts/Menu";
import { ErrorNote, ListFoot, Loading, Note, ViewCommand } from "../../parts/Notes";
import { Refused } from "../../parts/Refused";
import { StatusChips } from "../../parts/StatusChips";
import { Name, Text } from "../../parts/Text";
import { FilterText } from "../apps/FilterBar";
import { ClusterDrawer } from "./ClusterDrawer";

const PAGE = 200;

export function Clusters() {
  const status = () => param("status");
  const chosen = () => status()?.split(",") ?? [];
  const [wrong, setWrong] = createSignal<string>();
  const sort = () => param("sort") ?? "status";
  const question = () => ({ status: wrong() === status() ? undefined : status(), text: param("text"), sort: sort() });
  const list = createPaged(question, (row: ClusterRow) => row.name, async (key, cursor, signal) => {
    try {
      return await hub.clusters({ ...key, limit: PAGE, cursor }, signal);
    } catch (error) {
      // A status that makes no sense is named, and all others are shown.
      if (!(error instanceof Error && "parameter" in error && error.parameter === "status")) throw error;
      setWrong(key.status);
      return await hub.clusters({ ...key, status: undefined, limit: PAGE, cursor }, signal);
    }
  }, { every: 1000 });
  const at = (index: number) => list.rows[list.order()[index] ?? ""];
  const total = () => list.total() ?? 0;
  const sentence = () => {
    const all = counts();
    if (!all) return "Clusters";
    const n = all.live + all.stale + all.lost;
    const parts = [all.lost && `${number(all.lost)} lost`, all.stale && `${number(all.stale)} stale`].filter(Boolean);
    const text = parts.length ? `${number(all.live)} of ${count(n, "cluster")} ${all.live === 1 ? "is" : "are"} live; ${parts.join(", ")}.` : `All ${count(n, "cluster")} are live.`;
    return hubAway() ? "The hub is away; no cluster is known to be live." : text;
  };
  const by = (name: string) => ({ isActive: sort() === name, by: () => go(withQuery({ sort: name === "status" ? undefined : name })) });
  const columns = (): GridColumn[] => [
    { name: "fresh", title: "Freshness" },
    { name: "cluster", title: "Cluster", sort: by("name") },
    { name: "status", title: "Worst app", sort: by("status") },
    { name: "message", title: "Message" },
    { name: "bar", title: "Shares", isSilent: true },
    { name: "counts", title: "Apps by status" },
    { name: "seen", title: "Seen", isNumber: true },
    { name: "nodes", title: "Nodes" },
    { name: "version", title: "Version" },
  ];

  return (
    <div class="view list-view">
      <header class="view-head">
        <h1>{sentence()}</h1>
        <ViewCommand text={command("get", "clusters", ...listFlags({ status: chosen(), sort: [sort()] }))} />
      </header>
      <div class="filters" role="group" aria-label="Filters">
        <FilterText value={param("text") ?? ""} set={(text) => go(withQuery({ text: text || undefined }), { replace: true })} />
        <StatusChips statuses={STATUSES.filter((one) => one !== "Terminating" && one !== "NotFound")} chosen={chosen()}
          choose={(next) => go(withQuery({ status: next }))} />
        <span class="grow" />
        <Menu label="Sort" isSingle chosen={[sort()]} isQuiet={!param("sort")} choices={[{ value: "status", label: "Worst first" }, { value: "name", label: "Name" }]}
          choose={(value) => go(withQuery({ sort: value === "status" ? undefined : value }))} />
      </div>
      <Refused list={wrong() && wrong() === status() ? [{ name: "status", title: "The filter Status", why: `'${status()}' is not a status` }] : []} />
      <ErrorNote error={list.error()} what="The list of clusters" retry={() => void list.reorder()} />
      <Moved rows={list.moved()} reorder={() => void list.reorder()} />
      <Show when={list.order().length} fallback={
        <Show when={list.total() !== undefined && !list.isLoading() && !list.error()} fallback={<Show when={!list.error()}><Loading what="the list of clusters" rows={12} /></Show>}>
          <Note kind="quiet" title={status() || param("text") ? "No cluster matches these filters." : "The hub follows no cluster."}
            action={<Show when={status() || param("text")}><a class="button" href="/clusters">Clear all filters</a></Show>} />
        </Show>
      }>
        <Grid label="Clusters" layout="clusters-grid" columns={columns()} count={list.order().length} total={total()} rowHeight={rowHeight(total())}
          reset={JSON.stringify(question())} isOpen={(index) => at(index)?.name === param("open")} nearEnd={() => void list.more()} onRange={list.shows}
          open={(index) => { const row = at(index); if (row) go(withQuery({ open: row.name })); }}
          row={(index) => <Show when={at(index)}>{(row) => <Row row={row()} hasLeft={list.hasLeft(row().name)} />}</Show>} />
      </Show>
      <ListFoot state={list.cover()?.state} missing={list.cover()?.missing} omitted={list.cover()?.missingOmitted} />
      <Show when={param("open")}>{(name) => <ClusterDrawer name={name()} />}</Show>
    </div>
  );
}

function Row(props: { row: ClusterRow; hasLeft: boolean }) {
  const row = () => props.row;
  return (
    <>
      <Cell column="fresh"><FreshMark state={row().freshness.state} /></Cell>
      <Cell column="cluster">
        <a class="row-link" href={withQuery({ open: row().name })} tabIndex={-1}><Name value={row().name} class="strong" /></a>
        <Show when={row().light}><span class="muted" title="The hub reads only what declares apps in this cluster"> light</span></Show>
      </Cell>
      <Cell column="status"><StatusMark health={row().health} effective={row().effective} freshness={row().freshness} hasLeft={props.hasLeft} /></Cell>
      <Cell column="message" class={row().problem || row().freshness.state !== "live" ? "" : "muted"}>
        <span class="clip"><Show when={row().worst && row().freshness.state === "live"}><span class="muted">{row().worst?.name}: </span></Show><Text value={row().message} /></span>
      </Cell>
      <Cell column="bar"><Bar counts={row().counts} /></Cell>
      <Cell column="counts"><CountList counts={row().counts} /></Cell>
      <Cell column="seen" class="num muted"><Show when={row().freshness.state === "live"} fallback={<Age since={row().freshness.observedAt} />}><span class="seen-now">now</span></Show></Cell>
      <Cell column="nodes" class="muted"><span class="clip" title={plain(row().nodesUnobserved ?? "") || undefined}>{nodesWord(row(), row().freshness.state === "live" && !hubAway())}</span></Cell>
      <Cell column="version" class="muted"><span class="clip">{row().version}</span></Cell>
    </>
  );
}
