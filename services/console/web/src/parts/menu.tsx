import { Check } from "lucide-react";
import { createContext, type ReactElement, type ReactNode, use } from "react";
import { cx } from "./cx";
import { OnDemand, type Radix } from "./on-demand";

const itemClass =
  "flex min-h-8 cursor-default items-center gap-2 rounded px-2 text-[0.8125rem] outline-none select-none data-[disabled]:opacity-50 data-[highlighted]:bg-accent-soft";

const Context = createContext<Radix["DropdownMenu"] | undefined>(undefined);

function useRadix(): Radix["DropdownMenu"] {
  const radix = use(Context);
  if (!radix) throw new Error("items of a menu are in a Menu");
  return radix;
}

/** A menu behind a button. Not modal: the modal form injects a style element, which the page's policy forbids. */
export function Menu({ trigger, children, align = "end" }: {
  trigger: ReactElement<Record<string, unknown>>;
  children: ReactNode;
  align?: "start" | "end";
}) {
  return (
    <OnDemand trigger={trigger} popup="menu">
      {({ DropdownMenu: Radix }) => (
        <Radix.Root modal={false} defaultOpen>
          <Radix.Trigger asChild>{trigger}</Radix.Trigger>
          <Radix.Portal>
            <Radix.Content
              align={align}
              sideOffset={4}
              collisionPadding={8}
              className="z-50 max-h-(--radix-dropdown-menu-content-available-height) min-w-44 overflow-y-auto rounded-md bg-raised p-1 text-ink shadow-pop"
            >
              <Context value={Radix}>{children}</Context>
            </Radix.Content>
          </Radix.Portal>
        </Radix.Root>
      )}
    </OnDemand>
  );
}

export function MenuItem({ onSelect, children, disabled, danger }: {
  onSelect: () => void;
  children: ReactNode;
  disabled?: boolean;
  danger?: boolean;
}) {
  const Radix = useRadix();
  return (
    <Radix.Item className={cx(itemClass, danger && "text-bad")} onSelect={onSelect} disabled={disabled}>
      {children}
    </Radix.Item>
  );
}

/** One of several choices. */
export function MenuChoice({ checked, onSelect, children }: { checked: boolean; onSelect: () => void; children: ReactNode }) {
  const Radix = useRadix();
  return (
    <Radix.CheckboxItem role="menuitemradio" className={itemClass} checked={checked} onSelect={onSelect}>
      <span className="flex size-4 items-center justify-center">
        <Radix.ItemIndicator><Check size={14} aria-hidden /></Radix.ItemIndicator>
      </span>
      {children}
    </Radix.CheckboxItem>
  );
}

export function MenuLabel({ children }: { children: ReactNode }) {
  const Radix = useRadix();
  return <Radix.Label className="px-2 pt-1.5 pb-1 text-2xs font-semibold text-muted">{children}</Radix.Label>;
}

export function MenuLine() {
  const Radix = useRadix();
  return <Radix.Separator className="my-1 h-px bg-line" />;
}
