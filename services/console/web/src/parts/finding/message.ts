const longest = 600;
const mostLines = 12;

/** The beginning of a long message, or nothing if the message is short enough to be shown as it is. */
export function beginningOf(text: string): string | undefined {
  const beginning = text.split("\n", mostLines).join("\n").slice(0, longest);
  // A few characters more are not worth a button.
  if (text.length <= beginning.length + 60 && text.split("\n").length <= mostLines + 2) return undefined;
  // Half of a character outside the basic plane would show as a box.
  return `${beginning.replace(/[\ud800-\udbff]$/, "").trimEnd()}…`;
}
