// One app in one cluster, as a drawer beside a list or as a page of its own.
import { createMemo, lazy, Match, Show, Suspense, Switch } from "solid-js";
import { type AppRef, hub } from "../../api/client";
import type { AppRow } from "../../api/types";
import { createAnswer } from "../../lib/answer";
import { appCommand } from "../../lib/command";
import { useKeys } from "../../lib/keys";
import { fullName, refText } from "../../lib/refs";
import { go, param, withQuery } from "../../lib/router";
import { deliveryWord } from "../../lib/words";
import { Drawer } from "../../parts/Drawer";
import { StatusMark } from "../../parts/Marks";
import { ErrorNote, Loading, Note, ViewCommand } from "../../parts/Notes";
import { Tabs } from "../../parts/Tabs";
import { Text } from "../../parts/Text";
import { Acting } from "../operation/Acting";
import { Sections } from "./Sections";
import { sentenceOf } from "./sentence";

const Objects = lazy(() => import("./Objects"));
const Graph = lazy(() => import("./Graph"));
const Why = lazy(() => import("./Why"));
const Events = lazy(() => import("./Events"));
const History = lazy(() => import("./History"));
const InClusters = lazy(() => import("./InClusters"));
const Relations = lazy(() => import("./Relations"));
const Logs = lazy(() => import("./Logs"));
const Trust = lazy(() => import("./Trust"));

const TABS = [
  { name: "why", title: "Why" },
  { name: "objects", title: "Objects" },
  { name: "graph", title: "Graph" },
  { name: "events", title: "Events" },
  { name: "history", title: "History" },
  { name: "relations", title: "Relations" },
  { name: "clusters", title: "Clusters" },
  { name: "logs", title: "Logs" },
  { name: "trust", title: "Trust" },
];

export default function AppPage(props: { app: AppRef; isPage: boolean }) {
  const [answer, again] = createAnswer(
    () => ({ ...props.app }),
    async (ref, signal) => ({ row: (await hub.app(ref, signal)).items[0] }),
    { every: 1000 },
  );
  const row = () => answer.data?.row;
  const tab = () => TABS.find((one) => one.name === param("tab"))?.name ?? "why";
  const choose = (name: string) => go(withQuery({ tab: name === "why" ? undefined : name }), { replace: true });
  const page = (ref: AppRef) => withQuery({ home: ref.home, tab: param("tab") }, `/app/${refText(ref)}`, new URLSearchParams());
  const close = () => go(withQuery({ app: undefined, home: undefined, tab: undefined }));
  useKeys("App", [
    { keys: "d", what: "Why", act: () => choose("why") },
    { keys: "o", what: "Objects", act: () => choose("objects") },
    { keys: "v", what: "Graph", act: () => choose("graph") },
    { keys: "e", what: "Events", act: () => choose("events") },
    { keys: "h", what: "History", act: () => choose("history") },
    { keys: "w", what: "Relations", act: () => choose("relations") },
    { keys: "i", what: "Clusters", act: () => choose("clusters") },
    { keys: "l", what: "Logs", act: () => choose("logs") },
    { keys: "p", what: "Previous run", act: () => go(withQuery({ tab: "logs", previous: "1" }), { replace: true }) },
    { keys: "u", what: "Trust: reasons for doubt", act: () => choose("trust") },
  ]);

  const title = () => (
    <>
      <p class="drawer-kicker muted"><Text value={props.app.cluster} /> · {deliveryWord(props.app.delivery)}<Show when={props.app.namespace}> · <Text value={props.app.namespace} /></Show></p>
      <Show when={props.isPage} fallback={<h2 class="drawer-title"><Text value={props.app.name} /></h2>}><h1 class="drawer-title"><Text value={props.app.name} /></h1></Show>
    </>
  );
  const body = () => (
    <>
      <ErrorNote error={answer.error} what={`The app ${props.app.name} in ${props.app.cluster}`} retry={again} />
      <Show when={answer.error?.status === 404}>
        <div class="drawer-body"><p class="muted">It may have gone. Its history is kept:</p><Suspense><History app={props.app} /></Suspense></div>
      </Show>
      <Show when={answer.data} fallback={<Show when={!answer.error}><div class="drawer-body"><Loading what={`the app ${props.app.name}`} rows={5} /></div></Show>}>
        <Show when={row()} fallback={<Note kind="quiet" title="The app is gone." />}>
          {(known) => <Known app={props.app} row={known()} tab={tab()} choose={choose} />}
        </Show>
      </Show>
    </>
  );
  return (
    <Show when={props.isPage} fallback={<Drawer label={`App ${props.app.name} in ${props.app.cluster}`} close={close} full={() => go(page(props.app))} title={title()}>{body()}</Drawer>}>
      <div class="view app-page"><header class="app-page-head">{title()}</header>{body()}</div>
    </Show>
  );
}

function Known(props: { app: AppRef; row: AppRow; tab: string; choose: (tab: string) => void }) {
  // The question of a tab depends on the name alone, not on each change of the row.
  const ref = createMemo(() => props.app, undefined, { equals: (a, b) => refText(a) === refText(b) && a.home === b.home });
  // Of an app whose objects the hub does not follow the row tells little: its cluster is looked at for the one who opens it.
  const [looked] = createAnswer(
    () => (props.row.unobserved?.includes("objects") ? { name: fullName(ref()), cluster: ref().cluster } : undefined),
    async ({ name, cluster }, signal) => {
      const data = await hub.detail({ view: "app", name, apps: { clusters: [cluster], namespace: null } }, signal);
      return { row: data.items[0]?.detail.app };
    },
    { every: 5000 },
  );
  const row = () => (props.row.unobserved?.includes("objects") ? looked.data?.row : undefined) ?? props.row;
  return (
    <div class="drawer-body">
      <div class="lead">
        <StatusMark health={row().health} effective={row().effective} freshness={row().freshness} suspended={row().suspended} said={row().said} />
        <p>{sentenceOf(row())}</p>
      </div>
      <Acting app={ref()} row={props.row} />
      <Sections row={props.row} />
      <Tabs label="About the app" tabs={TABS} chosen={props.tab} choose={props.choose}>
        <ViewCommand text={appCommand(ref(), props.tab)} />
        <Suspense fallback={<Loading what="this part of the page" rows={3} />}>
          <Switch>
            <Match when={props.tab === "why"}><Why name={fullName(ref())} cluster={ref().cluster} /></Match>
            <Match when={props.tab === "objects"}><Objects app={ref()} /></Match>
            <Match when={props.tab === "graph"}><Graph app={ref()} /></Match>
            <Match when={props.tab === "events"}><Events app={ref()} /></Match>
            <Match when={props.tab === "history"}><History app={ref()} /></Match>
            <Match when={props.tab === "relations"}><Relations app={ref()} /></Match>
            <Match when={props.tab === "clusters"}><InClusters app={ref()} appKey={props.row.key} /></Match>
            <Match when={props.tab === "logs"}><Logs name={fullName(ref())} cluster={ref().cluster} /></Match>
            <Match when={props.tab === "trust"}><Trust app={ref()} /></Match>
          </Switch>
        </Suspense>
      </Tabs>
    </div>
  );
}

