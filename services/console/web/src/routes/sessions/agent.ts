import * as texts from "@/texts";

// In the order in which they must be tried: Edge and Opera call themselves Chrome, and Chrome calls itself Safari.
const browsers: Array<[RegExp, string]> = [
  [/\bEdgA?\//, "Edge"],
  [/\bOPR\//, "Opera"],
  [/\bFirefox\/|\bFxiOS\//, "Firefox"],
  [/\bHeadlessChrome\/|\bChrome\/|\bCriOS\//, "Chrome"],
  [/\bSafari\//, "Safari"],
];

const systems: Array<[RegExp, string]> = [
  [/\bAndroid\b/, "Android"],
  [/\biPhone\b|\biPad\b/, "iOS"],
  [/\bWindows\b/, "Windows"],
  [/\bCrOS\b/, "ChromeOS"],
  [/\bMac OS X\b/, "macOS"],
  [/\bLinux\b/, "Linux"],
];

const nameIn = (list: Array<[RegExp, string]>, agent: string): string | undefined => list.find(([form]) => form.test(agent))?.[1];

/** browserOf names a browser as people know it: "Firefox on Linux". Browsers choose the text freely, so it proves nothing. */
export function browserOf(agent: string): string {
  const browser = nameIn(browsers, agent);
  const system = nameIn(systems, agent);
  if (browser && system) return texts.sessions.on(browser, system);
  return browser ?? (agent.split(/[\s/(]/)[0] || texts.sessions.unknownBrowser);
}
