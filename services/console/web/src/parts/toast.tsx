import { CircleAlert, CircleCheck, X } from "lucide-react";
import { createContext, type ReactNode, useCallback, useContext, useMemo, useRef, useState } from "react";
import * as texts from "@/texts";
import { Button, IconButton } from "./button";

interface Toast {
  id: number;
  text: string;
  tone: "good" | "bad";
  /** A message replaces the one with the same key. */
  key?: string;
  action?: { label: string; run: () => void };
}

type Show = (toast: Omit<Toast, "id">) => void;

const Context = createContext<Show>(() => undefined);

/** useToast returns a function that shows a message, with an action such as undo. */
export const useToast = (): Show => useContext(Context);

/** The key of messages about decisions: while somebody decides by keys, only the last one is news. */
export const decisionToast = "decision";

const shownFor = { good: 6_000, bad: 12_000 };

/** Keeps the last three messages at the lower edge, on wide screens in the right corner: lists are at the left. Screen readers read them when they come. */
export function Toasts({ children }: { children: ReactNode }) {
  const [toasts, setToasts] = useState<Toast[]>([]);
  const last = useRef(0);
  const dismiss = useCallback((id: number) => setToasts((all) => all.filter((one) => one.id !== id)), []);
  const show = useCallback<Show>(
    (toast) => {
      const id = ++last.current;
      setToasts((all) => [...all.filter(({ key }) => !key || key !== toast.key).slice(-2), { ...toast, id }]);
      setTimeout(() => dismiss(id), shownFor[toast.tone]);
    },
    [dismiss],
  );
  const context = useMemo(() => show, [show]);
  return (
    <Context value={context}>
      {children}
      <div
        role="status"
        aria-live="polite"
        className="pointer-events-none fixed inset-x-0 bottom-16 z-40 flex flex-col items-center gap-2 px-4 md:bottom-4 md:items-end print:hidden"
      >
        {toasts.map((toast) => (
          <div key={toast.id} className="pointer-events-auto flex max-w-xl items-center gap-2 rounded-md bg-raised py-1.5 pr-1.5 pl-3 shadow-pop">
            <span className={toast.tone === "bad" ? "text-bad" : "text-good"} aria-hidden>
              {toast.tone === "bad" ? <CircleAlert size={16} /> : <CircleCheck size={16} />}
            </span>
            <span className="line-clamp-3 min-w-0 text-[0.8125rem] wrap-anywhere">{toast.text}</span>
            {toast.action && (
              <Button
                look="quiet"
                className="text-accent"
                onClick={() => {
                  dismiss(toast.id);
                  toast.action?.run();
                }}
              >
                {toast.action.label}
              </Button>
            )}
            <IconButton label={texts.shell.actions.dismiss} onClick={() => dismiss(toast.id)}>
              <X size={14} aria-hidden />
            </IconButton>
          </div>
        ))}
      </div>
    </Context>
  );
}
