import { useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { ExternalLink } from "lucide-react";
import { useState } from "react";
import { useDeployment } from "@/api/session";
import { safeLink } from "@/format";
import { cx } from "@/parts/cx";
import { useKeys } from "@/parts/keys";
import { Page } from "@/parts/page";
import { Ref, refName } from "@/parts/ref";
import { useToast } from "@/parts/toast";
import { When } from "@/parts/when";
import { issueQuery } from "@/routes/triage/calls";
import { NoteDialog, OvertakenDialog } from "@/routes/triage/dialogs";
import { Preview } from "@/routes/triage/preview";
import { isWide, type Name } from "@/routes/triage/use-named";
import * as texts from "@/texts";
import { Banner } from "./banner";
import type { View } from "./calls";
import { decidingKeys } from "./keys";
import { FindingList } from "./list";
import { ScansBehind } from "./scans";
import type { PullRequestSearch } from "./search";
import { useDecisions } from "./use-decisions";

const t = texts.pullRequest;

/** What blocks, then the findings beside their code. The first one is open, so that one key decides about it. */
export function PullRequestView({ view, search, reload }: { view: View; search: PullRequestSearch; reload: () => void }) {
  const { id = "", slug = "" } = useDeployment();
  const navigate = useNavigate();
  const queryClient = useQueryClient();
  const toast = useToast();
  const [noting, setNoting] = useState(false);
  // On narrow screens the finding of the address covers the list.
  const shown = search.finding !== undefined;
  const pull = view.pull_request;
  const name: Name = (finding, push) => void navigate({ to: "/$org/pull-requests", params: { org: slug }, search: { ...search, finding }, replace: !push });
  const list = useDecisions(id, view, reload, search.finding, name);
  const close = () => !isWide() && list.nameInAddress(undefined, true);
  const { active, rows, findings } = list;
  const finding = findings[active];
  const row = finding && rows.get(String(finding.id));

  const openCode = async () => {
    if (!finding) return;
    const url = safeLink((await queryClient.ensureQueryData(issueQuery(id, String(finding.id)))).lineOfCodeUrl);
    if (url) window.open(url, "_blank", "noopener,noreferrer");
    else toast({ tone: "bad", text: texts.triage.noCodeLink });
  };
  const openPage = () => finding && void navigate({ to: "/$org/findings/$issueId", params: { org: slug, issueId: String(finding.id) } });
  useKeys(t.keys, [
    { key: "j", text: texts.triage.keys.next, run: () => list.move(1) },
    { key: "k", text: texts.triage.keys.previous, run: () => list.move(-1) },
    ...(list.may ? decidingKeys(list, () => row && setNoting(true)) : []),
    { key: "o", text: texts.triage.openCode, run: () => void openCode() },
    { key: "Enter", text: texts.triage.openPage, run: () => openPage() },
    { key: "Escape", text: texts.triage.back, run: close },
  ]);

  return (
    <Page title={pull?.number ? t.title(pull.project, String(pull.number)) : t.refTitle(pull?.project ?? "", refName(pull?.ref ?? ""))} bare intro={<Intro view={view} />}>
      <div className={cx("border-b border-line px-4 pb-3", shown && "max-md:hidden")}><Banner view={view} /></div>
      {findings.length === 0 ? (
        <div className="min-h-0 overflow-y-auto px-4 py-3">
          <ScansBehind view={view} org={slug} />
        </div>
      ) : (
        <div className="flex min-h-0 grow">
          <div className={cx("flex min-h-0 min-w-0 flex-col border-line md:w-[44%] md:min-w-80 md:shrink-0 md:border-r", shown ? "max-md:hidden" : "max-md:w-full")}>
            <FindingList
              view={view}
              list={list}
              org={slug}
              onOpen={(index) => {
                list.setActive(index);
                list.nameInAddress(String(findings[index]?.id), true);
              }}
            />
          </div>
          <div className={cx("min-h-0 min-w-0 grow", !shown && "max-md:hidden")}>
            {row && <Preview key={row.id} row={row} may={list.may} onDecide={list.decide} onNote={() => setNoting(true)} onBack={close} />}
          </div>
        </div>
      )}
      {noting && row && (
        <NoteDialog
          initial={row.decision.note}
          onClose={() => setNoting(false)}
          onSave={(note) => {
            setNoting(false);
            list.decide({ note });
          }}
        />
      )}
      {list.overtaken && (
        <OvertakenDialog
          overtaken={list.overtaken}
          onKeep={() => list.setOvertaken(undefined)}
          onOverwrite={() => {
            if (list.overtaken) list.decideAnyway(list.overtaken);
            list.setOvertaken(undefined);
          }}
        />
      )}
    </Page>
  );
}

function Intro({ view }: { view: View }) {
  const pull = view.pull_request;
  if (!pull) return null;
  const link = safeLink(pull.url);
  return (
    <span className="flex flex-wrap items-center gap-x-3 gap-y-0.5">
      {pull.title && <span className="font-medium text-ink wrap-anywhere">{pull.title}</span>}
      {pull.author && <span>{t.author(pull.author)}</span>}
      {refName(pull.ref) !== `#${pull.number}` && <Ref name={pull.ref} />}
      <span>{t.scanned} <When at={pull.scanned_at} /></span>
      {link && (
        <a href={link} target="_blank" rel="noopener noreferrer" className="inline-flex items-center gap-1 text-accent hover:underline">
          {t.host} <ExternalLink size={13} aria-hidden />
        </a>
      )}
    </span>
  );
}
