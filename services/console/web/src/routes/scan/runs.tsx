import { TriangleAlert } from "lucide-react";
import type { Schemas } from "@/api/client";
import { formatNumber } from "@/format";
import { Card } from "@/parts/page";
import { productName } from "@/parts/product";
import { Table, Td, Th } from "@/parts/table";
import * as texts from "@/texts";

type Answer = Schemas["scans.v1.UploadReportResponse"];

const t = texts.scans.scan;

const coverageText = (word: string): string => (Object.hasOwn(t.coverageWords, word) ? t.coverageWords[word as keyof typeof t.coverageWords] : word);

/** The runs of a report, each with its numbers and warnings. */
export function Runs({ answer }: { answer: Answer }) {
  const notes = [
    [answer.dependencies, t.dependencies], [answer.decisions, t.decisions], [answer.decisions_kept, t.decisionsKept], [answer.decisions_unmatched, t.decisionsUnmatched],
  ] as const;
  return (
    <Card title={t.runs}>
      <ul className="flex flex-col gap-4">
        {answer.runs.map((run) => (
          <li key={run.index} className="flex flex-col gap-1.5">
            <div className="flex flex-wrap items-baseline gap-x-3 gap-y-1">
              <span className="font-medium">{run.tool || t.run(formatNumber(run.index + 1))}</span>
              <span className="text-muted tabular-nums">{run.tool_version}</span>
              {run.product && <span className="text-muted">{productName(run.product)}</span>}
              {run.category && <span className="text-muted wrap-anywhere">{run.category}</span>}
              <span className="ml-auto flex gap-4 tabular-nums max-md:ml-0">
                <span>{t.runResults(formatNumber(run.results))}</span>
                <span>{t.runAccepted(formatNumber(run.accepted))}</span>
                <span className={run.skipped > 0 ? "text-warn" : undefined}>{t.runSkipped(formatNumber(run.skipped))}</span>
              </span>
            </div>
            {run.rejected && <p className="text-bad wrap-anywhere">{t.rejectedRun}: {run.rejected}</p>}
            {run.coverage && <p className="text-xs text-muted">{coverageText(run.coverage)}</p>}
            {run.warnings.length > 0 && (
              <ul aria-label={t.warnings} className="flex flex-col gap-1 rounded-md bg-warn/10 px-3 py-2 text-[0.8125rem]">
                {run.warnings.map((warning) => (
                  <li key={warning} className="flex gap-2">
                    <TriangleAlert size={14} className="mt-0.5 shrink-0 text-warn" aria-hidden />
                    <span className="min-w-0 wrap-anywhere">{warning}</span>
                  </li>
                ))}
              </ul>
            )}
          </li>
        ))}
      </ul>
      <Notes notes={notes} />
    </Card>
  );
}

function Notes({ notes }: { notes: ReadonlyArray<readonly [number | undefined, (n: string) => string]> }) {
  const shown = notes.flatMap(([count, text]) => (count ? [text(formatNumber(count))] : []));
  if (shown.length === 0) return null;
  return <ul className="mt-4 list-disc border-t border-line pt-3 pl-5">{shown.map((text) => <li key={text}>{text}</li>)}</ul>;
}

/** Each result that was not stored, with the reason. */
export function Skipped({ answer }: { answer: Answer }) {
  if (answer.skipped === 0) return null;
  return (
    <section className="flex flex-col gap-2">
      <h2 className="text-[0.8125rem] font-semibold">
        {t.skipped} <span className="font-normal text-muted tabular-nums">{formatNumber(answer.skipped)}</span>
      </h2>
      <Table label={t.skippedTable} head={<><Th>{t.where}</Th><Th>{t.rule}</Th><Th>{t.why}</Th></>}>
        {answer.skipped_results.map((one) => (
          <tr key={`${one.run} ${one.index} ${one.reason}`}>
            <Td className="min-w-40">
              <div className="font-mono text-xs wrap-anywhere">{one.path}</div>
              <div className="text-xs text-muted tabular-nums">{t.resultAt(formatNumber(one.run + 1), formatNumber(one.index + 1))}</div>
            </Td>
            <Td className="wrap-anywhere">{one.rule_id}</Td>
            <Td className="min-w-56 wrap-anywhere">{one.reason}</Td>
          </tr>
        ))}
      </Table>
      {answer.skipped_results_omitted > 0 && <p className="text-muted">{t.skippedOmitted(formatNumber(answer.skipped_results_omitted))}</p>}
    </section>
  );
}
