// A menu of the labels that clusters have.
import { createSignal } from "solid-js";
import { hub } from "../../api/client";
import { Menu } from "../../parts/Menu";

/** More clusters than this are not searched for labels. */
const MOST_LABELLED = 500;

export async function clusterLabels(): Promise<string[]> {
  const clusters = await hub.clusters({ limit: MOST_LABELLED }).catch(() => undefined);
  return [...new Set(clusters?.items.flatMap((one) => Object.keys(one.labels ?? {})))].sort();
}

export function LabelMenu(props: { title: string; chosen: string | undefined; choose: (label: string) => void }) {
  const [labels, setLabels] = createSignal<string[]>();
  const choices = () => {
    const all = [...new Set([...(labels() ?? []), ...(props.chosen ? [props.chosen] : [])])];
    return labels() || props.chosen ? all.map((value) => ({ value, label: value })) : undefined;
  };
  return (
    <Menu label={props.title} isSingle chosen={props.chosen ? [props.chosen] : []} choices={choices()} onOpen={() => void clusterLabels().then(setLabels)}
      note={labels()?.length === 0 ? "No cluster has a label." : undefined} choose={(value) => props.choose(value)} />
  );
}
