import { useState } from "react";
import { Badge } from "@/parts/badge";
import { Button } from "@/parts/button";
import { Dialog } from "@/parts/dialog";
import { Select } from "@/parts/field";
import { Card } from "@/parts/page";
import { Failure, Loading } from "@/parts/states";
import { Table, Td, Th } from "@/parts/table";
import { useToast } from "@/parts/toast";
import * as texts from "@/texts";
import { type Installation, type Mapping, useChannels, useSlack } from "./data";

const words = texts.integrations.slack;

/** The Slack app: its workspace, and the channels that it posts to. */
export function SlackCard() {
  const { installation, install } = useSlack();
  const { data } = installation;
  const connect = <Button look="primary" disabled={install.isPending} onClick={() => install.mutate()}>{data?.installed ? words.again : words.connect}</Button>;
  return (
    <Card title={words.title} actions={data?.installed && <Uninstall team={data.installed.team_name} />}>
      {installation.isPending && <Loading />}
      {installation.isError && <Failure error={installation.error} retry={() => void installation.refetch()} />}
      {data?.missing && (
        <div className="grid justify-items-start gap-3">
          <p className="text-pretty">{words.intro}</p>
          <p className="text-muted text-pretty">{data.missing}</p>
          {connect}
        </div>
      )}
      {data?.installed && (
        <div className="grid gap-4">
          <Workspace installed={data.installed} />
          {(data.installed.archived || data.installed.update_available) && <div>{connect}</div>}
          <Channels usable={!data.installed.archived} />
        </div>
      )}
    </Card>
  );
}

function Workspace({ installed }: { installed: Installation }) {
  return (
    <p className="flex flex-wrap items-center gap-2">
      <span>{words.workspace(installed.team_name)}</span>
      {installed.archived ? <Badge tone="bad">{words.archived}</Badge> : <Badge tone="good">{words.connected}</Badge>}
      {installed.update_available && <span className="text-muted">{words.update}</span>}
    </p>
  );
}

function Uninstall({ team }: { team: string }) {
  const [open, setOpen] = useState(false);
  const { uninstall } = useSlack();
  return (
    <>
      <Button look="danger" onClick={() => setOpen(true)}>{words.remove}</Button>
      <Dialog
        open={open}
        onClose={() => setOpen(false)}
        title={words.removeTitle(team)}
        footer={
          <>
            <Button onClick={() => setOpen(false)}>{texts.shell.actions.cancel}</Button>
            <Button look="danger" disabled={uninstall.isPending} onClick={() => uninstall.mutate(undefined, { onSettled: () => setOpen(false) })}>{words.remove}</Button>
          </>
        }
      >
        <p>{words.removeText}</p>
      </Dialog>
    </>
  );
}

function Channels({ usable }: { usable: boolean }) {
  const { mappings } = useSlack();
  if (mappings.isPending) return <Loading />;
  if (mappings.isError) return <Failure error={mappings.error} retry={() => void mappings.refetch()} />;
  const head = (
    <>
      <Th>{words.channel}</Th>
      <Th>{words.what}</Th>
      <Th><span className="sr-only">{words.action}</span></Th>
    </>
  );
  return (
    <>
      {mappings.data.length === 0 ? <p className="text-muted">{words.noChannels}</p> : (
        <Table label={words.channels} head={head}>
          {mappings.data.map((one) => <Row key={one.id} mapping={one} usable={usable} />)}
        </Table>
      )}
      {usable && <AddChannel />}
    </>
  );
}

function Row({ mapping, usable }: { mapping: Mapping; usable: boolean }) {
  const { remove, test } = useSlack();
  const toast = useToast();
  const name = mapping.channel_name || mapping.channel_id;
  const send = () =>
    test.mutate(mapping.id, {
      onSuccess: ({ success, errorDetail }) => toast(success ? { text: words.tested(name), tone: "good" } : { text: errorDetail, tone: "bad" }),
    });
  return (
    <tr>
      <Td>#{name}</Td>
      <Td>{mapping.policies.length > 0 ? words.policies(mapping.policies.join(", ")) : words.all}</Td>
      <Td className="text-right whitespace-nowrap">
        <span className="inline-flex gap-2">
          {usable && <Button disabled={test.isPending} aria-label={words.testLabel(name)} onClick={send}>{words.test}</Button>}
          <Button look="danger" disabled={remove.isPending} aria-label={words.stopLabel(name)} onClick={() => remove.mutate(mapping.id)}>{words.stop}</Button>
        </span>
      </Td>
    </tr>
  );
}

/** Channels are read only after somebody wants to add one: it takes a request to Slack. */
function AddChannel() {
  const [open, setOpen] = useState(false);
  const [chosen, setChosen] = useState("");
  const channels = useChannels(open);
  const { add } = useSlack();
  const channel = channels.data?.find((one) => one.id === chosen);
  if (!open) return <Button className="justify-self-start" onClick={() => setOpen(true)}>{words.add}</Button>;
  if (channels.isPending) return <Loading label={words.asking} />;
  if (channels.isError) return <Failure error={channels.error} retry={() => void channels.refetch()} />;
  return (
    <form
      className="flex flex-wrap items-end gap-2"
      onSubmit={(event) => {
        event.preventDefault();
        if (channel) add.mutate(channel, { onSuccess: () => setOpen(false) });
      }}
    >
      <Select label={words.channel} hint={words.privateHint} value={chosen} onChange={({ target }) => setChosen(target.value)}>
        <option value="">{words.choose}</option>
        {channels.data.map((one) => <option key={one.id} value={one.id}>{one.private ? words.private(one.name) : `#${one.name}`}</option>)}
      </Select>
      <Button look="primary" type="submit" disabled={!channel || add.isPending}>{words.addThis}</Button>
      <Button onClick={() => setOpen(false)}>{texts.shell.actions.cancel}</Button>
    </form>
  );
}
