import { CircleCheck, OctagonX, RotateCw } from "lucide-react";
import type { ReactNode } from "react";
import { formatNumber } from "@/format";
import { cx } from "@/parts/cx";
import { refName } from "@/parts/ref";
import * as texts from "@/texts";
import type { View } from "./calls";

const t = texts.pullRequest;

const looks = {
  bad: { box: "border-bad/30 bg-bad/10", text: "text-bad", Icon: OctagonX },
  warn: { box: "border-warn/30 bg-warn/10", text: "text-warn", Icon: RotateCw },
  good: { box: "border-good/30 bg-good/10", text: "text-good", Icon: CircleCheck },
};

/** Says in plain words whether the pull request is blocked, by what, and what to do. */
export function Banner({ view }: { view: View }) {
  if (view.blocked) {
    const blocking = view.findings.filter((one) => one.blocked_by.length > 0).length;
    const most = Math.max(blocking, ...view.blockers.map((one) => one.findings));
    return (
      <Box look="bad" title={t.blocks.title(formatNumber(most))}>
        <ul className="flex flex-col gap-0.5">
          {view.blockers.map((one) => (
            <li key={`${one.policy_slug} ${one.name}`} className="wrap-anywhere">
              <span className="font-medium">{one.policy_slug ? t.blocks.policy(one.name) : t.blocks.rules}</span>
              <span className="tabular-nums">: {t.blocks.findings(formatNumber(one.findings))}</span>
              {one.reason && <span className="text-muted"> – {one.reason}</span>}
            </li>
          ))}
        </ul>
        <p className="text-muted">{t.blocks.how}</p>
        <Base view={view} />
      </Box>
    );
  }
  if (view.scans.some((one) => one.blocked)) {
    return (
      <Box look="warn" title={t.unblocked.title}>
        <p className="text-muted">{t.unblocked.how}</p>
        <Base view={view} />
      </Box>
    );
  }
  return (
    <Box look="good" title={t.clear.title}>
      <p className="text-muted">{view.added > 0 ? t.clear.added(formatNumber(view.added)) : t.clear.nothing}</p>
      <Base view={view} />
    </Box>
  );
}

function Box({ look, title, children }: { look: keyof typeof looks; title: string; children: ReactNode }) {
  const { box, text, Icon } = looks[look];
  return (
    <section aria-label={title} role="status" className={cx("flex gap-2.5 rounded-lg border px-3 py-2.5", box)}>
      <Icon size={18} className={cx("mt-0.5 shrink-0", text)} aria-hidden />
      <div className="flex min-w-0 flex-col gap-1">
        <h2 className={cx("font-semibold", text)}>{title}</h2>
        {children}
      </div>
    </section>
  );
}

/** What the findings are compared with. */
function Base({ view }: { view: View }) {
  const [first] = view.scans;
  if (!first) return null;
  return (
    <p className="text-xs text-muted">
      {!first.base_ref ? t.noBase : first.base_scan_id > 0 ? t.comparedScan(refName(first.base_ref), String(first.base_scan_id)) : t.compared(refName(first.base_ref))}
      {view.partial && <> · {t.partial}</>}
    </p>
  );
}
