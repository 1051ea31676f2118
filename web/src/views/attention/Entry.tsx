// One cause of problems: what, on which object, where, since when, and what to run next.
import { createSignal, createUniqueId, For, Show } from "solid-js";
import { hub } from "../../api/client";
import type { AppRow, AttentionEntry, ProblemSeverity, Status } from "../../api/types";
import { createAnswer } from "../../lib/answer";
import { command } from "../../lib/command";
import { refOf, refText, rowId } from "../../lib/refs";
import { withQuery } from "../../lib/router";
import { count, number } from "../../lib/text";
import { spaced, STATUSES } from "../../lib/words";
import { Age } from "../../parts/Age";
import { Copy } from "../../parts/Copy";
import { Glyph, SyncGlyph } from "../../parts/Glyph";
import { Icon } from "../../parts/Icon";
import { StatusMark } from "../../parts/Marks";
import { Loading } from "../../parts/Notes";
import { Section } from "../../parts/Section";
import { Text } from "../../parts/Text";

const MOST_MEMBERS = 8;

/** A cause with a text that only it has. */
export type Cause = AttentionEntry & { id: string };

export const causesOf = (entries: AttentionEntry[]): Cause[] =>
  entries.map((entry) => ({
    ...entry,
    id: [entry.axis, entry.state, entry.object ? `${entry.object.kind}/${entry.object.namespace}/${entry.object.name}` : "", entry.message].join("|"),
  }));

/** The key's last part, by which people call the app. */
const keyName = (key: string) => key.split("/").at(-1) ?? key;

/** The filters that come nearest to the cause: the API has none for a cause itself. */
export function filtersOf(entry: AttentionEntry): Record<string, string | string[]> {
  const narrow = entry.keyCount === 1 && entry.keys[0] ? { text: entry.keys[0] } : {};
  const here: Record<string, string[]> = entry.clusterCount <= entry.clusters.length ? { cluster: [...entry.clusters] } : {};
  const byMessage: Record<string, string> = entry.clusterCount > entry.clusters.length && entry.keyCount !== 1 ? { text: entry.message } : {};
  return { problems: entry.axis, ...narrow, ...here, ...byMessage };
}

const statusOf = (entry: AttentionEntry): Status =>
  (STATUSES as readonly string[]).includes(entry.state) ? (entry.state as Status) : entry.severity === "error" ? "Failed" : entry.severity === "waiting" ? "InProgress" : "Unknown";

const SEVERITY_WORDS: Record<ProblemSeverity, string> = { error: "Error", waiting: "Waiting", notice: "Notice" };

/** The causes under a title; `count` is the number of all that they are of, `fleet` that of the clusters. */
export const Causes = (props: { title: string; entries: Cause[]; count: number; fleet: number; hasLeft?: (id: string) => boolean }) => (
  <Section title={props.title} count={props.count}>
    <For each={props.entries}>{(entry) => <Entry entry={entry} fleet={props.fleet} hasLeft={!!props.hasLeft?.(entry.id)} />}</For>
  </Section>
);

function Entry(props: { entry: Cause; fleet: number; hasLeft: boolean }) {
  const id = createUniqueId();
  const [isOpen, setOpen] = createSignal(false);
  const entry = () => props.entry;
  const where = () => {
    const { clusterCount, clusters } = entry();
    const names = clusters.join(", ") + (clusterCount > clusters.length ? `, ${number(clusterCount - clusters.length)} more` : "");
    return { lead: `in ${number(clusterCount)} of ${count(props.fleet, "cluster")}`, names };
  };
  const next = () => command("explain", keyName(entry().keys[0] ?? ""), ...(entry().clusters[0] ? ["--cluster", entry().clusters[0]] : []));
  const list = () => withQuery(filtersOf(entry()), "/apps", new URLSearchParams());

  return (
    <li class="entry" data-severity={entry().severity} data-left={props.hasLeft}>
      <div class="entry-row">
        <button type="button" class="entry-main plain" aria-expanded={isOpen()} aria-controls={id} onClick={() => setOpen(!isOpen())}>
          <span class="entry-glyph">
            <Show when={entry().axis === "sync" || entry().axis === "source"} fallback={<Glyph status={statusOf(entry())} size={14} />}>
              <SyncGlyph state={entry().state === "Suspended" ? "Suspended" : "Failed"} />
            </Show>
          </span>
          <span class="entry-text">
            <span class="entry-what">
              <Show when={entry().object} fallback={<span class="strong">{keyName(entry().keys[0] ?? "")}</span>}>
                {(object) => <><span class="muted">{object().kind}</span> <span class="strong"><Text value={object().name} /></span></>}
              </Show>
              <span class="entry-state" data-severity={entry().severity} data-status={entry().axis === "health" ? statusOf(entry()) : undefined}>
                <span class="reader">{SEVERITY_WORDS[entry().severity]}: </span>
                {props.hasLeft ? "over: " : ""}{entry().axis === "health" ? entry().state : `${entry().axis} ${spaced(entry().state).toLowerCase()}`}
              </span>
            </span>
            <span class="entry-message"><Text value={entry().message} /></span>
            <span class="entry-where muted">
              {where().lead} <span class="entry-clusters"><Text value={where().names} /></span> · {count(entry().keyCount, "app")}{" "}
              <Show when={entry().keyCount > 1 || keyName(entry().keys[0] ?? "") !== entry().object?.name}>
                <span class="entry-keys"><Text value={entry().keys.map(keyName).join(", ") + (entry().keyCount > entry().keys.length ? ", …" : "")} /></span>
              </Show>
            </span>
          </span>
          <span class="entry-since muted"><Age since={entry().since} /></span>
          <span class="entry-fold" data-open={isOpen()}><Icon name="chevron" size={12} /></span>
        </button>
        <Copy text={next()} label="Copy the next command" />
      </div>
      <Show when={isOpen()}>
        <div class="entry-members" id={id}>
          <Members entry={entry()} />
          <p class="entry-actions"><a href={list()}>Show {entry().count === 1 ? "it" : `all ${number(entry().count)}`} in Apps</a></p>
        </div>
      </Show>
    </li>
  );
}

function Members(props: { entry: AttentionEntry }) {
  const [answer] = createAnswer(
    () => ({ ...filtersOf(props.entry), sort: "since", limit: 100 }),
    async (key, signal) => {
      const data = await hub.apps(key, signal);
      const rows = data.items.filter((row: AppRow) => props.entry.keyCount > props.entry.keys.length || props.entry.keys.includes(row.key));
      return { items: rows.map((row) => ({ ...row, id: rowId(row) })) };
    },
    { every: 2000 },
  );
  const rows = () => answer.data?.items ?? [];
  const href = (row: AppRow) => withQuery({ app: refText(refOf(row)), home: refOf(row).home, tab: "why" });
  return (
    <Show when={answer.data} fallback={<Loading what="the apps of this cause" rows={2} />}>
      <ul class="members">
        <For each={rows().slice(0, MOST_MEMBERS)}>
          {(row) => (
            <li>
              <a class="member" href={href(row)}>
                <StatusMark health={row.health} effective={row.effective} freshness={row.freshness} suspended={row.suspended} said={row.said} />
                <span class="strong"><Text value={row.name} /></span>
                <span class="muted"><Text value={row.cluster} /></span>
                <span class="muted member-since"><Age since={row.since} /></span>
              </a>
            </li>
          )}
        </For>
      </ul>
      <Show when={rows().length > MOST_MEMBERS}><p class="muted members-more">and {number(rows().length - MOST_MEMBERS)} more</p></Show>
    </Show>
  );
}
