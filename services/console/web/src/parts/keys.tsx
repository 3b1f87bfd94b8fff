import { createContext, type ReactNode, useContext, useEffect, useMemo, useRef, useState } from "react";
import * as texts from "@/texts";
import { Dialog } from "./dialog";

/** A key of a screen. `key` is a KeyboardEvent.key ("j", "A", "?", " ", "ArrowDown"), or two in turn ("g t"). */
export interface Key {
  key: string;
  /** What it does, for the help dialog. */
  text: string;
  run: (event: KeyboardEvent) => void;
}

interface KeyGroup {
  title: string;
  keys: Key[];
}

type Groups = Map<number, React.RefObject<KeyGroup>>;

const Context = createContext<{ groups: Groups; help: () => void } | undefined>(undefined);

const typing = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName)) && !(target as HTMLInputElement).matches('[type="checkbox"],[type="radio"]');

/** Keys that the focused control uses itself. */
const usesKey = (target: EventTarget | null, key: string): boolean =>
  target instanceof HTMLElement &&
  (key === " " || key === "Enter") &&
  target.closest('button,a[href],summary,input,[role="menuitem"],[role="tab"],[role="option"],[role="checkbox"]') !== null;

const longestPause = 1_000;

/** What is open above a screen, and keeps its keys from the screen: dialogs, menus, and panels at a button. */
const overlays = "dialog[open],[role=menu],[role=dialog]";

/** Keys that move, and so repeat while they are held. Every other key acts once. */
const moving = new Set(["j", "k", "J", "K", "ArrowDown", "ArrowUp"]);

/** Listens once for all keys of the page. Screens add theirs with useKeys; later ones take precedence. */
export function Keys({ children }: { children: ReactNode }) {
  const [open, setOpen] = useState(false);
  const groups = useRef<Groups>(new Map()).current;
  const prefix = useRef({ key: "", at: 0 });
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
      if (typing(event.target) || usesKey(event.target, event.key) || document.querySelector(overlays)) return;
      const before = event.timeStamp - prefix.current.at < longestPause ? prefix.current.key : "";
      prefix.current = { key: event.key, at: event.timeStamp };
      const all = [...groups.values()].reverse().flatMap((group) => group.current.keys);
      const hit = (before && all.find((one) => one.key === `${before} ${event.key}`)) || all.find((one) => one.key === event.key);
      if (!hit) return;
      event.preventDefault();
      prefix.current = { key: "", at: 0 };
      if (!event.repeat || moving.has(event.key)) hit.run(event);
    };
    document.addEventListener("keydown", onKeyDown);
    return () => document.removeEventListener("keydown", onKeyDown);
  }, [groups]);
  const context = useMemo(() => ({ groups, help: () => setOpen(true) }), [groups]);
  return (
    <Context value={context}>
      {children}
      <Dialog open={open} onClose={() => setOpen(false)} title={texts.shell.keys.title}>
        <p className="mb-3 text-muted">{texts.shell.keys.hint}</p>
        <div className="grid gap-4 sm:grid-cols-2">
          {[...groups.values()].reverse().map(({ current }) => (
            <section key={current.title}>
              <h3 className="mb-1 text-xs font-semibold text-muted">{current.title}</h3>
              <dl className="grid grid-cols-[auto_1fr] items-center gap-x-3 gap-y-1.5">
                {current.keys.map((one) => (
                  <div key={one.key} className="contents">
                    <dt className="flex gap-1">{one.key.split(/(?<=.) (?=.)/).map((part) => <Kbd key={part}>{part}</Kbd>)}</dt>
                    <dd>{one.text}</dd>
                  </div>
                ))}
              </dl>
            </section>
          ))}
        </div>
      </Dialog>
    </Context>
  );
}

const names: Record<string, string> = { " ": "Space", ArrowDown: "↓", ArrowUp: "↑", ArrowLeft: "←", ArrowRight: "→", Escape: "Esc" };

/** A key cap. */
export function Kbd({ children }: { children: string }) {
  return (
    <kbd className="inline-flex h-5 min-w-5 items-center justify-center rounded border border-line-strong/50 bg-sunken px-1 font-sans text-2xs font-semibold text-muted">
      {names[children] ?? children}
    </kbd>
  );
}

let nextGroup = 0;

/** useKeys adds the keys of a screen while it is shown. */
export function useKeys(title: string, keys: Key[]): void {
  const context = useContext(Context);
  const group = useRef<KeyGroup>({ title, keys });
  group.current = { title, keys };
  useEffect(() => {
    const id = ++nextGroup;
    context?.groups.set(id, group);
    return () => void context?.groups.delete(id);
  }, [context]);
}

/** useKeyHelp returns a function that opens the list of keys. */
export const useKeyHelp = (): (() => void) => useContext(Context)?.help ?? (() => undefined);
