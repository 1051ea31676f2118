import { expect, test } from "vitest";
import { yamlLines, yamlText } from "./yaml";

const text = (value: unknown) => yamlText(yamlLines(value, () => false));

test("maps, lists and scalars are written as kubectl writes them", () => {
  const object = { apiVersion: "v1", metadata: { name: "web", labels: {} }, list: [{ name: "a", ports: [80, 443] }, { name: "b" }], none: null, yes: true, empty: [] };
  expect(text(object)).toBe(`apiVersion: v1
metadata:
  name: web
  labels: {}
list:
- name: a
  ports:
  - 80
  - 443
- name: b
none: null
"yes": true
empty: []
`);
});

test("texts that YAML would read as something else are quoted", () => {
  for (const value of ["true", "no", "1", "1.5", "1e3", "0x1f", ".inf", "-.Inf", ".NaN", "2026-01-01", "2026-01-01T00:00:00Z", "null", "~", "", " a", "a ", "a: b", "a:", "a #b", "- a", "*a", "&a", "!a", "%a", "@a", "`a", "{a", "[a", "'a", "\"a", "a\u0007b", "=", "<<"]) {
    expect(text({ key: value }), value).toBe(`key: ${JSON.stringify(value)}\n`);
  }
  expect(text({ key: "a\u202eb\u{e0041}\\" })).toBe('key: "a\\u202eb\\U000e0041\\\\"\n');
  for (const value of ["web", "a-b_c", "nginx:1.25", "http://x/y?z", "25%", "a#b", "Deployment is available. Replicas: 1".replace(": ", "="), "v1.36.3", "100m"]) {
    expect(text({ key: value }), value).toBe(`key: ${value}\n`);
  }
});

test("texts of several lines are blocks, unless a block would change them", () => {
  expect(text({ a: "one\ntwo\n", b: "one\n\nthree" })).toBe("a: |\n  one\n  two\nb: |-\n  one\n\n  three\n");
  for (const value of [" one\ntwo", "one \ntwo", "one\ntwo  ", "a\n  ", "one\ntwo\n\n", "one\u0007\ntwo"]) expect(text({ key: value })).toBe(`key: ${JSON.stringify(value)}\n`);
});

test("what is folded counts its entries and has no lines", () => {
  const lines = yamlLines({ metadata: { managedFields: [1, 2, 3], name: "web" } }, (path) => path === "/metadata/managedFields");
  expect(lines.map((line) => [line.path, line.entries])).toEqual([["/metadata", 2], ["/metadata/managedFields", 3], ["/metadata/name", undefined]]);
});

test("a long run of spaces costs no more than its length", () => {
  const value = `a\n${" ".repeat(500_000)}x`;
  expect(text({ key: value }).length).toBeGreaterThan(500_000);
});
