import { type JSX, Show } from "solid-js";
import { number } from "../lib/text";

/** A list with its title and the number of all that it is of; nothing at all for none. */
export const Section = (props: { title: string; count: number; children: JSX.Element }) => (
  <Show when={props.count}>
    <section class="section">
      <h2 class="section-head">{props.title} <span class="muted">{number(props.count)}</span></h2>
      <ul class="entries">{props.children}</ul>
    </section>
  </Show>
);
