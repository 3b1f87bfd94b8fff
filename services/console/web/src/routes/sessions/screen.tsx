import { queryOptions, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, type Schemas, unwrap } from "@/api/client";
import { formatNumber } from "@/format";
import { Badge } from "@/parts/badge";
import { Button } from "@/parts/button";
import { cx } from "@/parts/cx";
import { Dialog } from "@/parts/dialog";
import { Page } from "@/parts/page";
import { Failure, Loading } from "@/parts/states";
import { Table, Td, Th } from "@/parts/table";
import { useToast } from "@/parts/toast";
import { When } from "@/parts/when";
import * as texts from "@/texts";
import { browserOf } from "./agent";

const { sessions: words } = texts;

type Session = Schemas["identity.v1.Session"];

/** Columns that a phone has no room for. */
const wide = "max-md:hidden";

const sessionsQuery = queryOptions({
  queryKey: ["sessions"],
  queryFn: async () => (await unwrap(api.GET("/api/v1/sessions"))).sessions,
});

/** The browsers in which the caller is signed in. */
export default function Sessions() {
  const { data, error, refetch } = useQuery(sessionsQuery);
  const others = data?.filter((one) => !one.current).length ?? 0;
  return (
    <Page title={words.title} intro={words.intro} actions={others > 0 && <RevokeOthers count={others} />}>
      {error ? <Failure error={error} retry={() => void refetch()} /> : data ? <List sessions={data} /> : <Loading />}
      {data && others === 0 && <p className="mt-3 text-muted">{words.onlyOne}</p>}
    </Page>
  );
}

function List({ sessions }: { sessions: Session[] }) {
  const head = (
    <>
      <Th>{words.browser}</Th>
      <Th className={wide}>{words.address}</Th>
      <Th className={wide}>{words.signedIn}</Th>
      <Th>{words.lastUsed}</Th>
      <Th className={wide}>{words.ends}</Th>
      <Th><span className="sr-only">{words.action}</span></Th>
    </>
  );
  return (
    <Table label={words.table} head={head}>
      {sessions.map((one) => <Row key={one.id} session={one} />)}
    </Table>
  );
}

function Row({ session }: { session: Session }) {
  const toast = useToast();
  const queries = useQueryClient();
  const revoke = useMutation({
    mutationFn: () => unwrap(api.DELETE("/api/v1/sessions/{sessionId}", { params: { path: { sessionId: String(session.id) } } })),
    onSuccess: () => toast({ text: words.revoked, tone: "good" }),
    onSettled: () => queries.invalidateQueries(sessionsQuery),
  });
  const browser = browserOf(session.agent ?? "");
  return (
    <tr>
      <Td>
        <span className="font-medium whitespace-nowrap" title={session.agent}>{browser}</span>
        <span className="block text-xs text-muted">{methodOf(session)}</span>
        <span className="block font-mono text-xs text-muted md:hidden">{session.address}</span>
      </Td>
      <Td className={cx(wide, "font-mono text-xs")}>{session.address}</Td>
      <Td className={wide}><When at={session.createdAt} /></Td>
      <Td><When at={session.lastUsedAt} /></Td>
      <Td className={wide}><When at={session.expiresAt} /></Td>
      <Td className="text-right">
        {session.current ? (
          <Badge tone="accent">{words.current}</Badge>
        ) : (
          <Button
            look="danger"
            aria-label={words.revokeLabel(browser, session.address ?? "")}
            disabled={revoke.isPending}
            onClick={() => revoke.mutate()}
          >
            {words.revoke}
          </Button>
        )}
      </Td>
    </tr>
  );
}

function methodOf(session: Session): string {
  const methods: Record<string, string> = words.methods;
  return methods[session.method ?? ""] ?? "";
}

function RevokeOthers({ count }: { count: number }) {
  const [open, setOpen] = useState(false);
  const toast = useToast();
  const queries = useQueryClient();
  const revoke = useMutation({
    mutationFn: () => unwrap(api.DELETE("/api/v1/sessions")),
    onSuccess: ({ revokedCount }) => toast({ text: words.revokedOthers(formatNumber(Number(revokedCount))), tone: "good" }),
    onSettled: () => {
      setOpen(false);
      return queries.invalidateQueries(sessionsQuery);
    },
  });
  return (
    <>
      <Button look="danger" onClick={() => setOpen(true)}>{words.revokeOthers}</Button>
      <Dialog
        open={open}
        onClose={() => setOpen(false)}
        title={words.revokeOthersTitle}
        footer={
          <>
            <Button onClick={() => setOpen(false)}>{texts.shell.actions.cancel}</Button>
            <Button look="danger" disabled={revoke.isPending} onClick={() => revoke.mutate()}>{words.revokeOthers}</Button>
          </>
        }
      >
        <p>{words.revokeOthersText(formatNumber(count))}</p>
      </Dialog>
    </>
  );
}
