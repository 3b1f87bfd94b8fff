/** The id of the organization in the state of an installation, which is a JWT; empty if it is none. */
export function deploymentOf(state: string): string {
  try {
    const part = state.split(".")[1] ?? "";
    const claims: unknown = JSON.parse(atob(part.replaceAll("-", "+").replaceAll("_", "/")));
    const id = (claims as { jti?: unknown } | null)?.jti;
    return typeof id === "string" ? id : "";
  } catch {
    return "";
  }
}
