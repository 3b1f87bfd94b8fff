import { useEffect, useState } from "react";
import { CopyButton } from "@/parts/copy";
import { cx } from "@/parts/cx";
import * as texts from "@/texts";
import type { Token } from "./highlight";
import { languageOf } from "./languages";
import { linesOf, longestCode, type Place } from "./lines";

const t = texts.finding.code;
/** Above this, code is shown without colours. */
const longestColoured = 10_000;

/** Colours of code, as soon as the grammar is there. Until then, and without one, the code is plain. */
function useTokens(code: string, path: string): Token[][] | undefined {
  const [coloured, setColoured] = useState<{ code: string; tokens: Token[][] }>();
  const language = languageOf(path);
  useEffect(() => {
    if (!language || code.length > longestColoured) return;
    let current = true;
    import("./highlight")
      .then(({ highlight }) => highlight(code, language))
      .then((tokens) => current && setColoured({ code, tokens }))
      .catch(() => undefined); // plain text is good enough
    return () => {
      current = false;
    };
  }, [code, language]);
  return coloured?.code === code ? coloured.tokens : undefined;
}

/** Code that a scanner sent, with the lines of the finding marked. */
export function Code({ code, path, place, className }: { code: string; path: string; place: Place; className?: string }) {
  const lines = linesOf(code, place);
  const tokens = useTokens(lines.map((line) => line.text).join("\n"), path);
  const some = lines.some((line) => line.marked) && lines.some((line) => !line.marked);
  const width = Math.max(2, String(lines.at(-1)?.number ?? "").length);
  return (
    <div className={cx("group relative rounded-md border border-line bg-sunken", className)}>
      <pre className="overflow-x-auto py-1.5 font-mono text-xs leading-5" tabIndex={0} role="region" aria-label={t.label(path)}>
        <code className="block w-max min-w-full">
          {lines.map((line, i) => (
            <span key={i} className={cx("flex border-l-2 pr-10", line.marked && some ? "border-accent bg-accent-soft" : "border-transparent")}>
              {line.number !== undefined && (
                <span className="sticky left-0 shrink-0 px-2 text-right text-muted select-none" style={{ minWidth: `${width + 2}ch` }} aria-hidden>
                  {line.number}
                </span>
              )}
              <span className={cx("whitespace-pre", line.number === undefined && "pl-3")}>
                {tokens?.[i]?.length ? tokens[i].map((token, n) => <span key={n} className={token.kind || undefined}>{token.text}</span>) : line.text || " "}
              </span>
            </span>
          ))}
        </code>
      </pre>
      {code.length > longestCode && <p className="px-3 pb-2 text-xs text-muted">{t.cut}</p>}
      <span className="absolute top-0.5 right-0.5 rounded-md bg-sunken opacity-0 group-hover:opacity-100 focus-within:opacity-100">
        <CopyButton text={lines.map((line) => line.text).join("\n")} label={t.copy} />
      </span>
    </div>
  );
}
