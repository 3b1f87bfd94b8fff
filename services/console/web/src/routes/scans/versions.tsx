import { useState } from "react";
import { formatNumber } from "@/format";
import { Button } from "@/parts/button";
import { cx } from "@/parts/cx";
import { Card } from "@/parts/page";
import * as texts from "@/texts";
import type { Version } from "./calls";

const t = texts.scans.versions;
const versionsAtFirst = 4;
const toolsAtFirst = 8;

const total = (versions: Version[]): number => versions.reduce((sum, one) => sum + one.analyses, 0);

/** Which versions of which tools scan, and how much each. The tools that scan most come first. */
export function Versions({ versions, chosen, onChoose }: {
  versions: Version[];
  chosen?: { tool: string; version?: string };
  onChoose: (tool: string, version: string | undefined) => void;
}) {
  const [all, setAll] = useState(false);
  const byTool = new Map<string, Version[]>();
  for (const one of versions) byTool.set(one.tool, [...(byTool.get(one.tool) ?? []), one]);
  const tools = [...byTool].sort(([, a], [, b]) => total(b) - total(a));
  const most = Math.max(1, ...versions.map((one) => one.analyses));
  return (
    <Card title={t.title} className="self-start">
      {tools.length === 0 && <p className="text-muted">{t.empty}</p>}
      <div className="flex flex-col gap-3">
        {(all ? tools : tools.slice(0, toolsAtFirst)).map(([tool, list]) => (
          <Tool key={tool} tool={tool} versions={list} most={most} chosen={chosen && chosen.tool === tool ? (chosen.version ?? "") : undefined} onChoose={onChoose} />
        ))}
        {!all && tools.length > toolsAtFirst && (
          <Button look="quiet" className="self-start text-xs" onClick={() => setAll(true)}>{t.moreTools(formatNumber(tools.length - toolsAtFirst))}</Button>
        )}
      </div>
    </Card>
  );
}

function Tool({ tool, versions, most, chosen, onChoose }: {
  tool: string;
  versions: Version[];
  most: number;
  chosen?: string;
  onChoose: (tool: string, version: string | undefined) => void;
}) {
  const [all, setAll] = useState(false);
  const hidden = versions.length - versionsAtFirst;
  return (
    <section>
      <h3 className="mb-0.5 text-xs font-semibold wrap-anywhere">{tool}</h3>
      <ul className="flex flex-col gap-0.5">
        {(all ? versions : versions.slice(0, versionsAtFirst)).map(({ version, analyses }) => (
          <li key={version}>
            <button
              type="button"
              aria-pressed={chosen === version}
              title={t.filter(tool, version)}
              onClick={() => onChoose(tool, version || undefined)}
              className={cx("relative flex w-full items-center justify-between gap-2 overflow-hidden rounded px-1.5 py-0.5 text-left text-xs hover:bg-sunken", chosen === version && "ring-1 ring-accent")}
            >
              <span aria-hidden className="absolute inset-y-0.5 left-0 rounded bg-accent-soft" style={{ width: `${(100 * analyses) / most}%` }} />
              <span className={cx("relative truncate tabular-nums", !version && "text-muted italic")}>{version || t.unknown}</span>
              <span className="relative tabular-nums">{formatNumber(analyses)}</span>
            </button>
          </li>
        ))}
      </ul>
      {!all && hidden > 0 && <Button look="quiet" className="mt-1 text-xs" onClick={() => setAll(true)}>{t.more(formatNumber(hidden))}</Button>}
    </section>
  );
}
