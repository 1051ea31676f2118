// Changes of the app's state, its syncs, and the operations of users, the latest first.
import { For, Match, Show, Switch } from "solid-js";
import { type AppRef, hub } from "../../api/client";
import type { HistoryRow } from "../../api/types";
import { createAnswer } from "../../lib/answer";
import { hubNow } from "../../lib/clock";
import { outcomeWords, VERB_TITLES, type VerbName } from "../../lib/operation";
import { refText } from "../../lib/refs";
import { withQuery } from "../../lib/router";
import { clockTime, exact, shortRevision } from "../../lib/text";
import { Age } from "../../parts/Age";
import { SyncGlyph } from "../../parts/Glyph";
import { ErrorNote, Loading } from "../../parts/Notes";
import { Text } from "../../parts/Text";
import { ChangeGlyph, ChangeWords } from "../attention/Changes";
import { Diff } from "../operation/Diff";

type Sync = Extract<HistoryRow, { type: "sync" }>;
type Transition = Extract<HistoryRow, { type: "transition" }>;
type Operation = Extract<HistoryRow, { type: "operation" }>;

const timeOf = (row: HistoryRow) => (row.type === "operation" ? row.operation.began : row.at);

export default function History(props: { app: AppRef }) {
  const [answer, again] = createAnswer(
    () => ({ name: refText(props.app), home: props.app.home }),
    async (_, signal) => {
      const data = await hub.history(props.app, { limit: 100 }, signal);
      return { items: data.items.map((item, index) => ({ ...item, at: timeOf(item), id: `${item.type}|${timeOf(item)}|${index}` })), historySince: data.historySince };
    },
    { every: 3000 },
  );
  return (
    <>
      <ErrorNote error={answer.error} what="The history" retry={again} />
      <Show when={answer.data} fallback={<Show when={!answer.error}><Loading what="the history" rows={4} /></Show>}>
        {(data) => (
          <>
            <ul class="log-list">
              <For each={data().items} fallback={<li class="muted">Nothing is recorded yet.</li>}>
                {(item) => (
                  <li class="log-row">
                    <a class="muted log-when" href={withQuery({ at: item.at }, "/time", new URLSearchParams())} title={`${exact(item.at)}; all apps at this moment`}><time dateTime={item.at}>{clockTime(item.at, hubNow())}</time></a>
                    <Switch>
                      <Match when={item.type === "sync" && (item as Sync)}>
                        {(sync) => (
                          <div>
                            <p class="step-head"><SyncGlyph state={sync().result === "Failed" ? "Failed" : sync().result === "Running" ? "Syncing" : "Synced"} /> <span class="strong">Sync {sync().result.toLowerCase()}</span>
                              <span class="mono muted" title={sync().revision}>{shortRevision(sync().revision)}</span></p>
                            <Show when={sync().message}><p><Text value={sync().message} /></p></Show>
                          </div>
                        )}
                      </Match>
                      <Match when={item.type === "operation" && (item as Operation).operation}>
                        {(operation) => {
                          const outcome = () => operation().items[0]?.outcome;
                          const words = () => { const known = outcome(); return known ? outcomeWords(known, operation().operation) : { text: "Running", why: "", isGood: undefined }; };
                          return (
                            <div>
                              <p class="step-head"><span class="strong">{VERB_TITLES[operation().operation as VerbName] ?? operation().operation}</span> by <Text value={operation().by ?? "the user of the hub"} />
                                <span class="operation-result" data-good={String(words().isGood ?? "unknown")}>{words().text}</span></p>
                              <Show when={words().why}><p class="muted"><Text value={words().why} /></p></Show>
                              <details class="cover"><summary>{operation().dryRun ? "What was checked" : operation().items[0]?.writes.every((one) => one.state === "stored") ? "What was written" : "What was to be written"}</summary><For each={operation().items[0]?.writes}>{(one) => <Diff write={one.write} />}</For></details>
                            </div>
                          );
                        }}
                      </Match>
                      <Match when={item.type === "transition" && (item as Transition)}>
                        {(change) => (
                          <p class="step-head">
                            <ChangeGlyph change={change()} /> <span><ChangeWords change={change()} /></span>
                          </p>
                        )}
                      </Match>
                    </Switch>
                  </li>
                )}
              </For>
            </ul>
            <Show when={data().historySince}>{(since) => <p class="muted grid-end">The history reaches back <Age since={since()} />; before that nothing was observed.</p>}</Show>
          </>
        )}
      </Show>
    </>
  );
}
