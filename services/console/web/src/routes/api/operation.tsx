import { ArrowLeft } from "lucide-react";
import type { ReactNode } from "react";
import { basePath } from "@/api/base";
import { Badge } from "@/parts/badge";
import { Button } from "@/parts/button";
import { CopyButton } from "@/parts/copy";
import { Table, Td, Th } from "@/parts/table";
import * as texts from "@/texts";
import { curlOf, type Document, type Entry, type Parameter, type Response, typeOf } from "./document";
import { Method } from "./method";
import { SchemaView } from "./schema-view";
import { Text } from "./text";

const words = texts.reference;

/** One operation: what it does, what it takes, what it answers, and a call for a shell. */
export function OperationView({ document, entry, onBack }: { document: Document; entry: Entry; onBack: () => void }) {
  const { operation, method, path } = entry;
  const body = Object.entries(operation.requestBody?.content ?? {})[0];
  const call = curlOf(document, entry, window.location.origin + basePath);
  return (
    <article className="grid max-w-4xl gap-5 p-4 md:p-6">
      <header className="grid gap-2">
        <Button look="quiet" className="justify-self-start md:hidden" onClick={onBack}><ArrowLeft size={14} aria-hidden />{words.back}</Button>
        <h2 className="text-base font-semibold">{operation.operationId}</h2>
        <p className="flex items-baseline gap-2 rounded-md border border-line bg-surface px-3 py-2">
          <Method method={method} className="text-xs" />
          <code className="font-mono text-xs wrap-anywhere">{path}</code>
        </p>
        {operation["x-maturity"] && <p><Badge tone={operation["x-maturity"] === "Stable" ? "good" : "info"}>{operation["x-maturity"]}</Badge></p>}
        <Text text={operation.description?.replace(/^\*\*\w+\.\*\* /, "")} />
      </header>
      {operation.parameters && operation.parameters.length > 0 && <Parameters list={operation.parameters} />}
      {body && (
        <Part title={words.body} aside={body[0]}>
          <Text text={operation.requestBody?.description} />
          {body[1].schema && <SchemaView document={document} schema={body[1].schema} />}
        </Part>
      )}
      <Part title={words.responses}><Responses document={document} all={operation.responses} /></Part>
      <Part title={words.example} aside={<CopyButton text={call} />}>
        <pre className="overflow-x-auto rounded-md border border-line bg-surface p-3 font-mono text-xs leading-5" tabIndex={0} aria-label={words.example}>{call}</pre>
      </Part>
    </article>
  );
}

function Part({ title, aside, children }: { title: string; aside?: ReactNode; children: ReactNode }) {
  return (
    <section className="min-w-0">
      <div className="mb-1.5 flex items-center gap-2">
        <h3 className="text-[0.8125rem] font-semibold">{title}</h3>
        <span className="ml-auto font-mono text-2xs text-muted">{aside}</span>
      </div>
      {children}
    </section>
  );
}

function Parameters({ list }: { list: Parameter[] }) {
  return (
    <Part title={words.parameters}>
      <Table label={words.parameters} head={<><Th>{words.name}</Th><Th>{words.in}</Th><Th>{words.description}</Th></>}>
        {list.map((one) => (
          <tr key={`${one.in} ${one.name}`}>
            <Td>
              <code className="font-mono text-xs font-medium">{one.name}</code>
              <span className="block font-mono text-2xs text-muted">{one.schema && typeOf(one.schema)}</span>
            </Td>
            <Td>{one.in}</Td>
            <Td className="w-full min-w-64">{one.description}{one.required && <> <Badge tone="warn">{words.required}</Badge></>}</Td>
          </tr>
        ))}
      </Table>
    </Part>
  );
}

function Responses({ document, all }: { document: Document; all: Record<string, Response> }) {
  return (
    <ul className="divide-y divide-line rounded-lg border border-line bg-surface">
      {Object.entries(all).map(([status, given]) => {
        const name = given.$ref?.split("/").pop();
        const response = (name && document.components.responses?.[name]) || given;
        const schema = Object.values(response.content ?? {})[0]?.schema;
        return (
          <li key={status} className="px-3 py-2">
            <p className="flex gap-3"><span className="font-mono text-xs font-semibold tabular-nums">{status}</span><span>{response.description}</span></p>
            {schema && status.startsWith("2") && <div className="mt-2"><SchemaView document={document} schema={schema} /></div>}
          </li>
        );
      })}
    </ul>
  );
}
