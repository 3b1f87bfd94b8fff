import { Checkbox } from "@/parts/field";
import { Card } from "@/parts/page";
import { Failure, Loading } from "@/parts/states";
import * as texts from "@/texts";
import { useTeams } from "./data";

const words = texts.projects.detail;

/** The teams that see the project. A change applies at once. */
export function TeamsCard({ projectId, readOnly }: { projectId: string; readOnly: boolean }) {
  const { teams, toggle } = useTeams(projectId);
  return (
    <Card title={words.teams}>
      {teams.isPending && <Loading />}
      {teams.isError && <Failure error={teams.error} retry={() => void teams.refetch()} />}
      {teams.data?.length === 0 && <p className="text-muted text-pretty">{words.noTeams}</p>}
      {teams.data && teams.data.length > 0 && (
        <fieldset className="grid gap-2" disabled={readOnly || toggle.isPending}>
          <legend className="mb-2 text-muted">{words.teamsHint}</legend>
          <div className="grid max-h-64 gap-2 overflow-y-auto">
            {teams.data.map((team) => (
              <Checkbox key={team.id} label={team.name} checked={team.has} onChange={({ target }) => toggle.mutate({ teamId: team.id ?? "", add: target.checked })} />
            ))}
          </div>
        </fieldset>
      )}
    </Card>
  );
}
