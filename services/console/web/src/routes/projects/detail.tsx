import { Link, useNavigate } from "@tanstack/react-router";
import { ArrowLeft, ExternalLink } from "lucide-react";
import { type ReactNode, useState } from "react";
import { useDeployment } from "@/api/session";
import { formatDate, formatNumber, safeLink } from "@/format";
import { Button } from "@/parts/button";
import { Dialog } from "@/parts/dialog";
import { Card, Page } from "@/parts/page";
import { Empty, Failure, Loading } from "@/parts/states";
import { useToast } from "@/parts/toast";
import { When } from "@/parts/when";
import * as texts from "@/texts";
import { BadgeCard } from "./badge-card";
import { type Repository, useChange, useRepository } from "./data";
import { SettingsForm } from "./settings-form";
import { TeamsCard } from "./teams-card";
import { Counts, Freshness, openFindings } from "./words";

const words = texts.projects.detail;

/** One project: its state, its settings, its teams and its badge. */
export function Detail({ id }: { id: string }) {
  const { data, isPending, isError, error, refetch } = useRepository(id);
  const back = <BackLink />;
  if (isPending) return <Page title={texts.projects.title} intro={back}><Loading /></Page>;
  if (isError) return <Page title={texts.projects.title} intro={back}><Failure error={error} retry={() => void refetch()} /></Page>;
  if (!data) return <Page title={texts.projects.title} intro={back}><Empty title={texts.shell.states.notFoundTitle}>{texts.shell.states.notFoundHint}</Empty></Page>;
  const { repository, project } = data;
  const may = (scope: Repository["authorizedScopes"][number]) => repository.authorizedScopes.includes(scope);
  const manages = may("REPO_SCOPE_MANAGE_PROJECT_SETTINGS");
  return (
    <Page title={repository.name} intro={back} actions={<Links repository={repository} />}>
      <div className="grid grid-cols-[minmax(0,1fr)] items-start gap-4 lg:grid-cols-[minmax(0,2fr)_minmax(0,1fr)]">
        <div className="grid gap-4">
          <Card><Facts repository={repository} /></Card>
          {project && <SettingsForm key={`${project.id}`} repository={repository} project={project} readOnly={!manages} />}
        </div>
        <div className="grid gap-4">
          <TeamsCard projectId={repository.id} readOnly={!may("REPO_SCOPE_ASSIGN_TEAM")} />
          <BadgeCard projectId={repository.id} readOnly={!manages} />
          {may("REPO_SCOPE_DELETE_PROJECT") && <DeleteButton repository={repository} />}
        </div>
      </div>
    </Page>
  );
}

function BackLink() {
  const { slug: org = "" } = useDeployment();
  return (
    <Link to="/$org/projects" params={{ org }} className="inline-flex items-center gap-1 text-accent hover:underline">
      <ArrowLeft size={14} aria-hidden />{words.back}
    </Link>
  );
}

function Links({ repository }: { repository: Repository }) {
  const { slug: org = "" } = useDeployment();
  const host = safeLink(repository.url);
  return (
    <>
      <Link to="/$org/triage" params={{ org }} search={openFindings(repository)} className="text-accent hover:underline">{words.triage}</Link>
      <Link to="/$org/scans" params={{ org }} search={{ tab: "list", project: repository.name }} className="text-accent hover:underline">{words.scans}</Link>
      {host && (
        <a href={host} target="_blank" rel="noopener noreferrer" className="inline-flex items-center gap-1 text-accent hover:underline">
          {words.openHost}<ExternalLink size={13} aria-hidden />
        </a>
      )}
    </>
  );
}

function Facts({ repository }: { repository: Repository }) {
  const dependencies = Object.values(repository.scaInfo?.dependencyCounts ?? {}).reduce((sum, n) => sum + Number(n), 0);
  return (
    <dl className="grid gap-x-6 gap-y-3 sm:grid-cols-2">
      <Fact name={words.findings}><Counts repository={repository} /></Fact>
      <Fact name={words.freshness}><Freshness state={repository.freshness} /></Fact>
      <Fact name={words.scanned}>{repository.latestScan?.startedAt ? <When at={repository.latestScan.startedAt} /> : texts.projects.list.never}</Fact>
      <Fact name={words.since}>{formatDate(repository.provisionedAt)}</Fact>
      {dependencies > 0 && <Fact name={words.dependencies}>{formatNumber(dependencies)}</Fact>}
    </dl>
  );
}

function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div>
      <dt className="mb-0.5 text-xs text-muted">{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

function DeleteButton({ repository }: { repository: Repository }) {
  const [asking, setAsking] = useState(false);
  const { remove } = useChange(repository);
  const toast = useToast();
  const navigate = useNavigate();
  const { slug: org = "" } = useDeployment();
  const confirm = () =>
    remove.mutate(undefined, {
      onSuccess: () => {
        toast({ tone: "good", text: words.removed(repository.name) });
        void navigate({ to: "/$org/projects", params: { org } });
      },
    });
  return (
    <>
      <Button look="danger" className="justify-self-start" onClick={() => setAsking(true)}>{words.remove}</Button>
      <Dialog
        open={asking}
        onClose={() => setAsking(false)}
        title={words.removeTitle}
        footer={<><Button onClick={() => setAsking(false)}>{texts.shell.actions.cancel}</Button><Button look="danger" disabled={remove.isPending} onClick={confirm}>{words.remove}</Button></>}
      >
        <p className="text-pretty wrap-anywhere">{words.removeText(repository.name)}</p>
      </Dialog>
    </>
  );
}
