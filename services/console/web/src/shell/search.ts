/**
 * valueOf reads a value of an address: structures and quoted texts are JSON, everything else is the text itself. Links
 * therefore need no quotation marks around ids, and addresses with them work, too.
 */
export function valueOf(text: string): unknown {
  return /^(?:[[{"]|true$|false$)/.test(text) ? JSON.parse(text) : text;
}
