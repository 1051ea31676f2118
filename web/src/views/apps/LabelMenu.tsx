// A menu of the labels that clusters have.
import { createSignal } from "solid-js";
import { hub } from "../../api/client";
import { number } from "../../lib/text";
import { Menu } from "../../parts/Menu";

/** More clusters than this are not searched for labels. */
const MOST_LABELLED = 500;

/** The labels of clusters, and how many clusters have others perhaps; undefined if the hub did not say. */
export async function clusterLabels(): Promise<{ labels: string[]; unread: number } | undefined> {
  const clusters = await hub.clusters({ limit: MOST_LABELLED }).catch(() => undefined);
  if (!clusters) return undefined;
  const labels = [...new Set(clusters.items.flatMap((one) => Object.keys(one.labels ?? {})))].sort();
  return { labels, unread: clusters.total - clusters.items.length };
}

export function LabelMenu(props: { title: string; chosen: string | undefined; choose: (label: string) => void }) {
  const [labels, setLabels] = createSignal<string[]>();
  const [note, setNote] = createSignal<string>();
  async function read() {
    const known = await clusterLabels();
    setLabels(known?.labels ?? []);
    setNote(!known ? "The hub did not say which labels there are." : known.unread ? `${number(known.unread)} more clusters may have others.` : known.labels.length ? undefined : "No cluster has a label.");
  }
  const choices = () => {
    const all = [...new Set([...(labels() ?? []), ...(props.chosen ? [props.chosen] : [])])];
    return labels() || props.chosen ? all.map((value) => ({ value, label: value })) : undefined;
  };
  return (
    <Menu label={props.title} isSingle chosen={props.chosen ? [props.chosen] : []} choices={choices()} onOpen={() => void read()}
      note={note()} choose={(value) => props.choose(value)} />
  );
}
