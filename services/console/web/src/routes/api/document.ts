/** The parts of an OpenAPI document that the reference shows. */
export interface Schema {
  $ref?: string;
  type?: string;
  format?: string;
  description?: string;
  enum?: unknown[];
  items?: Schema;
  allOf?: Schema[];
  oneOf?: Schema[];
  anyOf?: Schema[];
  properties?: Record<string, Schema>;
  additionalProperties?: Schema | boolean;
  required?: string[];
  default?: unknown;
  minimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
  maxItems?: number;
}

interface Content {
  [mediaType: string]: { schema?: Schema };
}

export interface Parameter {
  name: string;
  in: string;
  required?: boolean;
  description?: string;
  schema?: Schema;
}

export interface Response {
  $ref?: string;
  description?: string;
  content?: Content;
}

export interface Operation {
  operationId: string;
  summary?: string;
  description?: string;
  tags?: string[];
  parameters?: Parameter[];
  requestBody?: { description?: string; required?: boolean; content?: Content };
  responses: Record<string, Response>;
  security?: Array<Record<string, unknown>>;
  "x-maturity"?: string;
}

export interface Document {
  info: { title: string; version: string; description?: string };
  tags?: Array<{ name: string; description?: string }>;
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, Schema>; responses?: Record<string, Response> };
}

/** An operation with its place. */
export interface Entry {
  method: string;
  path: string;
  operation: Operation;
  /** What the search looks at, in lower case. */
  words: string;
}

const methods = ["get", "post", "put", "patch", "delete"];

/** entriesOf lists the operations by their groups, as the document has them. */
export function entriesOf(document: Document): Entry[] {
  const entries = Object.entries(document.paths).flatMap(([path, operations]) =>
    methods.filter((method) => operations[method]).map((method): Entry => {
      const operation = operations[method] as Operation;
      const fields = namesIn(document, operation);
      const words = [method, path, operation.operationId, operation.summary, operation.description, ...(operation.tags ?? []), ...fields].join(" ").toLowerCase();
      return { method, path, operation, words };
    }),
  );
  const order = new Map((document.tags ?? []).map((tag, i) => [tag.name, i]));
  return entries.sort((a, b) => (order.get(groupOf(a)) ?? 0) - (order.get(groupOf(b)) ?? 0) || a.path.localeCompare(b.path));
}

export const groupOf = (entry: Entry): string => entry.operation.tags?.[0] ?? "";

/** Names of the parameters and of the fields of the body. */
function namesIn(document: Document, operation: Operation): string[] {
  const body = Object.values(operation.requestBody?.content ?? {})[0]?.schema;
  return [...(operation.parameters ?? []).map((one) => one.name), ...Object.keys((body && resolve(document, body).properties) ?? {})];
}

/** search keeps the operations that have all words. */
export function search(entries: Entry[], text: string): Entry[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return words.length === 0 ? entries : entries.filter((entry) => words.every((word) => entry.words.includes(word)));
}

/** refName is the name of a schema of its own: the last part of its reference. */
export const refName = (schema: Schema): string | undefined => (schema.$ref ?? schema.allOf?.[0]?.$ref)?.split("/").pop();

/** resolve follows a reference. */
export function resolve(document: Document, schema: Schema): Schema {
  const name = refName(schema);
  return (name !== undefined && document.components.schemas[name]) || schema;
}

/** typeOf is a schema in a few words: "array of string", "Issue", "integer (int64)". */
export function typeOf(schema: Schema): string {
  const name = refName(schema);
  if (name) return name.split(".").pop() ?? name;
  if (schema.type === "array" && schema.items) return `array of ${typeOf(schema.items)}`;
  if (schema.oneOf || schema.anyOf) return (schema.oneOf ?? schema.anyOf ?? []).map(typeOf).join(" | ");
  if (schema.type === "object" && typeof schema.additionalProperties === "object") return `map of ${typeOf(schema.additionalProperties)}`;
  return [schema.type ?? "any", schema.format && `(${schema.format})`].filter(Boolean).join(" ");
}

const deepest = 3;

/** exampleOf makes a value that has the form of a schema. */
export function exampleOf(document: Document, schema: Schema, depth = 0): unknown {
  const resolved = resolve(document, schema);
  if (resolved.default !== undefined) return resolved.default;
  if (resolved.enum) return resolved.enum[0];
  if (resolved.type === "array") return depth < deepest && resolved.items ? [exampleOf(document, resolved.items, depth + 1)] : [];
  if (resolved.properties) {
    const fields = Object.entries(resolved.properties);
    const shown = depth === 0 ? fields : fields.filter(([name]) => resolved.required?.includes(name));
    return depth < deepest ? Object.fromEntries(shown.map(([name, field]) => [name, exampleOf(document, field, depth + 1)])) : {};
  }
  if (resolved.type === "boolean") return false;
  if (resolved.type === "integer" || resolved.type === "number") return resolved.minimum ?? 0;
  if (resolved.format === "date-time") return "2026-01-31T12:00:00Z";
  if (resolved.type === "string") return resolved.format === "int64" ? "1" : "";
  return {};
}

/** curlOf is a call of an operation for a shell. Path parameters keep their braces, which say what to put there. */
export function curlOf(document: Document, entry: Entry, server: string): string {
  const body = entry.operation.requestBody?.content;
  const [mediaType, content] = Object.entries(body ?? {})[0] ?? [];
  const lines = [`curl -X ${entry.method.toUpperCase()} '${server}${entry.path}'`];
  if (entry.operation.security && entry.operation.security.length > 0) lines.push(`  -H "Authorization: Bearer $PALISADE_TOKEN"`);
  if (mediaType && content?.schema?.format === "binary") lines.push(`  -H 'Content-Type: ${mediaType}' --data-binary @file`);
  else if (content?.schema) {
    const pathNames = new Set((entry.operation.parameters ?? []).filter((one) => one.in === "path").map((one) => one.name));
    const value = exampleOf(document, content.schema);
    const fields = Object.entries(value as object).filter(([name]) => !pathNames.has(name));
    lines.push(`  -H 'Content-Type: application/json' -d '${JSON.stringify(Object.fromEntries(fields)).replaceAll("'", "'\\''")}'`);
  }
  return lines.join(" \\\n");
}
