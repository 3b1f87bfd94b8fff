import { type ComponentProps, type ReactNode, useId } from "react";
import { cx } from "./cx";

const control =
  "w-full min-h-8 rounded-md border border-line-strong/60 bg-surface px-2.5 py-1 text-[0.8125rem] text-ink placeholder:text-muted aria-invalid:border-bad disabled:opacity-60";

interface Frame {
  label: string;
  hint?: ReactNode;
  error?: string;
  /** The label is for screen readers only. */
  hideLabel?: boolean;
}

function Labelled({ label, hint, error, hideLabel, id, className, children }: Frame & { id: string; className?: string; children: ReactNode }) {
  return (
    <div className={cx("flex flex-col gap-1", className)}>
      <label htmlFor={id} className={hideLabel ? "sr-only" : "text-xs font-medium"}>{label}</label>
      {children}
      {hint && <p id={`${id}-hint`} className="text-xs text-muted">{hint}</p>}
      {error && <p id={`${id}-error`} role="alert" className="text-xs text-bad">{error}</p>}
    </div>
  );
}

const describe = (id: string, { hint, error }: Frame): string | undefined =>
  [hint && `${id}-hint`, error && `${id}-error`].filter(Boolean).join(" ") || undefined;

export function TextField({ label, hint, error, hideLabel, className, ...rest }: Frame & ComponentProps<"input">) {
  const id = useId();
  const frame = { label, hint, error, hideLabel };
  return (
    <Labelled {...frame} id={id} className={className}>
      <input id={id} className={control} aria-invalid={error ? true : undefined} aria-describedby={describe(id, frame)} {...rest} />
    </Labelled>
  );
}

export function TextArea({ label, hint, error, hideLabel, className, ...rest }: Frame & ComponentProps<"textarea">) {
  const id = useId();
  const frame = { label, hint, error, hideLabel };
  return (
    <Labelled {...frame} id={id} className={className}>
      <textarea id={id} className={cx(control, "min-h-20")} aria-invalid={error ? true : undefined} aria-describedby={describe(id, frame)} {...rest} />
    </Labelled>
  );
}

/** A choice of one. The browser's own control: it works with a keyboard, a screen reader and a phone. */
export function Select({ label, hint, error, hideLabel, className, children, ...rest }: Frame & ComponentProps<"select">) {
  const id = useId();
  const frame = { label, hint, error, hideLabel };
  return (
    <Labelled {...frame} id={id} className={className}>
      <select id={id} className={control} aria-invalid={error ? true : undefined} aria-describedby={describe(id, frame)} {...rest}>
        {children}
      </select>
    </Labelled>
  );
}

export function Checkbox({ label, className, ...rest }: { label: ReactNode } & Omit<ComponentProps<"input">, "type">) {
  return (
    <label className={cx("flex items-center gap-2 text-[0.8125rem]", className)}>
      <input type="checkbox" className="size-4 accent-(--color-accent)" {...rest} />
      <span>{label}</span>
    </label>
  );
}
