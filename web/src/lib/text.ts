// Text of others: names, messages, labels. It is shown as text alone, and what could deceive the eye is made visible.

// C0 and C1 controls, soft hyphen, zero-width characters, bidi controls and isolates, line and paragraph separators,
// byte order mark, interlinear annotation and tag characters.
const HOSTILE =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/u;

export interface Piece {
  text: string;
  isEscape: boolean;
}

const escapeOf = (char: string) => {
  const code = char.codePointAt(0) ?? 0;
  return code > 0xffff ? `\\u{${code.toString(16)}}` : `\\u${code.toString(16).padStart(4, "0")}`;
};

/** Splits a text into what may be shown as it is, and escapes such as `\u202e` of what may not. */
export function pieces(text: string): Piece[] {
  if (!HOSTILE.test(text)) return [{ text, isEscape: false }];
  const all: Piece[] = [];
  for (const char of text) {
    const isEscape = HOSTILE.test(char);
    const last = all.at(-1);
    const shown = isEscape ? escapeOf(char) : char;
    if (last && last.isEscape === isEscape) last.text += shown;
    else all.push({ text: shown, isEscape });
  }
  return all;
}

/** The same as one string, for attributes. */
export const plain = (text: string) => pieces(text).map((piece) => piece.text).join("");

/** "1 app", "12 apps", "1,204 apps". */
export const count = (n: number, one: string, many = `${one}s`) => `${number(n)} ${n === 1 ? one : many}`;

const format = new Intl.NumberFormat("en");
export const number = (n: number) => format.format(n);

const UNITS: [number, string][] = [[86_400, "d"], [3600, "h"], [60, "m"], [1, "s"]];

/** An age as the command line prints it: `7m`, `19d`. */
export function age(millis: number): string {
  const seconds = Math.max(0, Math.floor(millis / 1000));
  for (const [size, unit] of UNITS) if (seconds >= size) return `${Math.floor(seconds / size)}${unit}`;
  return "0s";
}

/** The exact time, in the reader's zone. */
export const exact = (time: string) =>
  new Date(time).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "long" });

/** The time of day, with the day if that is not the day of `now`. */
export function clockTime(time: string, now: number): string {
  const at = new Date(time);
  const hour = at.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
  if (at.toDateString() === new Date(now).toDateString()) return hour;
  return `${at.toLocaleDateString("en-GB", { day: "numeric", month: "short" })} ${hour}`;
}

/** A time as an input of the type `datetime-local` takes it, in the reader's zone. */
export function localInput(time: string): string {
  const at = new Date(time);
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}

/** A revision as people recognise it: branch and the first characters of the hash, or a version as it is. */
export function shortRevision(revision: string | null | undefined): string {
  if (!revision) return "";
  return revision.replace(/\b(sha(?:1|256):)?([0-9a-f]{8})[0-9a-f]{24,}\b/g, "$2");
}
