import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Bookmark, ChevronDown } from "lucide-react";
import { useState } from "react";
import { api, type Schemas, unwrap } from "@/api/client";
import { useDeployment, useMay } from "@/api/session";
import { Button } from "@/parts/button";
import { Dialog } from "@/parts/dialog";
import { Checkbox, Select, TextField } from "@/parts/field";
import { Menu, MenuChoice, MenuItem, MenuLabel, MenuLine } from "@/parts/menu";
import { useToast } from "@/parts/toast";
import * as texts from "@/texts";
import { viewsQuery } from "./calls";
import { clean, fromView, type Search, toView } from "./search";

export type View = Schemas["findings.v1.SavedView"];

const t = texts.triage.views;
const scopes = ["own", "team", "deployment"] as const;

/** The view that is shown when the screen is opened without conditions: an own default before a team's. */
export const defaultView = (views: View[] | undefined): View | undefined =>
  scopes.map((scope) => views?.find((view) => view.scope === scope && view.is_default)).find(Boolean);

/** What reports count as open. */
const backlog: Search = { state: "open,reviewing,fixing" };

const same = (a: Search, b: Search): boolean => JSON.stringify(clean(a)) === JSON.stringify(clean(b));

/** Opens, saves and deletes views. */
export function Views({ search, set }: { search: Search; set: (search: Search) => void }) {
  const deploymentId = useDeployment().id ?? "";
  const { data: views } = useQuery(viewsQuery(deploymentId));
  const [saving, setSaving] = useState(false);
  const queryClient = useQueryClient();
  const toast = useToast();
  const current = views?.find((view) => String(view.id) === search.view);
  const changed = current && !same(search, fromView(String(current.id), current.view));
  const refresh = () => queryClient.invalidateQueries({ queryKey: viewsQuery(deploymentId).queryKey });
  const path = (view: View) => ({ params: { path: { deploymentId, viewId: String(view.id) } } });
  const update = useMutation({
    mutationFn: (view: View) => unwrap(api.PATCH("/api/v1/deployments/{deploymentId}/saved-views/{viewId}", { ...path(view), body: { view: toView(search) } })),
    onSuccess: (_, view) => {
      toast({ tone: "good", text: t.saved(view.name) });
      void refresh();
    },
  });
  const remove = useMutation({
    mutationFn: (view: View) => unwrap(api.DELETE("/api/v1/deployments/{deploymentId}/saved-views/{viewId}", path(view))),
    onSuccess: (_, view) => {
      toast({ tone: "good", text: t.removed(view.name) });
      set(clean({ ...search, view: undefined }));
      void refresh();
    },
  });
  return (
    <>
      <Menu
        align="start"
        trigger={
          <Button className="max-w-60 px-2" aria-label={t.label}>
            <Bookmark size={14} aria-hidden />
            <span className="truncate">{current?.name ?? t.label}</span>
            {changed && <span className="text-xs text-muted">({t.changed})</span>}
            <ChevronDown size={14} aria-hidden className="text-muted" />
          </Button>
        }
      >
        <MenuChoice checked={!search.view && same(search, {})} onSelect={() => set({ state: "open" })}>{t.all}</MenuChoice>
        <MenuChoice checked={!search.view && same(search, backlog)} onSelect={() => set(backlog)}>{t.backlog}</MenuChoice>
        {scopes.map((scope) => {
          const list = views?.filter((view) => view.scope === scope) ?? [];
          return list.length === 0 ? null : (
            <div key={scope}>
              <MenuLabel>{t[scope]}</MenuLabel>
              {list.map((view) => (
                <MenuChoice key={view.id} checked={view === current} onSelect={() => set(fromView(String(view.id), view.view))}>
                  <span className="max-w-64 truncate">{view.name}</span>
                  {view.is_default && <span className="text-xs text-muted">{t.isDefaultMark}</span>}
                </MenuChoice>
              ))}
            </div>
          );
        })}
        {views?.length === 0 && <p className="max-w-56 px-2 py-1 text-xs text-muted">{t.none}</p>}
        <MenuLine />
        <MenuItem onSelect={() => setSaving(true)}>{t.save}</MenuItem>
        {current?.can_edit && changed && <MenuItem onSelect={() => update.mutate(current)}>{t.update(current.name)}</MenuItem>}
        {current?.can_edit && <MenuItem danger onSelect={() => remove.mutate(current)}>{t.remove(current.name)}</MenuItem>}
      </Menu>
      {saving && (
        <SaveView
          search={search}
          onClose={() => setSaving(false)}
          onSaved={(view) => {
            setSaving(false);
            toast({ tone: "good", text: t.saved(view.name) });
            void refresh();
            set(fromView(String(view.id), view.view));
          }}
        />
      )}
    </>
  );
}

function SaveView({ search, onClose, onSaved }: { search: Search; onClose: () => void; onSaved: (view: View) => void }) {
  const deploymentId = useDeployment().id ?? "";
  const mayAll = useMay("settings:manage");
  const [name, setName] = useState("");
  const [scope, setScope] = useState<(typeof scopes)[number]>("own");
  const [team, setTeam] = useState("");
  const [isDefault, setIsDefault] = useState(false);
  const { data: teams } = useQuery({
    queryKey: ["teams", deploymentId],
    queryFn: async () => (await unwrap(api.POST("/api/permissions/v2/deployments/{deploymentId}/teams/list", { params: { path: { deploymentId } }, body: { limit: "1000" } }))).teams,
  });
  const save = useMutation({
    meta: { handlesErrors: true },
    mutationFn: () =>
      unwrap(api.POST("/api/v1/deployments/{deploymentId}/saved-views", {
        params: { path: { deploymentId } },
        body: { name: name.trim(), scope, ...(scope === "team" && { team_id: team }), is_default: isDefault, view: toView(search) },
      })),
    onSuccess: ({ view }) => view && onSaved(view),
  });
  return (
    <Dialog
      open
      onClose={onClose}
      title={t.save}
      footer={
        <>
          <Button onClick={onClose}>{texts.shell.actions.cancel}</Button>
          <Button look="primary" disabled={!name.trim() || (scope === "team" && !team) || save.isPending} onClick={() => save.mutate()}>{t.save}</Button>
        </>
      }
    >
      <form
        className="flex flex-col gap-3"
        onSubmit={(event) => {
          event.preventDefault();
          if (name.trim()) save.mutate();
        }}
      >
        <TextField label={t.name} value={name} data-autofocus maxLength={255} error={save.error?.message} onChange={(event) => setName(event.target.value)} />
        <Select label={t.forWhom} value={scope} onChange={(event) => setScope(event.target.value as typeof scope)}>
          <option value="own">{t.scopes.own}</option>
          {teams && teams.length > 0 && <option value="team">{t.scopes.team}</option>}
          {mayAll && <option value="deployment">{t.scopes.deployment}</option>}
        </Select>
        {scope === "team" && (
          <Select label={t.team_} value={team} onChange={(event) => setTeam(event.target.value)}>
            <option value="" />
            {teams?.map((one) => <option key={one.id} value={String(one.id)}>{one.name}</option>)}
          </Select>
        )}
        <Checkbox label={t.isDefault} checked={isDefault} onChange={(event) => setIsDefault(event.target.checked)} />
      </form>
    </Dialog>
  );
}
