// Apps by a value that they share: members by status as a bar and as counts.
import { createEffect, on, Show } from "solid-js";
import { hub } from "../../api/client";
import type { AppGroup } from "../../api/types";
import { createPaged } from "../../lib/paged";
import { narrow } from "../../lib/prefs";
import { go, withQuery } from "../../lib/router";
import { number } from "../../lib/text";
import { deliveryWord, statusWord } from "../../lib/words";
import type { Status } from "../../api/types";
import { Bar, CountList } from "../../parts/Bar";
import { Moved } from "../../parts/Moved";
import { Cell, Grid } from "../../parts/Grid";
import { ErrorNote, ListFoot, Loading } from "../../parts/Notes";
import { Key, Text } from "../../parts/Text";
import { type Filters, groupFilter, groupTitle, toParams } from "./filters";
import { NoneFound } from "./NoneFound";

const PAGE = 200;

export function Groups(props: { by: string; filters: Filters; refuse: (name: string, why: string) => void }) {
  const question = () => ({ ...toParams(props.filters), "group-by": props.by });
  const list = createPaged(question, (group: AppGroup) => group.group, async (key, cursor, signal) => {
    const page = await hub.groups({ ...key, limit: PAGE, cursor }, signal);
    // The hub sorts groups by their value; a list that is here whole can show the worst first.
    if (!cursor && !page.next) page.items.sort((a, b) => b.problems - a.problems || a.group.localeCompare(b.group));
    return page;
  }, { every: 1000 });
  createEffect(on(list.error, (error) => error?.parameter && error.parameter !== "group-by" && props.refuse(error.parameter, error.message)));
  const at = (index: number) => list.rows[list.order()[index] ?? ""];
  const title = () => groupTitle(props.by) ?? props.by;
  const word = (group: string) =>
    group === "" ? `no ${title().toLowerCase()}` : props.by === "delivery" ? deliveryWord(group) : props.by === "status" ? statusWord(group as Status) : group;
  const label = (group: string) => (props.by === "key" && group ? <Key value={group} /> : <span class="clip strong"><Text value={word(group)} /></span>);
  const href = (group: AppGroup) => {
    const filter = groupFilter(props.by, group.group, props.filters);
    return filter && withQuery({ ...filter, "group-by": undefined });
  };
  return (
    <>
      <ErrorNote error={list.error()} what="The groups" retry={() => void list.reorder()} />
      <Moved rows={list.moved()} reorder={() => void list.reorder()} />
      <Show when={list.order().length} fallback={
        <Show when={list.total() !== undefined && !list.isLoading()} fallback={<Show when={!list.error()}><Loading what="the groups" rows={12} /></Show>}>
          <NoneFound filters={props.filters} state={list.cover()?.state ?? "complete"} />
        </Show>
      }>
        <Grid label={`Apps by ${title()}`} layout="groups-grid" count={list.order().length} total={list.total() ?? 0} rowHeight={narrow() ? 60 : 36}
          columns={[{ name: "group", title: title() }, { name: "bar", title: "Shares", isSilent: true }, { name: "counts", title: "By status" }, { name: "problems", title: "Problems", isNumber: true }, { name: "apps", title: "Apps", isNumber: true }]}
          reset={JSON.stringify(question())} isOpen={() => false} nearEnd={() => void list.more()} onRange={list.shows}
          open={(index) => { const to = at(index) && href(at(index) as AppGroup); if (to) go(to); }}
          row={(index) => (
            <Show when={at(index)}>
              {(group) => (
                <>
                  <Cell column="group"><Show when={href(group())} fallback={label(group().group)}>{(to) => <a class="row-link" href={to()} tabIndex={-1}>{label(group().group)}</a>}</Show></Cell>
                  <Cell column="bar"><Bar counts={group().counts} /></Cell>
                  <Cell column="counts"><CountList counts={group().counts} /></Cell>
                  <Cell column="problems" class={group().problems ? "num" : "num muted"}>{group().problems ? number(group().problems) : "·"}</Cell>
                  <Cell column="apps" class="num">{number(group().apps)}</Cell>
                </>
              )}
            </Show>
          )} />
      </Show>
      <ListFoot state={list.cover()?.state} missing={list.cover()?.missing} omitted={list.cover()?.missingOmitted} />
    </>
  );
}
