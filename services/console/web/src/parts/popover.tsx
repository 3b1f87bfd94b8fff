import type { ReactElement, ReactNode } from "react";
import { OnDemand } from "./on-demand";

/** A panel at a button. Not modal: the modal form injects a style element, which the page's policy forbids. */
export function Popover({ trigger, label, children, open, onOpenChange }: {
  trigger: ReactElement<Record<string, unknown>>;
  label: string;
  children: ReactNode;
  open?: boolean;
  onOpenChange?: (open: boolean) => void;
}) {
  return (
    <OnDemand trigger={trigger} popup="dialog" open={open} onOpen={() => onOpenChange?.(true)}>
      {({ Popover: Radix }) => (
        <Radix.Root defaultOpen open={open} onOpenChange={onOpenChange}>
          <Radix.Trigger asChild>{trigger}</Radix.Trigger>
          <Radix.Portal>
            <Radix.Content
              aria-label={label}
              align="start"
              sideOffset={4}
              collisionPadding={8}
              className="z-50 max-h-(--radix-popover-content-available-height) max-w-[calc(100vw-1rem)] min-w-64 overflow-y-auto rounded-md bg-raised p-2 text-ink shadow-pop"
            >
              {children}
            </Radix.Content>
          </Radix.Portal>
        </Radix.Root>
      )}
    </OnDemand>
  );
}
