import { Check, Copy } from "lucide-react";
import { useState } from "react";
import * as texts from "@/texts";
import { IconButton } from "./button";

/** A button that copies a text, and says that it did. */
export function CopyButton({ text, label = texts.shell.actions.copy }: { text: string; label?: string }) {
  const [copied, setCopied] = useState(false);
  return (
    <IconButton
      label={copied ? texts.shell.actions.copied : label}
      onClick={() => {
        void navigator.clipboard.writeText(text).then(() => {
          setCopied(true);
          setTimeout(() => setCopied(false), 2_000);
        });
      }}
    >
      {copied ? <Check size={15} aria-hidden /> : <Copy size={15} aria-hidden />}
    </IconButton>
  );
}
