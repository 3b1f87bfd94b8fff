import { Link, useNavigate } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import { useDeployment } from "@/api/session";
import { Badge } from "@/parts/badge";
import { Button } from "@/parts/button";
import { Checkbox, Select, TextField } from "@/parts/field";
import { Page } from "@/parts/page";
import { Empty, Failure, Loading } from "@/parts/states";
import { StackedTd, Table, Th } from "@/parts/table";
import { When } from "@/parts/when";
import * as texts from "@/texts";
import { type Repository, useRepositories, useTags } from "./data";
import { Detail } from "./detail";
import { projectsRoute, type ProjectsSearch } from "./routes";
import { Counts, Freshness, hostName, shortRef } from "./words";

const words = texts.projects;
const typingPause = 250;

export default function Projects() {
  const search = projectsRoute.useSearch();
  return search.id ? <Detail key={search.id} id={search.id} /> : <List search={search} />;
}

function List({ search }: { search: ProjectsSearch }) {
  const navigate = useNavigate({ from: projectsRoute.fullPath });
  const list = useRepositories(search);
  const set = (change: Partial<ProjectsSearch>) => void navigate({ search: { ...search, ...change }, replace: true });
  const rows = list.data?.pages.flatMap((page) => page.repos) ?? [];
  const hosted = rows.some((one) => hostName(one.scmType) !== "");
  return (
    <Page title={words.title}>
      <Filters search={search} onChange={set} />
      {list.isPending && <Loading />}
      {list.isError && rows.length === 0 && <Failure error={list.error} retry={() => void list.refetch()} />}
      {list.isSuccess && rows.length === 0 && <NoProjects filtered={Boolean(search.q || search.tag || search.archived)} onClear={() => set({ q: undefined, tag: undefined, archived: undefined })} />}
      {rows.length > 0 && (
        <Table
          stacked
          label={words.list.label}
          head={<><Th>{words.list.project}</Th><Th>{words.list.open}</Th><Th>{words.list.freshness}</Th><Th>{words.list.lastScan}</Th><Th>{words.list.branch}</Th>{hosted && <Th>{words.list.host}</Th>}</>}
        >
          {rows.map((one) => <Row key={one.id} repository={one} hosted={hosted} />)}
        </Table>
      )}
      {list.hasNextPage && <Button className="mt-3 self-center" disabled={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>{words.list.more}</Button>}
    </Page>
  );
}

function Filters({ search, onChange }: { search: ProjectsSearch; onChange: (change: Partial<ProjectsSearch>) => void }) {
  const [text, setText] = useState(search.q ?? "");
  const { data: tags } = useTags();
  useEffect(() => {
    if (text === (search.q ?? "")) return;
    const timer = setTimeout(() => onChange({ q: text || undefined }), typingPause);
    return () => clearTimeout(timer);
  }, [text, search.q, onChange]);
  return (
    <div className="mb-3 flex flex-wrap items-center gap-3" role="search">
      <TextField hideLabel label={words.search} placeholder={words.search} type="search" className="w-64 max-w-full" value={text} onChange={({ target }) => setText(target.value)} />
      {tags && tags.length > 0 && (
        <Select hideLabel label={words.tag} className="w-40" value={search.tag ?? ""} onChange={({ target }) => onChange({ tag: target.value || undefined })}>
          <option value="">{words.anyTag}</option>
          {tags.map((tag) => <option key={tag.id} value={tag.id}>{tag.name}</option>)}
        </Select>
      )}
      <Checkbox label={words.archived} checked={search.archived ?? false} onChange={({ target }) => onChange({ archived: target.checked || undefined })} />
    </div>
  );
}

function Row({ repository, hosted }: { repository: Repository; hosted: boolean }) {
  const { slug: org = "" } = useDeployment();
  return (
    <tr className="hover:bg-sunken/60">
      <StackedTd className="min-w-48 max-md:flex-wrap">
        <Link to="/$org/projects" params={{ org }} search={{ id: repository.id }} className="font-medium text-accent wrap-anywhere hover:underline">{repository.name}</Link>
        {repository.tags.length > 0 && <span className="mt-1 flex flex-wrap gap-1">{repository.tags.map((tag) => <Badge key={tag}>{tag}</Badge>)}</span>}
      </StackedTd>
      <StackedTd label={words.list.open}><Counts repository={repository} /></StackedTd>
      <StackedTd label={words.list.freshness}><Freshness state={repository.freshness} /></StackedTd>
      <StackedTd label={words.list.lastScan} className="whitespace-nowrap">{repository.latestScan?.startedAt ? <When at={repository.latestScan.startedAt} /> : <span className="text-muted">{words.list.never}</span>}</StackedTd>
      <StackedTd label={words.list.branch}><span className="font-mono text-xs wrap-anywhere">{shortRef(repository.primaryRef?.ref) || "–"}</span></StackedTd>
      {hosted && <StackedTd label={words.list.host} className="whitespace-nowrap">{hostName(repository.scmType) || "–"}</StackedTd>}
    </tr>
  );
}

function NoProjects({ filtered, onClear }: { filtered: boolean; onClear: () => void }) {
  const { slug: org = "" } = useDeployment();
  if (filtered) return <Empty title={words.empty.title} actions={<Button onClick={onClear}>{words.empty.clear}</Button>}>{words.empty.hint}</Empty>;
  return (
    <Empty title={words.none.title} actions={<Link to="/$org/setup" params={{ org }} className="text-accent underline">{words.none.action}</Link>}>
      {words.none.hint}
    </Empty>
  );
}
