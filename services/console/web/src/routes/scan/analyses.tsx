import type { Schemas } from "@/api/client";
import { formatNumber } from "@/format";
import { Card } from "@/parts/page";
import * as texts from "@/texts";

type Analysis = Schemas["scans.v1.ScanAnalysis"];
type Names = Schemas["scans.v1.ScanNames"];

const t = texts.scans.scan;

/** What each tool covered, and what it could not look at. */
export function Analyses({ analyses }: { analyses: Analysis[] }) {
  if (analyses.length === 0) return null;
  return (
    <Card title={t.analyses}>
      <ul className="flex flex-col gap-5">
        {analyses.map((one) => <li key={`${one.tool} ${one.category}`}><One analysis={one} /></li>)}
      </ul>
    </Card>
  );
}

function One({ analysis }: { analysis: Analysis }) {
  const gaps: Array<[string, Names | undefined]> = [
    [t.failedRules, analysis.failed_rules], [t.skippedFiles, analysis.skipped_files],
    [t.unsearchedFiles, analysis.unsearched_files], [t.unresolvedFiles, analysis.unresolved_files],
  ];
  const shown = gaps.filter((gap): gap is [string, Names] => (gap[1]?.total ?? 0) > 0);
  return (
    <>
      <div className="flex flex-wrap items-baseline gap-x-3 gap-y-1">
        <span className="font-medium">{analysis.tool}</span>
        <span className="text-muted tabular-nums">{analysis.tool_version}</span>
        <span className="text-muted wrap-anywhere">{analysis.category}</span>
        <span className="ml-auto flex gap-4 tabular-nums max-md:ml-0">
          <span>{analysis.files == null ? t.unknownFiles : t.files(formatNumber(analysis.files))}</span>
          <span>{analysis.rules == null ? t.unknownRules : t.rules(formatNumber(analysis.rules))}</span>
        </span>
      </div>
      {analysis.failure && <p className="mt-1 text-warn wrap-anywhere">{analysis.failure}</p>}
      {analysis.partly_parsed.map((one) => (
        <p key={one.language} className="mt-1 text-warn">{t.partlyParsed(one.language, formatNumber(one.files))}</p>
      ))}
      {shown.map(([title, names]) => (
        <details key={title} className="mt-1.5">
          <summary className="cursor-pointer text-warn">{title} <span className="tabular-nums">({formatNumber(names.total)})</span></summary>
          <ul className="mt-1 max-h-60 overflow-y-auto rounded-md bg-sunken p-2 font-mono text-xs" tabIndex={0}>
            {names.names.map((name) => <li key={name} className="wrap-anywhere">{name}</li>)}
            {names.total > names.names.length && <li className="text-muted">{t.namesOmitted(formatNumber(names.total - names.names.length))}</li>}
          </ul>
        </details>
      ))}
      {!analysis.failure && shown.length === 0 && analysis.partly_parsed.length === 0 && <p className="mt-1 text-xs text-muted">{t.nothingMissing}</p>}
    </>
  );
}
