// Nothing matches: says what was asked for, and which filter hides most.
import { For, Show } from "solid-js";
import { hub } from "../../api/client";
import type { AnswerState } from "../../api/types";
import { createAnswer } from "../../lib/answer";
import { withQuery } from "../../lib/router";
import { count } from "../../lib/text";
import { Note } from "../../parts/Notes";
import { Text } from "../../parts/Text";
import { FILTER_WORDS, type FilterName, type Filters, toParams } from "./filters";

export function NoneFound(props: { filters: Filters; state: AnswerState }) {
  const names = () => Object.keys(props.filters) as FilterName[];
  const [hiding] = createAnswer(
    () => (names().length ? props.filters : undefined),
    async (filters, signal) => {
      const found = await Promise.all(
        names().map(async (name) => ({ name, total: (await hub.apps({ ...toParams(filters, [name]), limit: 1, fields: ["name"] }, signal)).total })),
      );
      return { most: found.sort((a, b) => b.total - a.total)[0] };
    },
  );
  const isWhole = () => props.state === "complete" || props.state === "stale";
  const isReading = () => props.state === "loading";
  return (
    <Show when={names().length} fallback={
      <Note kind="quiet" title={isReading() ? "No apps yet: clusters are still being read." : isWhole() ? "These clusters have no apps." : "No apps are known: clusters are missing."}>
        Taffrail shows what Flux, Argo CD, Config Sync, kpt and Helm declare.
      </Note>
    }>
      <Note kind="quiet" title={isWhole() ? "No app matches these filters." : "No app that is known matches these filters."}
        action={<Show when={hiding.data?.most}>{(most) => (
          <Show when={most().total > 0} fallback={<a class="button" href={withQuery(Object.fromEntries(names().map((name) => [name, undefined])))}>Clear all filters</a>}>
            <a class="button" href={withQuery({ [most().name]: undefined })}>Without {FILTER_WORDS[most().name]}: {count(most().total, "app")}</a>
          </Show>
        )}</Show>}>
        <ul class="asked"><For each={names()}>{(name) => <li>{FILTER_WORDS[name]}: <Text value={(props.filters[name] ?? []).join(", ")} /></li>}</For></ul>
      </Note>
    </Show>
  );
}
