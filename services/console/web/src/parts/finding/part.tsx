import { type ReactNode, useState } from "react";

/** A part of a finding that can be closed. What is closed is not rendered, and so not read from the server. */
export function Part({ title, open = false, children }: { title: string; open?: boolean; children: ReactNode }) {
  const [shown, setShown] = useState(open);
  return (
    <details open={shown} onToggle={(event) => setShown(event.currentTarget.open)} className="mt-4 border-t border-line pt-2">
      <summary className="cursor-pointer rounded py-1 text-[0.8125rem] font-semibold">{title}</summary>
      {shown && <div className="pt-1 text-[0.8125rem]">{children}</div>}
    </details>
  );
}
