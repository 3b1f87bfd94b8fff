import { basePath } from "@/api/base";
import { Button } from "@/parts/button";
import { CopyButton } from "@/parts/copy";
import { Card } from "@/parts/page";
import { Failure, Loading } from "@/parts/states";
import * as texts from "@/texts";
import { useBadge } from "./data";

const words = texts.projects.badge;

/** The image is shown from this server, also when its public address is another one. */
const shown = (url: string): string => `${basePath}/badges/${url.slice(url.lastIndexOf("/") + 1)}`;

/** The badge of a project: an image for everybody who has its address. */
export function BadgeCard({ projectId, readOnly }: { projectId: string; readOnly: boolean }) {
  const { badge, make, remove } = useBadge(projectId);
  const url = badge.data?.url;
  return (
    <Card title={words.title}>
      {badge.isPending && <Loading />}
      {badge.isError && <Failure error={badge.error} retry={() => void badge.refetch()} />}
      {badge.isSuccess && !url && (
        <div className="grid gap-3">
          <p className="text-muted text-pretty">{words.off}</p>
          {!readOnly && <Button className="justify-self-start" disabled={make.isPending} onClick={() => make.mutate()}>{words.make}</Button>}
        </div>
      )}
      {url && (
        <div className="grid gap-3">
          <img src={shown(url)} alt={words.alt} className="h-5" />
          <Copyable label={words.markdown} text={`![Palisade](${url})`} />
          <Copyable label={words.address} text={url} />
          {!readOnly && (
            <div className="flex flex-wrap gap-2">
              <Button title={words.renewHint} disabled={make.isPending} onClick={() => make.mutate()}>{words.renew}</Button>
              <Button look="danger" disabled={remove.isPending} onClick={() => remove.mutate()}>{words.remove}</Button>
            </div>
          )}
        </div>
      )}
    </Card>
  );
}

function Copyable({ label, text }: { label: string; text: string }) {
  return (
    <div>
      <p className="text-xs font-medium">{label}</p>
      <div className="flex items-center gap-1">
        <code className="min-w-0 grow truncate rounded bg-sunken px-2 py-1 font-mono text-xs">{text}</code>
        <CopyButton text={text} />
      </div>
    </div>
  );
}
