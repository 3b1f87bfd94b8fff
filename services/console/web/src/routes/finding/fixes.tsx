import { lazy, Suspense } from "react";
import { Code } from "@/parts/finding/code";
import type { Issue } from "@/parts/finding/issue";
import { Card } from "@/parts/page";
import { Loading } from "@/parts/states";
import * as texts from "@/texts";

const Markdown = lazy(() => import("@/parts/markdown"));
const t = texts.finding;

/** How to fix it, as the scanner or a model says. */
export function Fixes({ issue }: { issue: Issue }) {
  const fixes = issue.context?.fixes ?? [];
  const lines = issue.context?.fixedLines ?? [];
  const { autofix, guidance } = issue.remediation ?? {};
  if (fixes.length === 0 && lines.length === 0 && !autofix?.fixDiff && !guidance?.guidanceText) return null;
  return (
    <Card title={t.fix}>
      {guidance?.guidanceText && <Suspense fallback={<Loading />}><Markdown text={`${guidance.summary}\n\n${guidance.guidanceText}`} /></Suspense>}
      {autofix?.fixDiff && <Code code={autofix.fixDiff} path="" place={{ line: 0, endLine: 0 }} />}
      {lines.length > 0 && (
        <>
          <h3 className="mb-1 text-xs font-medium text-muted">{t.fixedCode}</h3>
          <Code code={lines.join("\n")} path={issue.filePath} place={{ line: issue.line, endLine: issue.line + lines.length - 1 }} />
        </>
      )}
      {fixes.map((fix, i) => (
        <div key={i} className="mt-2">
          <h3 className="mb-1 text-xs font-medium text-muted">{fix.description || t.fixes}</h3>
          {fix.changes.map((change, n) => (
            <div key={n} className="mb-1">
              <p className="font-mono text-xs text-muted wrap-anywhere">{change.path}:{change.line}</p>
              <Code code={change.insertedText} path={change.path} place={{ line: change.line, endLine: 0 }} />
            </div>
          ))}
        </div>
      ))}
    </Card>
  );
}
