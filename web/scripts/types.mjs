// Writes src/api/types.ts from docs/openapi.json: a TypeScript type for each schema of the hub's API.
// `node scripts/types.mjs --check` writes nothing and fails if the committed file is not what it would write.
import { readFileSync, writeFileSync } from "node:fs";

const from = new URL("../../docs/openapi.json", import.meta.url);
const to = new URL("../src/api/types.ts", import.meta.url);

const api = JSON.parse(readFileSync(from, "utf8"));
const schemas = api.components.schemas;

function typeOf(schema, indent) {
  if (schema === true || schema === undefined) return "unknown";
  if (schema.$ref) return schema.$ref.split("/").pop();
  if ("const" in schema) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  const shape = schema.properties || schema.type === "object" ? objectOf(schema, indent) : undefined;
  const choices = schema.oneOf ?? schema.anyOf;
  if (choices) {
    const union = [...new Set(choices.map((choice) => typeOf(choice, indent)))].join(" | ");
    return schema.properties ? `(${union}) & ${shape}` : union;
  }
  if (schema.allOf) {
    const parts = schema.allOf.map((part) => `(${typeOf(part, indent)})`);
    return (schema.properties ? [...parts, shape] : parts).join(" & ");
  }
  if (Array.isArray(schema.type)) {
    return schema.type.map((type) => typeOf({ ...schema, type }, indent)).join(" | ");
  }
  switch (schema.type) {
    case "string":
      return "string";
    case "integer":
    case "number":
      return "number";
    case "boolean":
      return "boolean";
    case "null":
      return "null";
    case "array": {
      const item = typeOf(schema.items, indent);
      return /[ |&]/.test(item) ? `(${item})[]` : `${item}[]`;
    }
    case "object":
      return shape;
    default:
      return "unknown";
  }
}

function objectOf(schema, indent) {
  const properties = Object.entries(schema.properties ?? {});
  if (properties.length === 0) {
    const values = schema.additionalProperties;
    return values ? `Record<string, ${typeOf(values, indent)}>` : "Record<string, unknown>";
  }
  const required = new Set(schema.required ?? []);
  const inner = `${indent}  `;
  const lines = properties.flatMap(([name, value]) => {
    const key = /^[A-Za-z_$][\w$]*$/.test(name) ? name : JSON.stringify(name);
    return [...docOf(value, inner), `${inner}${key}${required.has(name) ? "" : "?"}: ${typeOf(value, inner)};`];
  });
  return `{\n${lines.join("\n")}\n${indent}}`;
}

function docOf(schema, indent) {
  const text = schema?.description?.replaceAll("*/", "*\\/").replace(/\s+/g, " ").trim();
  return text ? [`${indent}/** ${text} */`] : [];
}

const types = Object.entries(schemas).map(([name, schema]) =>
  [...docOf(schema, ""), `export type ${name} = ${typeOf(schema, "")};`].join("\n"),
);
const text = `// Generated from docs/openapi.json by scripts/types.mjs. Do not edit.\n\n${types.join("\n\n")}\n`;

if (process.argv.includes("--check")) {
  if (readFileSync(to, "utf8") !== text) {
    console.error("src/api/types.ts is not that of docs/openapi.json; run `npm run types` in web/");
    process.exit(1);
  }
} else {
  writeFileSync(to, text);
}
