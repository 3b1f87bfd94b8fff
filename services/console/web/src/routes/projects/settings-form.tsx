import { useState } from "react";
import type { Schemas } from "@/api/client";
import { Button } from "@/parts/button";
import { TextArea, TextField } from "@/parts/field";
import { Card } from "@/parts/page";
import { useToast } from "@/parts/toast";
import { NameList } from "@/routes/overview/filters";
import * as texts from "@/texts";
import { type Repository, type Settings, useChange, useTags } from "./data";
import { shortRef } from "./words";

const words = texts.projects.detail;

type Project = Schemas["projects.v1.Project"];

interface Draft {
  branch: string;
  url: string;
  repository: string;
  tags: string[];
  ignored: string;
}

const lines = (text: string): string[] => [...new Set(text.split("\n").map((line) => line.trim()).filter(Boolean))];

/** changesOf names only what differs, so that two people who change different settings both win. */
function changesOf(before: Draft, after: Draft): Settings {
  const body: Settings = {};
  if (after.branch !== before.branch) body.primary_branch = after.branch.trim() || "None";
  if (after.url !== before.url) body.url = after.url.trim();
  if (after.repository !== before.repository) body.repository_url = after.repository.trim();
  if (after.tags.join("\n") !== before.tags.join("\n")) body.tags = after.tags;
  if (lines(after.ignored).join("\n") !== lines(before.ignored).join("\n")) body.ignored_files = lines(after.ignored);
  return body;
}

/** The settings of a project. Everybody reads them; administrators change them. */
export function SettingsForm({ repository, project, readOnly }: { repository: Repository; project: Project; readOnly: boolean }) {
  const saved: Draft = {
    branch: repository.primaryRef?.isOverride ? shortRef(repository.primaryRef.ref) : "",
    url: project.url,
    repository: project.repository_url ?? "",
    tags: repository.tags,
    ignored: repository.ignoredFiles.join("\n"),
  };
  const [draft, setDraft] = useState(saved);
  const { update } = useChange(repository);
  const { data: tags = [] } = useTags();
  const toast = useToast();
  const set = (change: Partial<Draft>) => setDraft({ ...draft, ...change });
  const changes = changesOf(saved, draft);
  const submit = (event: React.FormEvent) => {
    event.preventDefault();
    update.mutate(changes, { onSuccess: () => toast({ tone: "good", text: words.saved }) });
  };
  return (
    <Card title={words.settings}>
      {readOnly && <p className="mb-3 text-muted">{words.readOnly}</p>}
      <form onSubmit={submit}>
        <fieldset disabled={readOnly} className="grid gap-4 sm:grid-cols-2">
          <TextField label={words.branch} hint={words.branchHint} placeholder={shortRef(repository.defaultBranch)} list="branches" maxLength={255} value={draft.branch} onChange={({ target }) => set({ branch: target.value })} />
          <datalist id="branches">{repository.refs.map((ref) => <option key={ref.repoRefId} value={shortRef(ref.ref)} />)}</datalist>
          <TextField label={words.url} hint={words.urlHint} type="url" maxLength={2048} value={draft.url} onChange={({ target }) => set({ url: target.value })} />
          <TextField label={words.repository} hint={words.repositoryHint} type="url" maxLength={2000} value={draft.repository} onChange={({ target }) => set({ repository: target.value })} />
          <NameList
            label={words.tags}
            known={tags.map((tag) => tag.name)}
            chosen={draft.tags}
            onToggle={(tag) => set({ tags: draft.tags.includes(tag) ? draft.tags.filter((one) => one !== tag) : [...draft.tags, tag] })}
          />
          <TextArea label={words.ignored} hint={words.ignoredHint} className="sm:col-span-2" rows={4} spellCheck={false} value={draft.ignored} onChange={({ target }) => set({ ignored: target.value })} />
        </fieldset>
        {update.isError && <p role="alert" className="mt-3 text-bad">{update.error.message}</p>}
        {!readOnly && <Button type="submit" look="primary" className="mt-4" disabled={update.isPending || Object.keys(changes).length === 0}>{words.save}</Button>}
      </form>
    </Card>
  );
}
