import { Link } from "@tanstack/react-router";
import { CircleAlert, CircleCheck, LoaderCircle } from "lucide-react";
import { useDeployment } from "@/api/session";
import { formatNumber } from "@/format";
import * as texts from "@/texts";
import { running, useArrival } from "./data";

const words = texts.setup.watch;

/** Says when the first scan has arrived that the new token sent, without a reload. */
export function Watch({ since }: { since: string }) {
  const { slug: org = "" } = useDeployment();
  const { data } = useArrival(since);
  const ended = data && !running(data.scan);
  const good = data?.scan.status === "SCAN_STATUS_COMPLETED";
  return (
    <section role="status" className="flex items-start gap-3 rounded-lg border border-line bg-surface p-4">
      {!ended && <LoaderCircle size={20} className="shrink-0 animate-spin text-accent" aria-hidden />}
      {ended && (good ? <CircleCheck size={20} className="shrink-0 text-good" aria-hidden /> : <CircleAlert size={20} className="shrink-0 text-bad" aria-hidden />)}
      <div className="min-w-0">
        <p className="font-medium wrap-anywhere">{!data ? words.waiting : !ended ? words.running(data.project) : good ? words.arrived(data.project) : words.failed(data.project)}</p>
        {!data && <p className="text-muted">{words.hint}</p>}
        {ended && good && (
          <p className="flex flex-wrap gap-x-3">
            <span>{words.findings(formatNumber(Number(data.scan.findings_counts?.total ?? 0)))}</span>
            <Link to="/$org/triage" params={{ org }} search={{ everywhere: true }} className="text-accent underline">{texts.setup.upload.triage}</Link>
          </p>
        )}
      </div>
    </section>
  );
}
