import { useState } from "react";
import { Badge } from "@/parts/badge";
import * as texts from "@/texts";
import { type Document, refName, resolve, type Schema, typeOf } from "./document";
import { Text } from "./text";

const words = texts.reference;

/** The limits of a value, in the words of the document. */
function limits(schema: Schema): string {
  const between = (what: string, low?: number, high?: number) =>
    low !== undefined && high !== undefined ? `${what}${low} – ${high}` : low !== undefined ? `${what}≥ ${low}` : high !== undefined ? `${what}≤ ${high}` : "";
  return [
    between("", schema.minimum, schema.maximum),
    between("length ", schema.minLength, schema.maxLength),
    schema.maxItems !== undefined && `≤ ${schema.maxItems} items`,
    schema.default !== undefined && `default ${JSON.stringify(schema.default)}`,
  ].filter(Boolean).join(", ");
}

/** The schema whose fields are shown: of a list or a map, that of its items. */
function inner(document: Document, schema: Schema): Schema {
  const resolved = resolve(document, schema);
  if (resolved.type === "array" && resolved.items) return inner(document, resolved.items);
  if (typeof resolved.additionalProperties === "object") return inner(document, resolved.additionalProperties);
  return resolved;
}

/** The fields of a message. Messages inside open on demand: some contain themselves. */
export function SchemaView({ document, schema }: { document: Document; schema: Schema }) {
  const { properties, required = [] } = inner(document, schema);
  if (!properties) return <p className="font-mono text-xs">{typeOf(schema)}</p>;
  if (Object.keys(properties).length === 0) return <p className="text-muted">{words.noBody}</p>;
  return (
    <dl className="divide-y divide-line rounded-lg border border-line bg-surface">
      {Object.entries(properties).map(([name, field]) => <Field key={name} document={document} name={name} field={field} required={required.includes(name)} />)}
    </dl>
  );
}

function Field({ document, name, field, required }: { document: Document; name: string; field: Schema; required: boolean }) {
  const [open, setOpen] = useState(false);
  const target = inner(document, field);
  const nested = target.properties !== undefined && refName(target) === undefined && Object.keys(target.properties).length > 0;
  const bounds = limits(resolve(document, field));
  return (
    <div className="grid gap-x-4 px-3 py-2 sm:grid-cols-[14rem_1fr]">
      <dt className="min-w-0">
        <code className="font-mono text-xs font-medium wrap-anywhere">{name}</code>
        {required && <> <Badge tone="warn">{words.required}</Badge></>}
        <span className="block font-mono text-2xs text-muted wrap-anywhere">{typeOf(field)}{bounds && ` · ${bounds}`}</span>
      </dt>
      <dd className="min-w-0">
        <Text text={field.description ?? (target.enum ? target.description : undefined)} />
        {target.enum && <p className="mt-1 flex flex-wrap gap-1">{target.enum.map((one) => <code key={String(one)} className="rounded bg-sunken px-1 font-mono text-2xs">{String(one)}</code>)}</p>}
        {nested && (
          <details className="mt-1" onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
            <summary className="cursor-pointer text-xs text-accent">{words.more}: {typeOf(field)}</summary>
            {open && <div className="mt-2"><SchemaView document={document} schema={field} /></div>}
          </details>
        )}
      </dd>
    </div>
  );
}
