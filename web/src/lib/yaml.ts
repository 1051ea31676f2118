// YAML of a JSON value, line by line, so that a view can fold what lies deeper.

export interface YamlLine {
  /** The place of the value in the object, for what is folded: `/metadata/managedFields`. */
  path: string;
  /** Columns before the text. */
  indent: number;
  /** The key with its colon, after the dashes of lists; empty within a text of several lines. */
  key: string;
  value: string;
  /** The number of entries of a map or list that can be folded; undefined for another value. */
  entries: number | undefined;
}

/** A text that YAML reads as it stands, and not as a number, a truth, a date or nothing. */
const PLAIN = /^(?![-?:,[\]{}#&*!|>'"%@`\s~=<])[^\p{C}\u2028\u2029\ufeff]*$/u;
const AMBIGUOUS = /^(y|n|yes|no|on|off|true|false|null|[-+]?\.(inf|nan)|[-+]?[.\d][\d._,:eExXoOa-fA-F+-]*([TZ ].*)?)$/i;
/** A text of several lines that a block keeps as it is. */
const BLOCK = /^(?!\s)[^\p{C}\u2028\u2029\ufeff]*(\n[^\p{C}\u2028\u2029\ufeff]*)+$/u;

/** A text in double quotes, in which what could deceive the eye is escaped. */
const quoted = (text: string) =>
  JSON.stringify(text).replace(/[\p{C}\u2028\u2029]/gu, (char) => {
    const code = char.codePointAt(0) ?? 0;
    return code > 0xffff ? `\\U${code.toString(16).padStart(8, "0")}` : `\\u${code.toString(16).padStart(4, "0")}`;
  });

const scalar = (text: string) =>
  PLAIN.test(text) && text !== "" && !AMBIGUOUS.test(text) && !/: |:$| #|\s$/.test(text) ? text : quoted(text);

const isMap = (value: unknown): value is object => value !== null && typeof value === "object" && !Array.isArray(value) && Object.keys(value).length > 0;

/** Returns the lines of `value`, without those of the maps and lists for whose path `isFolded` returns true. */
export function yamlLines(value: unknown, isFolded: (path: string) => boolean): YamlLine[] {
  const lines: YamlLine[] = [];
  const add = (path: string, indent: number, key: string, text: string, entries?: number) => lines.push({ path, indent, key, value: text, entries });

  /** Adds a value whose key begins at the column `indent`, after the dash of a list if it is the first of an entry. */
  function put(value: unknown, path: string, indent: number, key: string, dash = "") {
    const line = (text: string, entries?: number) => add(path, indent - dash.length, dash + key, text, entries);
    if (typeof value === "string" && BLOCK.test(value) && !/[^\S\n]\n|[^\S\n]$|\n\n$/.test(value)) {
      const isEnded = value.endsWith("\n");
      line(isEnded ? "|" : "|-");
      for (const text of (isEnded ? value.slice(0, -1) : value).split("\n")) add(path, text ? indent + 2 : 0, "", text);
    } else if (Array.isArray(value) && value.length) {
      line("", value.length);
      if (!isFolded(path)) value.forEach((one, index) => item(one, `${path}/${index}`, indent));
    } else if (isMap(value)) {
      line("", Object.keys(value).length);
      if (!isFolded(path)) members(value, path, indent + 2);
    } else line(typeof value === "string" ? scalar(value) : JSON.stringify(value));
  }

  const members = (map: object, path: string, indent: number, dash = "") =>
    Object.entries(map).forEach(([name, value], index) => put(value, `${path}/${name}`, indent, `${scalar(name)}:`, index ? "" : dash));

  /** Adds an entry of a list; the first member of a map stands on the line of the dash. */
  function item(value: unknown, path: string, indent: number) {
    if (isMap(value)) members(value, path, indent + 2, "- ");
    else put(value, path, indent + 2, "", "- ");
  }

  if (isMap(value)) members(value, "", 0);
  else put(value, "", 0, "");
  return lines;
}

/** The text of lines as a file. */
export const yamlText = (lines: YamlLine[]) =>
  lines.map(({ indent, key, value }) => `${" ".repeat(indent)}${key}${key && value && !key.endsWith(" ") ? " " : ""}${value}`.trimEnd()).join("\n") + "\n";
