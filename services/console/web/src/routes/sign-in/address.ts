/** hostOf is the part of an issuer that people know: the host. */
export function hostOf(issuer: string): string {
  try {
    return new URL(issuer).host;
  } catch {
    return issuer;
  }
}

/** endedOf says why the app sent the person here, if a session ended. */
export function endedOf(search: string): "decision" | "session" | undefined {
  const ended = new URLSearchParams(search).get("ended");
  return ended === "decision" || ended === "session" ? ended : undefined;
}

/** loginAddress is where a sign-in begins. The page that asked for it is in `?return=`; the server checks it. */
export function loginAddress(basePath: string, search: string): string {
  const back = new URLSearchParams(search).get("return");
  return `${basePath}/auth/login${back ? `?return=${encodeURIComponent(back)}` : ""}`;
}
