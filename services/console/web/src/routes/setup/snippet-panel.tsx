import type { UseMutationResult } from "@tanstack/react-query";
import { KeyRound } from "lucide-react";
import { basePath } from "@/api/base";
import { useDeployment } from "@/api/session";
import { formatDate } from "@/format";
import { Button } from "@/parts/button";
import { CopyButton } from "@/parts/copy";
import * as texts from "@/texts";
import { snippetOf, type Way } from "./snippets";

const words = texts.setup;

interface Made {
  value: string;
  expiresAt?: string;
}

/** A snippet with a token that was made for it. */
export function SnippetPanel({ way, token, mayMake }: { way: Way; token: UseMutationResult<Made, Error, string>; mayMake: boolean }) {
  const { slug: org = "" } = useDeployment();
  const value = token.data?.value;
  const snippet = snippetOf(way, { server: window.location.origin + basePath, org, token: value ?? words.token.placeholder });
  return (
    <div className="grid gap-4">
      {value ? (
        <p className="text-good">{snippet.secret ? "" : words.token.made} {token.data?.expiresAt && words.token.expires(formatDate(token.data.expiresAt))}</p>
      ) : (
        <div className="flex flex-wrap items-center gap-3">
          {mayMake && <Button look="primary" disabled={token.isPending} onClick={() => token.mutate(words.token.name)}><KeyRound size={15} aria-hidden />{words.token.make}</Button>}
          <p className="min-w-0 flex-1 basis-64 text-muted text-pretty">{mayMake ? words.token.why : words.token.notAllowed}</p>
        </div>
      )}
      {snippet.secret && value && <Code title={words.snippet.secret(snippet.secret)} text={value} />}
      <Code title={snippet.file ? words.snippet.file(snippet.file) : way === "ci" ? words.snippet.checkout : words.snippet.shell} text={snippet.text} />
    </div>
  );
}

function Code({ title, text }: { title: string; text: string }) {
  return (
    <figure className="min-w-0 overflow-hidden rounded-md border border-line">
      <figcaption className="flex items-center gap-2 border-b border-line bg-sunken py-0.5 pr-1 pl-3 text-xs font-medium">
        <span className="grow">{title}</span>
        <CopyButton text={text} label={words.snippet.copy} />
      </figcaption>
      <pre className="overflow-x-auto p-3 font-mono text-xs leading-5" tabIndex={0} aria-label={title}>{text}</pre>
    </figure>
  );
}
