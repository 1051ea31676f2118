// The same app in all clusters, by the revision that runs there.
import { createMemo, For, Show } from "solid-js";
import { type AppRef, hub } from "../../api/client";
import type { AppRow } from "../../api/types";
import { createAnswer } from "../../lib/answer";
import { refOf, refText, rowId } from "../../lib/refs";
import { place, withQuery } from "../../lib/router";
import { count, number, shortRevision } from "../../lib/text";
import { Age } from "../../parts/Age";
import { StatusMark, SyncMark } from "../../parts/Marks";
import { ErrorNote, Loading } from "../../parts/Notes";
import { Name } from "../../parts/Text";

const MOST = 500;

export default function InClusters(props: { app: AppRef; appKey: string }) {
  const [answer, again] = createAnswer(
    () => props.appKey,
    async (key, signal) => {
      const data = await hub.apps({ text: key, sort: "status", limit: MOST }, signal);
      return { items: data.items.filter((row) => row.key === key).map((row) => ({ ...row, id: rowId(row) })), isCut: data.total > data.items.length };
    },
    { every: 2000 },
  );
  const byRevision = createMemo(() => {
    const groups = new Map<string, AppRow[]>();
    for (const row of answer.data?.items ?? []) {
      const revision = row.sync.applied ?? "";
      groups.set(revision, [...(groups.get(revision) ?? []), row]);
    }
    return [...groups].sort((a, b) => b[1].length - a[1].length);
  });
  const href = (row: AppRow) => {
    const to = refOf(row);
    return place().path.startsWith("/app/") ? withQuery({ home: to.home }, `/app/${refText(to)}`) : withQuery({ app: refText(to), home: to.home });
  };
  return (
    <>
      <ErrorNote error={answer.error} what="The clusters of the app" retry={again} />
      <Show when={answer.data} fallback={<Show when={!answer.error}><Loading what="the clusters of the app" rows={4} /></Show>}>
        {(data) => (
          <>
            <p class="lead-line">{count(data().items.length, "cluster")}, {count(byRevision().length, "revision")}{data().isCut ? `; only the first ${number(MOST)} are shown` : ""}.</p>
            <For each={byRevision()}>
              {([revision, rows]) => (
                <section class="revision">
                  <h3 class="section-head"><span class="mono" title={revision}>{shortRevision(revision) || "revision not known"}</span> <span class="muted">{number(rows.length)}</span></h3>
                  <ul>
                    <For each={rows}>
                      {(row) => (
                        <li>
                          <a class="member member-wide" href={href(row)} aria-current={row.cluster === props.app.cluster ? "true" : undefined}>
                            <StatusMark health={row.health} effective={row.effective} freshness={row.freshness} suspended={row.suspended} said={row.said} />
                            <Name value={row.cluster} class="strong" />
                            <SyncMark state={row.sync.effective} />
                            <span class="muted member-since"><Age since={row.since} /></span>
                          </a>
                        </li>
                      )}
                    </For>
                  </ul>
                </section>
              )}
            </For>
          </>
        )}
      </Show>
    </>
  );
}
