// All that has a text in it: apps by key, clusters, and causes of problems.
import { For, type JSX, Show } from "solid-js";
import { hub } from "../../api/client";
import { createAnswer } from "../../lib/answer";
import { command } from "../../lib/command";
import { go, param, withQuery } from "../../lib/router";
import { count, number } from "../../lib/text";
import { Bar } from "../../parts/Bar";
import { FreshMark } from "../../parts/Marks";
import { Announce, CoverNote, ErrorNote, Loading, ViewCommand } from "../../parts/Notes";
import { Section } from "../../parts/Section";
import { Key, Name, Text } from "../../parts/Text";
import { FilterText } from "../apps/FilterBar";
import { type Cause, Causes, causesOf } from "../attention/Entry";
import { NamedObjects, namedObject } from "./NamedObjects";

const MOST = 20;

export default function SearchPage() {
  const text = () => param("q") ?? "";
  const [answer, again] = createAnswer(() => text() || undefined, async (wanted, signal) => {
    const [keys, apps, clusters, causes] = await Promise.all([
      hub.groups({ text: wanted, "group-by": "key", limit: MOST, sort: "status" }, signal),
      hub.apps({ text: wanted, limit: 1 }, signal),
      hub.clusters({ text: wanted, limit: MOST, sort: "status" }, signal),
      hub.attention({ text: wanted, limit: MOST }, signal),
    ]);
    return {
      keys: keys.items.map((group) => ({ ...group, id: group.group })), keyTotal: keys.total, apps: apps.total,
      clusters: clusters.items.map((row) => ({ ...row, id: row.name })), clusterTotal: clusters.total,
      causes: causesOf(causes.items), causeTotal: causes.total,
      fleet: causes.clusters, state: apps.state, missing: apps.missing, omitted: apps.missingOmitted,
    };
  }, { every: 5000 });
  const sentence = () => {
    const data = answer.data;
    if (!text() || !data) return "Search apps, clusters and messages";
    if (!data.apps && !data.clusterTotal && namedObject(text())) return `No app or cluster has “${text()}” in it; objects of that name are below.`;
    if (!data.apps && !data.clusterTotal) return `Nothing has “${text()}” in it.`;
    const parts = [data.apps && count(data.apps, "app"), data.clusterTotal && `the ${data.clusterTotal === 1 ? "name" : "names"} of ${count(data.clusterTotal, "cluster")}`];
    return `“${text()}” is in ${parts.filter(Boolean).join(" and ")}.`;
  };
  const all = () => `/apps?${new URLSearchParams({ text: text() })}`;

  return (
    <div class="view attention">
      <header class="view-head">
        <h1><Text value={sentence()} /></h1>
        <ViewCommand text={command("overview")} />
      </header>
      <Announce text={sentence()} />
      <div class="filters"><FilterText isWide takesFocus={!text()} title="Search" value={text()} set={(value) => go(withQuery({ q: value || undefined }), { replace: true })} /></div>
      <ErrorNote error={answer.error} what="The search" retry={again} />
      <Show when={namedObject(text())}>{(name) => <NamedObjects name={name()} />}</Show>
      <Show when={answer.data} fallback={<Show when={text() && !answer.error} fallback={<Show when={!text()}><p class="muted">Type a part of a name, a key or a message, or KIND/NAME of any object.</p></Show>}><Loading what="the search" /></Show>}>
        {(data) => (
          <div class="search-results">
            <CoverNote state={data().state} missing={data().missing} omitted={data().omitted} />
            <Causes title="Problems" entries={data().causes as Cause[]} count={data().causeTotal} fleet={data().fleet} />
            <Section title="Apps" count={data().keyTotal}>
              <For each={data().keys}>
                {(group) => (
                  <Result href={withQuery({ text: group.group }, "/apps", new URLSearchParams())} count={count(group.apps, "cluster")} problems={group.problems}>
                    <Key value={group.group} /><span class="search-bar"><Bar counts={group.counts} /></span>
                  </Result>
                )}
              </For>
            </Section>
            <Section title="Clusters" count={data().clusterTotal}>
              <For each={data().clusters}>
                {(row) => (
                  <Result href={withQuery({ open: row.name }, "/clusters", new URLSearchParams())} count={count(row.apps, "app")} problems={row.problems}>
                    <Name value={row.name} class="strong" /><FreshMark state={row.freshness.state} />
                  </Result>
                )}
              </For>
            </Section>
            <Show when={data().apps}><p><a class="button" href={all()}>All {count(data().apps, "app")} with this text, one by one</a></p></Show>
          </div>
        )}
      </Show>
    </div>
  );
}

const Result = (props: { href: string; count: string; problems: number; children: JSX.Element }) => (
  <li class="entry">
    <a class="result" href={props.href}>
      {props.children}
      <span class="muted num">{props.count}{props.problems ? `, ${number(props.problems)} with problems` : ""}</span>
    </a>
  </li>
);
