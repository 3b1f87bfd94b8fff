import { X } from "lucide-react";
import { type ReactNode, useEffect, useId, useRef } from "react";
import * as texts from "@/texts";
import { IconButton } from "./button";
import { cx } from "./cx";

/**
 * A modal dialog: the browser's own `<dialog>`, which traps the focus, closes on Escape and needs no injected styles (the
 * page's Content-Security-Policy forbids them).
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
  useEffect(() => {
    const dialog = ref.current;
    if (!dialog) return;
    if (open && !dialog.open) {
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
      onClick={(event) => event.target === ref.current && onClose()}
      className={cx(
        "m-auto max-h-[85dvh] w-[calc(100vw-2rem)] rounded-lg bg-raised p-0 text-ink shadow-pop backdrop:bg-[rgb(0_0_0/0.4)]",
        wide ? "max-w-3xl" : "max-w-lg",
      )}
    >
      {open && (
        <div className="flex max-h-[85dvh] flex-col">
          <header className="flex items-center gap-2 border-b border-line py-2 pr-2 pl-4">
            <h2 id={titleId} className="grow text-[0.9375rem] font-semibold">{title}</h2>
            <IconButton label={texts.shell.actions.close} onClick={onClose}><X size={16} aria-hidden /></IconButton>
          </header>
          <div className="overflow-y-auto p-4">{children}</div>
          {footer && <footer className="flex flex-wrap justify-end gap-2 border-t border-line px-4 py-3">{footer}</footer>}
        </div>
      )}
    </dialog>
  );
}
