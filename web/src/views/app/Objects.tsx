// The objects of an app with what controllers made of them, as a tree table of virtual rows.
import { createVirtualizer, defaultRangeExtractor } from "@tanstack/solid-virtual";
import { createEffect, createMemo, createSignal, For, lazy, on, onCleanup, Show, Suspense } from "solid-js";
import type { AppRef } from "../../api/client";
import type { ObjectKey, TreeNode } from "../../api/types";
import { createHeld, createHold } from "../../lib/held";
import { isWell, kindOf, nameOf, objectOf, toldOf } from "../../lib/nodes";
import { objectHref } from "../../lib/objects";
import { go, param, withQuery } from "../../lib/router";
import { number } from "../../lib/text";
import { createTree, onlyUnwell, setOnlyUnwell, useUnwellKey } from "../../lib/tree";
import { statusWord } from "../../lib/words";
import { Age } from "../../parts/Age";
import { Glyph } from "../../parts/Glyph";
import { Icon } from "../../parts/Icon";
import { Moved } from "../../parts/Moved";
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

const ROW_HEIGHT = 28;

const isFoldedAtFirst = (node: TreeNode) => node.relation !== "app" && isWell(node);

export default function Objects(props: { app: AppRef }) {
  const isWhole = () => param("all") === "1";
  const setWhole = (is: boolean) => go(withQuery({ all: is ? "1" : undefined }), { replace: true });
  const [answer, again] = createTree(() => props.app, isWhole);
  useUnwellKey();
  const [folds, setFolds] = createSignal<ReadonlyMap<string, boolean>>(new Map());
  const [active, setActive] = createSignal(0);
  const [acted, setActed] = createSignal<ObjectKey>();
  const [table, setTable] = createSignal<HTMLDivElement>();

  const present = createMemo(() => {
    const all: Line[] = [];
    const walk = (node: TreeNode, path: string, depth: number) => {
      const id = `${path}/${kindOf(node)}:${nameOf(node)}`;
      const children = onlyUnwell() ? node.children.filter((child) => !isWell(child)) : node.children;
      const isOpen = !(folds().get(id) ?? isFoldedAtFirst(node));
      all.push({ node, id, depth, hasChildren: children.length > 0, isOpen });
      if (isOpen) for (const child of children) walk(child, id, depth + 1);
    };
    const root = answer.data?.root;
    if (!root) return undefined;
    walk(root, "", 0);
    return all;
  });
  const hold = createHold();
  const held = createHeld(present, hold.isHeld);
  const lines = held.items;
  // What the reader does is shown at once.
  createEffect(on([folds, onlyUnwell, isWhole], () => held.release(), { defer: true }));
  // What scrolls is the drawer, or the page of the app; the rows begin somewhere below its top.
  const scrolled = () => table()?.closest<HTMLElement>(".drawer, .app-page") ?? null;
  const [above, setAbove] = createSignal(0);
  createEffect(() => {
    const [rows, box] = [table(), scrolled()];
    if (!rows || !box) return;
    const measure = () => setAbove(rows.getBoundingClientRect().top - box.getBoundingClientRect().top + box.scrollTop);
    const observer = new ResizeObserver(measure);
    for (const part of box.children) observer.observe(part);
    onCleanup(() => observer.disconnect());
  });
  const virtualizer = createVirtualizer({
    get count() { return lines().length; },
    getScrollElement: scrolled,
    estimateSize: () => ROW_HEIGHT,
    get scrollMargin() { return above(); },
    overscan: 8,
    // The head of the drawer covers what is scrolled below it.
    scrollPaddingStart: 80,
    scrollPaddingEnd: ROW_HEIGHT,
    // The row with the focus stays in the document, wherever the table is scrolled.
    rangeExtractor: (range) => [...new Set([...defaultRangeExtractor(range), Math.min(active(), lines().length - 1)])].filter((index) => index >= 0).sort((a, b) => a - b),
  });
  createEffect(() => { if (active() >= lines().length) setActive(Math.max(0, lines().length - 1)); });
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
    const next = Math.max(0, Math.min(lines().length - 1, to));
    setActive(next);
    virtualizer.scrollToIndex(next);
    const focus = () => {
      const row = table()?.querySelector<HTMLElement>(`[data-line="${next}"]`);
      row?.focus({ preventScroll: true });
      return row;
    };
    // A row that is far away exists once the scrolling has taken effect.
    if (!focus()) requestAnimationFrame(focus);
  }
  function onKeyDown(event: KeyboardEvent) {
    const line = lines()[active()];
    if (!line || event.ctrlKey || event.metaKey || event.altKey) return;
    const acts: Record<string, () => void> = {
      ArrowDown: () => move(active() + 1), ArrowUp: () => move(active() - 1), j: () => move(active() + 1), k: () => move(active() - 1),
      Home: () => move(0), End: () => move(lines().length - 1),
      ArrowRight: () => (line.isOpen ? move(active() + 1) : fold(line, true)),
      ArrowLeft: () => (line.isOpen && line.hasChildren ? fold(line, false) : move(lines().slice(0, active()).findLastIndex((one) => one.depth < line.depth))),
      Enter: () => (line.node.folded ? setWhole(true) : line.hasChildren ? fold(line, !line.isOpen) : open(line)),
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
        <label class="check"><input type="checkbox" checked={isWhole()} onChange={(event) => setWhole(event.currentTarget.checked)} /> Equal objects one by one</label>
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
        <Moved rows={held.moved()} reorder={held.release} />
        <div class="tree" role="treegrid" aria-label="Objects" aria-rowcount={lines().length + 1} ref={setTable} onKeyDown={onKeyDown} {...hold.handlers}>
          <div class="tree-head" role="row" aria-rowindex="1">
            <span role="columnheader">Object</span><span role="columnheader">Status</span><span role="columnheader">Message</span><span role="columnheader" class="num">Age</span>
          </div>
          <div class="tree-body" role="rowgroup" style={{ height: `${virtualizer.getTotalSize()}px` }}>
          <For each={virtualizer.getVirtualItems()}>
            {(item) => (
              <Show when={lines()[item.index]}>{(line) => (
              <div class="tree-row" role="row" data-line={item.index} data-well={line().node.effective === "Current"} data-left={held.hasLeft(line().id)} tabIndex={item.index === active() ? 0 : -1} aria-rowindex={item.index + 2} style={{ transform: `translateY(${item.start - above()}px)` }}
                aria-level={line().depth + 1} aria-expanded={line().hasChildren ? line().isOpen : undefined} onFocus={() => setActive(item.index)} onClick={(event) => (event.target as Element).closest("a, button") || fold(line(), !line().isOpen)}>
                <span class="tree-name" role="gridcell" style={{ "padding-left": `${line().depth * 16}px` }}>
                  <span class="tree-fold" data-open={line().isOpen}><Show when={line().hasChildren}><Icon name="chevron" size={10} /></Show></span>
                  <Glyph status={line().node.effective} />
                  <span class="muted">{kindOf(line().node)}</span>
                  <Show when={line().node.folded} fallback={<Show when={href(line().node)} fallback={<Name value={nameOf(line().node)} />}>{(to) => <a class="object-link" href={to()} tabIndex={-1}><Name value={nameOf(line().node)} /></a>}</Show>}>{(folded) => <button type="button" class="plain link" tabIndex={-1} onClick={() => setWhole(true)}>{number(folded().count)} more</button>}</Show>
                </span>
                <span role="gridcell">{held.hasLeft(line().id) ? "gone" : statusWord(line().node.effective)}</span>
                <span role="gridcell" class="clip tree-message"><Text value={toldOf(line().node)} /></span>
                <span role="gridcell" class="num muted"><Age since={line().node.created} /></span>
              </div>
              )}</Show>
            )}
          </For>
          </div>
        </div>
      </Show>
    </>
  );
}
