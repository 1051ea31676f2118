// Apps by present status, and by how fresh what is known of them is.
import { For, Show } from "solid-js";
import { hub } from "../../api/client";
import type { AppGroup, Status } from "../../api/types";
import { createAnswer } from "../../lib/answer";
import { withQuery } from "../../lib/router";
import { number } from "../../lib/text";
import { STATUSES, statusWord } from "../../lib/words";
import { Bar } from "../../parts/Bar";
import { Glyph } from "../../parts/Glyph";

const filterWord = (status: Status) => (status === "Current" ? "Ready" : status);

export function FleetCounts(props: { scope: string[] }) {
  const [answer] = createAnswer(
    () => ({ cluster: props.scope, "group-by": "status", limit: 20 }),
    async (key, signal) => {
      const data = await hub.groups(key, signal);
      // A row is that of its status, wherever this stands in the next answer.
      return { ...data, items: data.items.map((row) => ({ ...row, id: row.group })) };
    },
    { every: 1000 },
  );
  const rows = () => STATUSES.map((status) => answer.data?.items.find((one) => one.group === status)).filter((one) => one !== undefined);
  const sums = () => rows().reduce((sum, row) => ({ ...sum, [row.group]: row.apps }), { Current: 0, InProgress: 0, Failed: 0, Terminating: 0, NotFound: 0, Unknown: 0 });
  const total = () => rows().reduce((sum, row) => sum + row.apps, 0);
  const live = (row: AppGroup) => row.apps - row.stale - row.lost;
  const cell = (n: number) => <td class="num" data-none={n === 0}>{n ? number(n) : "·"}</td>;
  return (
    <Show when={answer.data}>
      <section class="aside-section">
        <h2 class="section-head">Apps <span class="muted">{number(total())}</span></h2>
        <Bar counts={sums()} />
        <table class="fleet-counts">
          <thead><tr><th scope="col">Status</th><th scope="col" class="num">live</th><th scope="col" class="num">stale</th><th scope="col" class="num">lost</th></tr></thead>
          <tbody>
            <For each={rows()}>
              {(row) => {
                const status = row.group as Status;
                return (
                  <tr>
                    <th scope="row">
                      <a class="mark" data-status={status} href={withQuery({ status: filterWord(status), cluster: props.scope }, "/apps", new URLSearchParams())}>
                        <Glyph status={status} /> {statusWord(status)}
                      </a>
                    </th>
                    {cell(live(row))}{cell(row.stale)}{cell(row.lost)}
                  </tr>
                );
              }}
            </For>
          </tbody>
        </table>
      </section>
    </Show>
  );
}
