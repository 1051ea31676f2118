// The objects of an app as a graph from left to right. The tab Objects has the same as a tree table.
import { createEffect, createMemo, createSignal, For, Index, Show } from "solid-js";
import type { AppRef } from "../../api/client";
import { drawingOf, type Placed } from "../../lib/graph";
import { kindOf, nameOf, objectOf, toldOf } from "../../lib/nodes";
import { objectHref } from "../../lib/objects";
import { go } from "../../lib/router";
import { count, number, plain } from "../../lib/text";
import { createTree, onlyUnwell, setOnlyUnwell, useUnwellKey } from "../../lib/tree";
import { statusWord } from "../../lib/words";
import { Age } from "../../parts/Age";
import { Glyph } from "../../parts/Glyph";
import { ErrorNote, Loading } from "../../parts/Notes";
import { Name } from "../../parts/Text";

/** Nodes that are drawn at most; of more the important ones. */
const MOST = 500;
/** The size of a node and the space around it, in pixels. */
const BOX = { width: 208, height: 40, right: 48, below: 12 };
const ZOOMS = [0.5, 0.75, 1, 1.25, 1.5];
/** Below this zoom texts would be smaller than 11 px, so that only glyphs are drawn. */
const WITH_TEXT = 0.9;

const left = (placed: Placed) => placed.depth * (BOX.width + BOX.right);
const top = (placed: Placed) => placed.row * (BOX.height + BOX.below);

export default function Graph(props: { app: AppRef }) {
  const [answer, again] = createTree(() => props.app);
  useUnwellKey();
  const [zoom, setZoom] = createSignal(1);
  const [active, setActive] = createSignal(0);
  const drawing = createMemo(() => {
    const root = answer.data?.root;
    return root && drawingOf(root, MOST, onlyUnwell());
  });
  let board!: HTMLDivElement;
  // A node that is left out now has the keys no longer.
  createEffect(() => { if (active() >= (drawing()?.nodes.length ?? 1)) setActive(0); });

  const parentOf = (placed: Placed) => drawing()?.nodes[placed.parent];
  const isOnPath = (placed: Placed) => placed.isOnPath && !!parentOf(placed)?.isOnPath;
  // The cause comes into view once; after that the reader decides what is shown.
  let isShown = false;
  createEffect(() => {
    const cause = drawing()?.nodes.findLastIndex((placed) => placed.isOnPath) ?? -1;
    if (isShown || cause < 1) return;
    isShown = true;
    requestAnimationFrame(() => board?.querySelector(`[data-node="${cause}"]`)?.scrollIntoView({ block: "nearest", inline: "nearest" }));
  });
  const edge = (placed: Placed) => {
    const parent = parentOf(placed);
    if (!parent) return "";
    const [x, y] = [left(parent) + BOX.width, top(parent) + BOX.height / 2];
    return `M${x} ${y}H${x + BOX.right / 2}V${top(placed) + BOX.height / 2}H${left(placed)}`;
  };
  const href = (placed: Placed) => {
    const object = objectOf(placed.node);
    return object && objectHref({ cluster: props.app.cluster, object });
  };
  const label = (placed: Placed) => plain([nameOf(placed.node), statusWord(placed.node.effective), toldOf(placed.node)].filter(Boolean).join(" · "));

  function move(to: number) {
    if (to < 0) return;
    setActive(to);
    const node = board.querySelector<HTMLElement>(`[data-node="${to}"]`);
    node?.focus();
    node?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }
  function onKeyDown(event: KeyboardEvent) {
    const nodes = drawing()?.nodes ?? [];
    const own = nodes[active()];
    if (!own || event.ctrlKey || event.metaKey || event.altKey) return;
    /** The next node of the same depth, above (-1) or below (1). */
    const beside = (step: 1 | -1) => {
      const column = nodes.map((placed, index) => ({ placed, index })).filter(({ placed }) => placed.depth === own.depth).sort((a, b) => a.placed.row - b.placed.row);
      return column[column.findIndex(({ index }) => index === active()) + step]?.index ?? -1;
    };
    const acts: Record<string, () => void> = {
      ArrowRight: () => move(nodes.findIndex((placed) => placed.parent === active())),
      ArrowLeft: () => move(own.parent),
      ArrowDown: () => move(beside(1)),
      ArrowUp: () => move(beside(-1)),
      y: () => { const to = href(own); if (to) go(to); },
    };
    const act = acts[event.key];
    if (!act) return;
    event.preventDefault();
    event.stopPropagation();
    act();
  }
  const nextZoom = (step: number) => ZOOMS[ZOOMS.indexOf(zoom()) + step];

  return (
    <>
      <div class="log-tools">
        <label class="check"><input type="checkbox" checked={onlyUnwell()} onChange={(event) => setOnlyUnwell(event.currentTarget.checked)} /> Only what is not well</label>
        <span class="grow" />
        <Show when={drawing()}>{(data) => <span class="muted">{data().shown < data().all ? `${number(data().shown)} of ${count(data().all, "object")}` : count(data().all, "object")}</span>}</Show>
        <span class="zoom">
          <button type="button" class="button" aria-label="Smaller" disabled={!nextZoom(-1)} onClick={() => setZoom((was) => nextZoom(-1) ?? was)}>−</button>
          <button type="button" class="button" aria-label="Larger" disabled={!nextZoom(1)} onClick={() => setZoom((was) => nextZoom(1) ?? was)}>+</button>
        </span>
      </div>
      <ErrorNote error={answer.error} what="The objects" retry={again} />
      <Show when={drawing()} fallback={<Show when={!answer.error}><Loading what={`${props.app.cluster}, which is asked for the objects`} rows={6} /></Show>}>
        {(data) => (
          <div class="graph" role="group" aria-label="Graph of the objects; arrow keys follow its edges" ref={board} onKeyDown={onKeyDown} data-plain={zoom() < WITH_TEXT}>
            <div class="graph-board" style={{ width: `${(data().depth * (BOX.width + BOX.right) - BOX.right) * zoom()}px`, height: `${(data().rows * (BOX.height + BOX.below)) * zoom()}px` }}>
              <div class="graph-scaled" style={{ transform: `scale(${zoom()})` }}>
                <svg class="graph-edges" aria-hidden="true" width={data().depth * (BOX.width + BOX.right)} height={data().rows * (BOX.height + BOX.below)}>
                  {/* Those on the way to the cause are drawn last, over the others. */}
                  <For each={[false, true]}>{(isPath) => <For each={data().nodes.filter((placed) => isOnPath(placed) === isPath)}>{(placed) => <path d={edge(placed)} data-path={isPath} />}</For>}</For>
                </svg>
                <Index each={data().nodes}>
                  {(placed, index) => (
                    <a class="graph-node" href={href(placed())} data-node={index} data-path={placed().isOnPath} role={href(placed()) ? undefined : "link"} aria-disabled={href(placed()) ? undefined : true} tabIndex={index === active() ? 0 : -1} title={label(placed())}
                      style={{ left: `${left(placed())}px`, top: `${top(placed())}px`, width: `${BOX.width}px`, height: `${BOX.height}px` }} onFocus={() => setActive(index)}>
                      <Glyph status={placed().node.effective} />
                      <span class="graph-text">
                        <span class="graph-kind muted">{kindOf(placed().node) || "App"}<Show when={placed().node.created}> · <Age since={placed().node.created} /></Show></span>
                        <Show when={placed().node.folded} fallback={<Name value={nameOf(placed().node)} class="strong" />}>{(folded) => <span>{number(folded().count)} more</span>}</Show>
                      </span>
                      <span class="reader">, {statusWord(placed().node.effective)} {plain(toldOf(placed().node))}</span>
                      <Show when={placed().hidden}><span class="tag">+{number(placed().hidden)}</span></Show>
                    </a>
                  )}
                </Index>
              </div>
            </div>
          </div>
        )}
      </Show>
    </>
  );
}
