import { createEffect, createSignal, For, on, onCleanup, Show } from "solid-js";
import { hub, query } from "../../api/client";
import type { AppRow } from "../../api/types";
import { follow } from "../../live/live";
import { createPaged } from "../../lib/paged";
import { refOf, refText, rowId } from "../../lib/refs";
import { go, param, withQuery } from "../../lib/router";
import { createSelection } from "../../lib/selection";
import { count, number } from "../../lib/text";
import { Moved } from "../../parts/Moved";
import { Cell, Grid, type GridColumn, rowHeight } from "../../parts/Grid";
import { StatusMark } from "../../parts/Marks";
import { Announce, ErrorNote, ListFoot, Loading } from "../../parts/Notes";
import { Name, Text } from "../../parts/Text";
import { Chosen } from "./Chosen";
import { areChosen, COLUMNS, gridColumns, shownColumns } from "./columns";
import { FILTER_WORDS, type Filters, toParams } from "./filters";
import { NoneFound } from "./NoneFound";

const PAGE = 100;

export function AppTable(props: { filters: Filters; sort: string; refuse: (name: string, why: string) => void }) {
  const question = () => ({ ...toParams(props.filters), sort: props.sort });
  const list = createPaged(question, rowId, (key, cursor, signal) => hub.apps({ ...key, limit: PAGE, cursor }, signal), { every: 10_000 });
  createEffect(on(list.error, (error) => error?.parameter && props.refuse(error.parameter, error.message)));

  // Identities of the stream's rows, which are numbers, in this list.
  let known = new Map<number, AppRow>();
  follow(() => `apps${query({ ...question(), limit: PAGE })}`, (page, isReset) => {
    if (isReset) known = new Map();
    for (const { id, row } of page.rows ?? []) known.set(id, row);
    const order = page.order?.map((id) => known.get(id)).filter((row): row is AppRow => !!row);
    list.stream((page.rows ?? []).map(({ row }) => row), order?.map(rowId), page.apps?.total);
  });

  const total = () => list.total() ?? 0;
  const at = (index: number) => list.rows[list.order()[index] ?? ""];
  const opened = () => param("app");
  const href = (row: AppRow) => withQuery({ app: refText(refOf(row)), home: refOf(row).home });
  const by = (name: string) => ({ isActive: props.sort === name, by: () => go(withQuery({ sort: name === "status" ? undefined : name })) });
  const columns = (): GridColumn[] => [
    { name: "status", title: "Status", sort: by("status") },
    { name: "name", title: "App", sort: by("name") },
    ...shownColumns().flatMap((name) => {
      const column = COLUMNS[name];
      return column ? [{ name, title: column.title, isNumber: !!column.isNumber, sort: column.sort ? by(column.sort) : undefined }] : [];
    }),
  ];
  const selection = createSelection<AppRow>(rowId);
  createEffect(on(() => JSON.stringify(toParams(props.filters)), selection.clear, { defer: true }));

  return (
    <>
      <ErrorNote error={(list.error()?.parameter ?? "") in FILTER_WORDS ? undefined : list.error()} what="The list of apps" retry={() => void list.reorder()} />
      <Moved rows={list.moved()} reorder={() => void list.reorder()} />
      <Announce text={list.total() === undefined ? "" : count(total(), "app")} />
      <Show when={list.order().length} fallback={
        <Show when={list.total() !== undefined && !list.isLoading() && !list.error()} fallback={<Show when={!list.error()}><Loading what="the list of apps" rows={12} /></Show>}>
          <NoneFound filters={props.filters} state={list.cover()?.state ?? "complete"} />
        </Show>
      }>
        <Grid label="Apps" layout="apps-grid" columns={columns()} count={list.order().length} total={total()} rowHeight={rowHeight(total())}
          reset={JSON.stringify(question())} widths={areChosen() ? gridColumns() : undefined}
          choice={{ has: (index) => selection.has(at(index)), toggle: (index, isRange) => selection.toggle(index, isRange, at) }} isOpen={(index) => { const row = at(index); return !!row && refText(refOf(row)) === opened(); }}
          open={(index) => { const row = at(index); if (row) go(href(row)); }} nearEnd={() => void list.more()} onRange={list.shows}
          row={(index) => <Show when={at(index)}>{(row) => <Row row={row()} href={href(row())} hasLeft={list.hasLeft(rowId(row()))} />}</Show>} />
      </Show>
      <Show when={selection.chosen().size}>
        <Chosen rows={[...selection.chosen()].map(([id, row]) => list.rows[id] ?? row)} question={question()} total={total()} set={selection.set} clear={selection.clear} />
      </Show>
      <ListFoot state={list.cover()?.state} missing={list.cover()?.missing} omitted={list.cover()?.missingOmitted}>
        <Show when={total() > list.order().length && list.hasMore()}>
          <span class="grid-end">{number(list.order().length)} of {count(total(), "app")} read; scroll for more. Rows beyond the first {PAGE} are read again every 10 s.</span>
        </Show>
      </ListFoot>
    </>
  );
}

/** True for a second after the value of the same row has changed; another row in its place has not changed. */
function createChanged(id: () => string, value: () => string) {
  const [isChanged, setChanged] = createSignal(false);
  let timer: ReturnType<typeof setTimeout> | undefined;
  createEffect(on([id, value], ([newId, newValue], before) => {
    clearTimeout(timer);
    setChanged(before?.[0] === newId && before[1] !== newValue);
    if (isChanged()) timer = setTimeout(() => setChanged(false), 1000);
  }));
  onCleanup(() => clearTimeout(timer));
  return isChanged;
}

/** The name of an app, which opens it, and its namespace where that says more. */
export const NameCell = (props: { row: Pick<AppRow, "name" | "namespace">; href: string }) => (
  <Cell column="name">
    <a class="row-link" href={props.href} tabIndex={-1}><Name value={props.row.name} class="strong" /></a>
    <Show when={props.row.namespace && props.row.namespace !== props.row.name}><span class="muted clip row-namespace"><Text value={props.row.namespace} /></span></Show>
  </Cell>
);

function Row(props: { row: AppRow; href: string; hasLeft: boolean }) {
  const row = () => props.row;
  const statusChanged = createChanged(() => rowId(row()), () => `${row().effective} ${row().freshness.state}`);
  const syncChanged = createChanged(() => rowId(row()), () => row().sync.effective);
  return (
    <>
      <Cell column="status"><span classList={{ changed: statusChanged() }}><StatusMark health={row().health} effective={row().effective} freshness={row().freshness} suspended={row().suspended} said={row().said} hasLeft={props.hasLeft} /></span></Cell>
      <NameCell row={row()} href={props.href} />
      <For each={shownColumns()}>
        {(name) => <Show when={COLUMNS[name]}>{(column) => <Cell column={name} class={`${column().isNumber ? "num" : ""} ${column().class ?? ""}`}><span class="cell-value" classList={{ changed: name === "sync" && syncChanged() }}>{column().cell(row())}</span></Cell>}</Show>}
      </For>
    </>
  );
}
