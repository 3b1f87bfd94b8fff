import { X } from "lucide-react";
import { type ReactNode, useEffect, useId, useRef, useState } from "react";
import * as texts from "@/texts";
import { Button, IconButton } from "./button";
import { cx } from "./cx";

const t = texts.shell.unsaved;

/**
 * A modal dialog: the browser's own `<dialog>`, which traps the focus, closes on Escape and needs no injected styles (the
 * page's Content-Security-Policy forbids them). Escape, a click beside it and its cross ask once before they drop what
 * was typed.
 */
export function Dialog({ open, onClose, title, children, footer, wide }: {
  open: boolean;
  onClose: () => void;
  title: string;
  children: ReactNode;
  footer?: ReactNode;
  wide?: boolean;
}) {
  const ref = useRef<HTMLDialogElement>(null);
  const titleId = useId();
  const typed = useRef(new Set<HTMLElement>());
  const [asking, setAsking] = useState(false);
  const goOn = useRef<HTMLButtonElement>(null);
  useEffect(() => goOn.current?.focus(), [asking]);
  const hasTyped = () => [...typed.current].some((field) => field.isConnected);
  const close = () => (hasTyped() && !asking ? setAsking(true) : onClose());
  useEffect(() => {
    const dialog = ref.current;
    if (!dialog) return;
    if (open && !dialog.open) {
      typed.current.clear();
      setAsking(false);
      dialog.showModal();
      // React's autoFocus comes before the dialog is shown, and has no effect then.
      dialog.querySelector<HTMLElement>("[data-autofocus]")?.focus();
    }
    if (!open && dialog.open) dialog.close();
  }, [open]);
  return (
    <dialog
      ref={ref}
      aria-labelledby={titleId}
      onClose={onClose}
      onCancel={(event) => {
        if (event.target !== ref.current || !hasTyped() || asking) return;
        event.preventDefault();
        setAsking(true);
      }}
      onClick={(event) => event.target === ref.current && close()}
      onInput={({ target }) => {
        if (!(target instanceof HTMLTextAreaElement || (target instanceof HTMLInputElement && /^(text|email|url|number)$/.test(target.type)))) return;
        if (target.value.trim()) typed.current.add(target);
        else typed.current.delete(target);
      }}
      className={cx(
        "m-auto max-h-[85dvh] w-[calc(100vw-2rem)] rounded-lg bg-raised p-0 text-ink shadow-pop backdrop:bg-[rgb(0_0_0/0.4)]",
        wide ? "max-w-3xl" : "max-w-lg",
      )}
    >
      {open && (
        <div className="flex max-h-[85dvh] flex-col">
          <header className="flex items-center gap-2 border-b border-line py-2 pr-2 pl-4">
            <h2 id={titleId} className="grow text-[0.9375rem] font-semibold">{title}</h2>
            <IconButton label={texts.shell.actions.close} onClick={close}><X size={16} aria-hidden /></IconButton>
          </header>
          {asking && (
            <div role="alertdialog" aria-label={t.title} className="flex flex-wrap items-center gap-2 border-b border-warn/30 bg-warn/10 px-4 py-2">
              <p className="min-w-0 grow text-[0.8125rem] font-medium">{t.title}</p>
              <span className="flex gap-2">
                <Button onClick={onClose}>{t.discard}</Button>
                <Button
                  look="primary"
                  ref={goOn}
                  onClick={() => {
                    setAsking(false);
                    [...typed.current].find((field) => field.isConnected)?.focus();
                  }}
                >
                  {t.goOn}
                </Button>
              </span>
            </div>
          )}
          <div className="overflow-y-auto p-4">{children}</div>
          {footer && <footer className="flex flex-wrap justify-end gap-2 border-t border-line px-4 py-3">{footer}</footer>}
        </div>
      )}
    </dialog>
  );
}
