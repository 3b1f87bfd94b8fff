import { useQuery } from "@tanstack/react-query";
import { useCallback, useEffect, useState } from "react";
import { ApiError } from "@/api/client";
import { useToast } from "@/parts/toast";
import * as texts from "@/texts";
import { issueQuery } from "./calls";
import type { Pages } from "./pages";
import { type Row, rowOf } from "./rows";
import { type Name, useNamed } from "./use-named";

/** The number of a finding that the list has no row for. */
const outside = -1;

interface Opened {
  /** The number of its row. */
  index: number;
  /** The finding itself, if the list has no row for it. */
  row?: Row;
  /** The id of a finding that is still being looked for. */
  wanted?: string;
  /** Whether the first row is opened if the list does not have the wanted one. */
  optional?: boolean;
}

/**
 * The open finding. `named` is the one in the address, and `name` changes that: an address opens the same finding again,
 * also one that no longer matches the filter or is far down in the list.
 */
export function useOpened(deploymentId: string, pages: Pages, named: string | undefined, name: Name) {
  const toast = useToast();
  const [opened, setOpened] = useState<Opened>(named === undefined ? { index: 0 } : { index: outside, wanted: named });
  useEffect(() => setOpened(named === undefined ? { index: 0 } : { index: outside, wanted: named, optional: true }), [pages]); // eslint-disable-line react-hooks/exhaustive-deps -- only for another list
  const row = opened.wanted === undefined ? (opened.row ?? pages.row(opened.index)) : undefined;
  const write = useNamed(named, row?.id, name, (id) => setOpened({ index: outside, wanted: id }));

  const looked = opened.optional ? undefined : opened.wanted;
  const { data: found, error } = useQuery({ ...issueQuery(deploymentId, looked ?? ""), enabled: looked !== undefined });
  useEffect(() => {
    const { wanted, optional } = opened;
    const id = wanted ?? opened.row?.id;
    const index = id === undefined ? undefined : pages.index(id);
    if (index !== undefined) setOpened({ index });
    else if (wanted === undefined) return;
    else if (optional && pages.isRead) setOpened({ index: 0 });
    else if (looked && found && pages.isRead) setOpened({ index: outside, row: rowOf(found) });
    else if (looked && error) {
      toast({ tone: "bad", text: error instanceof ApiError && error.status === 404 ? texts.triage.noFinding(looked) : error.message });
      setOpened({ index: 0 });
      write(undefined);
    }
  });

  return {
    /** The number of the open row, or -1. */
    index: opened.index,
    row,
    isSought: opened.wanted !== undefined,
    write,
    open: useCallback((index: number) => setOpened({ index }), []),
    /** Opens a finding that may have no row. */
    show: useCallback((one: Row) => setOpened({ index: outside, row: one }), []),
    move: (by: number) => setOpened((now) => ({ index: Math.max(0, Math.min(now.index + by, Math.max(0, pages.length - 1))) })),
    patch: useCallback((one: string, change: (row: Row) => Row) => setOpened((now) => (now.row?.id === one ? { ...now, row: change(now.row) } : now)), []),
  };
}
