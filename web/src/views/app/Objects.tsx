// The objects of an app with what controllers made of them, as a tree table.
import { createMemo, createSignal, For, lazy, Show, Suspense } from "solid-js";
import type { AppRef } from "../../api/client";
import type { ObjectKey, TreeNode } from "../../api/types";
import { isWell, kindOf, nameOf, objectOf, toldOf } from "../../lib/nodes";
import { objectHref } from "../../lib/objects";
import { go } from "../../lib/router";
import { count, number } from "../../lib/text";
import { createTree, onlyUnwell, setOnlyUnwell, useUnwellKey } from "../../lib/tree";
import { statusWord } from "../../lib/words";
import { Age } from "../../parts/Age";
import { Glyph } from "../../parts/Glyph";
import { Icon } from "../../parts/Icon";
import { ErrorNote, Loading } from "../../parts/Notes";
import { Name, Text } from "../../parts/Text";

const ObjectAction = lazy(() => import("../operation/ObjectAction"));

interface Line {
  node: TreeNode;
  id: string;
  depth: number;
  hasChildren: boolean;
  isOpen: boolean;
}

/** Rows that are drawn without asking: a tree of more is read in parts. */
const MOST = 500;

const isFoldedAtFirst = (node: TreeNode) => node.relation !== "app" && isWell(node);

export default function Objects(props: { app: AppRef }) {
  const [answer, again] = createTree(() => props.app);
  useUnwellKey();
  const [folds, setFolds] = createSignal<ReadonlyMap<string, boolean>>(new Map());
  const [most, setMost] = createSignal(MOST);
  const [active, setActive] = createSignal(0);
  const [acted, setActed] = createSignal<ObjectKey>();
  let table!: HTMLDivElement;

  const lines = createMemo(() => {
    const all: Line[] = [];
    const walk = (node: TreeNode, path: string, depth: number) => {
      const id = `${path}/${kindOf(node)}:${nameOf(node)}`;
      const children = onlyUnwell() ? node.children.filter((child) => !isWell(child)) : node.children;
      const isOpen = !(folds().get(id) ?? isFoldedAtFirst(node));
      all.push({ node, id, depth, hasChildren: children.length > 0, isOpen });
      if (isOpen) for (const child of children) walk(child, id, depth + 1);
    };
    const root = answer.data?.root;
    if (root) walk(root, "", 0);
    return all;
  });
  const shown = () => lines().slice(0, most());
  const fold = (line: Line, isOpen: boolean) => line.hasChildren && setFolds((was) => new Map(was).set(line.id, !isOpen));

  const href = (node: TreeNode) => {
    const object = objectOf(node);
    return object && objectHref({ cluster: props.app.cluster, object });
  };
  const open = (line: Line) => {
    const to = href(line.node);
    if (to) go(to);
  };

  function move(to: number) {
    const next = Math.max(0, Math.min(shown().length - 1, to));
    setActive(next);
    queueMicrotask(() => table.querySelector<HTMLElement>(`[data-line="${next}"]`)?.focus());
  }
  function onKeyDown(event: KeyboardEvent) {
    const line = lines()[active()];
    if (!line || event.ctrlKey || event.metaKey || event.altKey) return;
    const acts: Record<string, () => void> = {
      ArrowDown: () => move(active() + 1), ArrowUp: () => move(active() - 1), j: () => move(active() + 1), k: () => move(active() - 1),
      Home: () => move(0), End: () => move(shown().length - 1),
      ArrowRight: () => (line.isOpen ? move(active() + 1) : fold(line, true)),
      ArrowLeft: () => (line.isOpen && line.hasChildren ? fold(line, false) : move(lines().slice(0, active()).findLastIndex((one) => one.depth < line.depth))),
      Enter: () => (line.hasChildren ? fold(line, !line.isOpen) : open(line)),
      ".": () => setActed(objectOf(line.node)),
      y: () => open(line),
    };
    const act = acts[event.key];
    if (!act) return;
    event.preventDefault();
    event.stopPropagation();
    act();
  }

  return (
    <>
      <div class="log-tools">
        <label class="check"><input type="checkbox" checked={onlyUnwell()} onChange={(event) => setOnlyUnwell(event.currentTarget.checked)} /> Only what is not well</label>
        <Show when={objectOf(lines()[active()]?.node)}>
          {(object) => <a class="button" title="YAML of the chosen row (y)" href={objectHref({ cluster: props.app.cluster, object: object() })}>YAML</a>}
        </Show>
        <Show when={objectOf(lines()[active()]?.node)}>
          {(object) => <button type="button" class="button" aria-haspopup="dialog" title="Actions of the chosen row (.)" onClick={() => setActed(object())}>Actions of <Text value={`${object().kind} ${object().name}`} />…</button>}
        </Show>
      </div>
      <Show when={acted()} keyed>
        {(object) => <Suspense><ObjectAction cluster={props.app.cluster} object={object} close={() => setActed(undefined)} /></Suspense>}
      </Show>
      <ErrorNote error={answer.error} what="The objects" retry={again} />
      <Show when={answer.data} fallback={<Show when={!answer.error}><Loading what={`${props.app.cluster}, which is asked for the objects`} rows={6} /></Show>}>
        <div class="tree" role="treegrid" aria-label="Objects" ref={table} onKeyDown={onKeyDown}>
          <div class="tree-head" role="row">
            <span role="columnheader">Object</span><span role="columnheader">Status</span><span role="columnheader">Message</span><span role="columnheader" class="num">Age</span>
          </div>
          <For each={shown()}>
            {(line, index) => (
              <div class="tree-row" role="row" data-line={index()} data-well={line.node.effective === "Current"} tabIndex={index() === active() ? 0 : -1}
                aria-level={line.depth + 1} aria-expanded={line.hasChildren ? line.isOpen : undefined} onFocus={() => setActive(index())} onClick={(event) => (event.target as Element).closest("a") || fold(line, !line.isOpen)}>
                <span class="tree-name" role="gridcell" style={{ "padding-left": `${line.depth * 16}px` }}>
                  <span class="tree-fold" data-open={line.isOpen}><Show when={line.hasChildren}><Icon name="chevron" size={10} /></Show></span>
                  <Glyph status={line.node.effective} />
                  <span class="muted">{kindOf(line.node)}</span>
                  <Show when={line.node.folded} fallback={<Show when={href(line.node)} fallback={<Name value={nameOf(line.node)} />}>{(to) => <a class="object-link" href={to()} tabIndex={-1}><Name value={nameOf(line.node)} /></a>}</Show>}>{(folded) => <span>{number(folded().count)} more</span>}</Show>
                </span>
                <span role="gridcell">{statusWord(line.node.effective)}</span>
                <span role="gridcell" class="clip tree-message"><Text value={toldOf(line.node)} /></span>
                <span role="gridcell" class="num muted"><Age since={line.node.created} /></span>
              </div>
            )}
          </For>
        </div>
        <Show when={lines().length > most()}>
          <p class="grid-end muted">{number(most())} of {count(lines().length, "row")}. <button type="button" class="plain link" onClick={() => setMost((n) => n + MOST)}>Show more</button></p>
        </Show>
      </Show>
    </>
  );
}
