import type { Row } from "./rows";

/** A page as the server answers it. */
export interface Fetched {
  rows: Row[];
  /** Continues after the page; empty after the last one. */
  cursor: string;
}

/** Where a page begins: after a cursor, or after a number of findings. */
export type Start = { cursor: string } | { offset: number };
export type Fetch = (start: Start, limit: number, signal: AbortSignal) => Promise<Fetched>;

export const pageSize = 100;
/** Pages that stay in memory: the nearest to what is on the screen. */
export const keptPages = 12;
/** Cursors that stay in memory: of 200,000 findings. */
export const keptCursors = 2_000;

/**
 * The window of a long list. It reads the pages that are looked at: after the cursor of the page before them where that is
 * known, so that no finding is missed while others leave the filter, and by their number after a jump. Far pages are
 * dropped and read again.
 */
export class Pages {
  private pages = new Map<number, Row[]>();
  private cursors = new Map<number, string>([[0, ""]]);
  private loading = new Map<number, AbortController>();
  /** First and last page that is looked at. */
  private wanted: [number, number] = [0, -1];
  private failed: unknown;
  private indexOf = new Map<string, number>();
  /** Number of rows: what the server counted, until the end of the list says it exactly. */
  private total: number;
  private ended = false;
  private listeners = new Set<() => void>();
  private version = 0;

  constructor(private fetch: Fetch, total = 0) {
    this.total = total;
  }

  subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => void this.listeners.delete(listener);
  };
  /** Changes whenever a row does. */
  snapshot = (): number => this.version;

  get length(): number {
    return this.total;
  }
  get error(): unknown {
    return this.failed;
  }
  get isEmpty(): boolean {
    return this.ended && this.total === 0;
  }
  /** Whether it is known which findings the list begins with. */
  get isRead(): boolean {
    return this.pages.has(0) || this.isEmpty || this.failed !== undefined;
  }
  get heldPages(): number {
    return this.pages.size;
  }
  get rows(): Row[] {
    return [...this.pages.values()].flat();
  }

  row(index: number): Row | undefined {
    return this.pages.get(Math.floor(index / pageSize))?.[index % pageSize];
  }
  /** Whether there is no row any more where one was: it left the filter before its page was read again. */
  isGone(index: number): boolean {
    const page = this.pages.get(Math.floor(index / pageSize));
    return page !== undefined && page[index % pageSize] === undefined;
  }
  find(id: string): Row | undefined {
    const index = this.indexOf.get(id);
    return index === undefined ? undefined : this.row(index);
  }
  index(id: string): number | undefined {
    return this.indexOf.get(id);
  }

  /** Takes the number of rows that the server counted. */
  expect(total: number): void {
    if (this.ended || total === this.total) return;
    this.total = total;
    this.changed();
  }

  /** Changes a row that is in memory. */
  patch(id: string, change: (row: Row) => Row): void {
    const index = this.indexOf.get(id);
    const page = index === undefined ? undefined : this.pages.get(Math.floor(index / pageSize));
    const row = index === undefined ? undefined : page?.[index % pageSize];
    if (!page || !row || index === undefined) return;
    page[index % pageSize] = change(row);
    this.changed();
  }

  /** Reads what is missing between two rows, and stops reading what is far from them. */
  look(first: number, last: number): void {
    const from = Math.max(0, Math.floor(first / pageSize));
    const to = Math.floor(Math.max(first, Math.min(last, this.total - 1)) / pageSize);
    for (const [page, reading] of this.loading) {
      if (page < from - 1 || page > to + 1) {
        reading.abort();
        this.loading.delete(page);
      }
    }
    this.wanted = [from, to];
    this.loadWanted();
    this.evict((from + to) / 2);
  }

  private loadWanted(): void {
    for (let page = this.wanted[0]; page <= this.wanted[1]; page++) void this.load(page);
  }

  retry(): void {
    this.failed = undefined;
    this.loadWanted();
    this.changed();
  }

  close(): void {
    for (const reading of this.loading.values()) reading.abort();
    this.loading.clear();
  }

  private start(page: number): Start {
    const cursor = this.cursors.get(page);
    return cursor === undefined ? { offset: page * pageSize } : { cursor };
  }

  /** Whether a page is on its way, or waits for one that is. The next page's cursor comes with it. */
  private comes(page: number): boolean {
    if (this.loading.has(page)) return true;
    return page >= this.wanted[0] && !this.pages.has(page) && !this.cursors.has(page) && this.comes(page - 1);
  }

  private async load(page: number): Promise<void> {
    if (this.pages.has(page) || this.loading.has(page) || this.failed) return;
    if (!this.cursors.has(page) && this.comes(page - 1)) return;
    if (this.ended && page * pageSize >= this.total && page > 0) return;
    const reading = new AbortController();
    this.loading.set(page, reading);
    try {
      const fetched = await this.fetch(this.start(page), pageSize, reading.signal);
      if (this.loading.get(page) !== reading) return;
      this.loading.delete(page);
      this.take(page, fetched);
      this.loadWanted(); // the next page may have waited for this one's cursor
    } catch (error) {
      if (this.loading.get(page) !== reading) return;
      this.loading.delete(page);
      this.failed = error;
    }
    this.changed();
  }

  private take(page: number, { rows, cursor }: Fetched): void {
    // A page that is read again may reach into the next one, because rows of it have left the filter since.
    const own = rows.filter((row) => Math.floor((this.indexOf.get(row.id) ?? page * pageSize) / pageSize) <= page);
    this.pages.set(page, own);
    own.forEach((row, i) => this.indexOf.set(row.id, page * pageSize + i));
    if (cursor) {
      if (!this.cursors.has(page + 1)) this.cursors.set(page + 1, cursor);
      if (this.cursors.size > keptCursors) {
        const oldest = [...this.cursors.keys()].find((one) => one !== 0 && one !== page + 1);
        if (oldest !== undefined) this.cursors.delete(oldest);
      }
      this.total = Math.max(this.total, (page + 1) * pageSize + 1);
    } else {
      this.ended = true;
      this.total = page * pageSize + rows.length;
    }
  }

  private evict(center: number): void {
    if (this.pages.size <= keptPages) return;
    const far = [...this.pages.keys()].sort((a, b) => Math.abs(b - center) - Math.abs(a - center)).slice(0, this.pages.size - keptPages);
    for (const page of far) {
      for (const row of this.pages.get(page) ?? []) this.indexOf.delete(row.id);
      this.pages.delete(page);
    }
  }

  private changed(): void {
    this.version++;
    for (const listener of this.listeners) listener();
  }
}
