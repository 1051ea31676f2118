import { Show } from "solid-js";
import { count } from "../lib/text";

/** Offers the present order of a list whose rows stayed where they were. */
export const Moved = (props: { rows: number; reorder: () => void }) => (
  <Show when={props.rows}>
    <p class="moved"><button type="button" class="button" onClick={() => props.reorder()}>{count(props.rows, "row")} changed place, came or left: show the new order</button></p>
  </Show>
);
