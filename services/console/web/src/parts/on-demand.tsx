import { cloneElement, type ReactElement, type ReactNode, useEffect, useState } from "react";

export type Radix = typeof import("./radix");

const load = (): Promise<Radix> => import("./radix");
const preload = (): void => void load();

/** A button whose menu or panel is loaded when it is needed first. Once loaded, `children` renders both, opened. */
export function OnDemand({ trigger, popup, open, onOpen, children }: {
  trigger: ReactElement<Record<string, unknown>>;
  popup: "menu" | "dialog";
  /** Opens it from outside. */
  open?: boolean;
  onOpen?: () => void;
  children: (radix: Radix) => ReactNode;
}) {
  const [radix, setRadix] = useState<Radix>();
  useEffect(() => {
    if (open) void load().then(setRadix);
  }, [open]);
  if (radix) return children(radix);
  const start = () => {
    onOpen?.();
    void load().then(setRadix);
  };
  return cloneElement(trigger, {
    "aria-haspopup": popup,
    "aria-expanded": false,
    onClick: start,
    onPointerEnter: preload,
    onFocus: preload,
    onKeyDown: (event: React.KeyboardEvent) => event.key === "ArrowDown" && start(),
  });
}
