// Filters as chips: statuses with their counts, lists to choose from, and what is typed.
import { createEffect, createMemo, createSignal, For, on, onCleanup, Show } from "solid-js";
import { hub } from "../../api/client";
import type { StreamCounts } from "../../api/types";
import { query } from "../../api/client";
import { follow } from "../../live/live";
import { go, param, withQuery } from "../../lib/router";
import { number } from "../../lib/text";
import { AXES, DELIVERY_IDS, deliveryWord, STATUSES, statusWord, SYNC_STATES } from "../../lib/words";
import { Glyph } from "../../parts/Glyph";
import { Icon } from "../../parts/Icon";
import { type Choice, Menu } from "../../parts/Menu";
import { clusterLabels } from "./LabelMenu";
import { COLUMNS, shownColumns, withColumn } from "./columns";
import { FILTER_WORDS, type FilterName, type Filters, GROUPS, groupTitle, labelGroup, SORTS, toAddress, toParams } from "./filters";

const TYPED_FOR = 200;
const MOST_CHOICES = 200;

/** With `isPlain` it neither groups nor sorts. */
export function FilterBar(props: { filters: Filters; isPlain?: boolean }) {
  const values = (name: FilterName) => props.filters[name] ?? [];
  const set = (name: FilterName, next: readonly string[]) => go(withQuery({ [name]: toAddress(name, next) }));
  const toggle = (name: FilterName, value: string) =>
    set(name, values(name).includes(value) ? values(name).filter((one) => one !== value) : [...values(name), value]);

  const [counts, setCounts] = createSignal<StreamCounts>();
  // The counts of all statuses, so without the filter by status.
  follow(() => `counts${query(toParams(props.filters, ["status"]))}`, (page) => page.apps && setCounts(page.apps));
  // A status that was there once keeps its chip: if chips came and went, the rows below would move with them.
  const seen = createMemo((before: ReadonlySet<string>) => new Set([...before, ...STATUSES.filter((status) => (counts()?.counts[status] ?? 0) > 0)]), new Set<string>());
  const isChosen = (word: string) => values("status").includes(word);

  return (
    <div class="filters" role="group" aria-label="Filters">
      <FilterText value={values("text")[0] ?? ""} set={(text) => go(withQuery({ text: text || undefined }), { replace: true })} />
      <div class="chip-row">
        <For each={STATUSES}>
          {(status) => {
            const n = () => counts()?.counts[status] ?? 0;
            const word = statusWord(status);
            return (
              <Show when={seen().has(status) || isChosen(word)}>
                <button type="button" class="chip" data-on={isChosen(word)} aria-pressed={isChosen(word)} onClick={() => toggle("status", word)}>
                  <Glyph status={status} /> {word} <span class="chip-count">{number(n())}</span>
                </button>
              </Show>
            );
          }}
        </For>
        <For each={values("status").filter((one) => !STATUSES.some((status) => statusWord(status) === one))}>
          {(other) => <Active label="Status" value={other} remove={() => toggle("status", other)} />}
        </For>
      </div>
      <Facet name="problems" label="Problem" filters={props.filters} toggle={toggle} fixed={AXES} />
      <Facet name="sync" label="Sync" filters={props.filters} toggle={toggle} fixed={SYNC_STATES} group="sync" />
      <Facet name="delivery" label="Delivery" filters={props.filters} toggle={toggle} fixed={DELIVERY_IDS} word={deliveryWord} group="delivery" />
      <Facet name="cluster" label="Cluster" filters={props.filters} toggle={toggle} group="cluster" />
      <Facet name="namespace" label="Namespace" filters={props.filters} toggle={toggle} group="namespace" />
      <For each={["name", "selector", "cluster-selector", "suspended"] as const}>
        {(name) => <For each={values(name)}>{(value) => <Active label={name === "suspended" ? "" : FILTER_WORDS[name]} value={name === "suspended" ? "suspended" : value} remove={() => toggle(name, value)} />}</For>}
      </For>
      <Show when={Object.keys(props.filters).length}>
        <button type="button" class="plain link" onClick={() => go(withQuery(Object.fromEntries(Object.keys(props.filters).map((name) => [name, undefined]))))}>Clear</button>
      </Show>
      <Show when={!props.isPlain}><Arrange /></Show>
    </div>
  );
}

function Arrange() {
  const [labels, setLabels] = createSignal<string[]>([]);
  const groupBy = () => param("group-by");
  const choices = () => {
    const chosen = groupBy() && !(groupBy() as string in GROUPS) ? [groupBy() as string] : [];
    const all = [...Object.keys(GROUPS), ...new Set([...labels().map(labelGroup), ...chosen])];
    return all.map((value) => ({ value, label: groupTitle(value) ?? value }));
  };
  return (
    <div class="arrange">
      <Menu label="Group" isSingle chosen={groupBy() ? [groupBy() ?? ""] : []} choices={choices()} onOpen={() => void clusterLabels().then((known) => setLabels(known?.labels ?? []))}
        choose={(value) => go(withQuery({ "group-by": groupBy() === value ? undefined : value }))} />
      <Show when={!groupBy()}>
        <Menu label="Sort" isSingle isQuiet={!param("sort")} chosen={[param("sort") ?? "status"]} choices={Object.entries(SORTS).map(([value, label]) => ({ value, label }))}
          choose={(value) => go(withQuery({ sort: value === "status" ? undefined : value }))} />
        <Menu label="Columns" isQuiet chosen={shownColumns()} choices={Object.entries(COLUMNS).map(([value, { title }]) => ({ value, label: title }))} isSilent
          choose={(value) => go(withQuery({ columns: withColumn(value) }), { replace: true })} />
      </Show>
    </div>
  );
}

const Active = (props: { label: string; value: string; remove: () => void }) => (
  <button type="button" class="chip" data-on="true" aria-label={`Remove the filter ${props.label} ${props.value}`} onClick={() => props.remove()}>
    <Show when={props.label}><span>{props.label}</span></Show><span class="chip-value clip">{props.value}</span><Icon name="close" size={10} />
  </button>
);

/** A list of values to choose from, with counts where the API groups by that field. */
function Facet(props: {
  name: FilterName;
  label: string;
  filters: Filters;
  toggle: (name: FilterName, value: string) => void;
  fixed?: readonly string[];
  group?: string;
  word?: (value: string) => string;
}) {
  const word = (value: string) => props.word?.(value) ?? value;
  const [choices, setChoices] = createSignal<Choice[] | undefined>(props.fixed?.map((value) => ({ value, label: word(value) })));
  const [note, setNote] = createSignal<string>();
  async function read() {
    if (!props.group) return;
    const answer = await hub
      .groups({ ...toParams(props.filters, [props.name]), "group-by": props.group, limit: MOST_CHOICES, sort: "name" })
      .catch(() => undefined);
    if (!answer) return setNote("The hub did not say how many there are.");
    const known = answer.items.map((one) => ({ value: one.group, label: word(one.group), count: one.apps }));
    setChoices(known.filter((one) => one.value !== ""));
    setNote(answer.total > known.length ? `${number(answer.total - known.length)} more: type in the search` : undefined);
  }
  return (
    <Menu label={props.label} chosen={props.filters[props.name] ?? []} choices={choices()} onOpen={() => void read()} note={note()}
      choose={(value) => props.toggle(props.name, value)} />
  );
}

/** With `takesFocus` one can type at once. */
export function FilterText(props: { value: string; set: (text: string) => void; title?: string; isWide?: boolean; takesFocus?: boolean }) {
  const [typed, setTyped] = createSignal(props.value);
  let timer: ReturnType<typeof setTimeout> | undefined;
  createEffect(on(() => props.value, setTyped));
  onCleanup(() => clearTimeout(timer));
  const type = (text: string) => {
    setTyped(text);
    clearTimeout(timer);
    timer = setTimeout(() => props.set(text.trim()), TYPED_FOR);
  };
  return (
    <label class="filter-text" data-wide={props.isWide}>
      <span class="reader">{props.title ?? "Filter by text"}</span>
      <input type="search" ref={(input) => props.takesFocus && queueMicrotask(() => input.focus())} placeholder={props.title ?? "Filter"} value={typed()} autocomplete="off" spellcheck={false} onInput={(event) => type(event.currentTarget.value)} />
    </label>
  );
}
