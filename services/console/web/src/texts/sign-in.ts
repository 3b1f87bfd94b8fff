import { counted } from "./plural";

export const signIn = {
  title: "Sign in",
  ended: "Your session has ended. Sign in to continue.",
  endedUnsaved: "Your session has ended. Sign in to continue; the last decision was not stored.",
  lead: "Findings of all your scanners, in one place.",
  withProvider: (host: string) => `Continue with ${host}`,
  providerHint: "Your organization's identity provider decides who may sign in.",
  linkTitle: "Sign in with a one-time link",
  linkTitleElse: "Or with a one-time link",
  linkHint: "An operator makes one on the server's machine, with the server's settings, and opens the address that it prints. It works once, for 15 minutes.",
  command: "palisade console-link",
  providerSetUp: "To let everybody sign in with an identity provider, set oidc-issuer and oidc-client-id.",
};

export const sessions = {
  title: "My sessions",
  intro: "The browsers in which you are signed in. Revoke a session that you do not recognize; this takes effect at once.",
  table: "Sessions",
  browser: "Browser",
  address: "Address",
  signedIn: "Signed in",
  lastUsed: "Last used",
  ends: "Ends",
  action: "Action",
  current: "This browser",
  methods: { SIGN_IN_METHOD_OPENID_CONNECT: "Identity provider", SIGN_IN_METHOD_CONSOLE_LINK: "One-time link" },
  revoke: "Revoke",
  revokeLabel: (browser: string, address: string) => `Revoke the session of ${browser} at ${address}`,
  revoked: "The session is revoked.",
  revokeOthers: "Revoke all others",
  revokeOthersTitle: "Revoke all other sessions?",
  revokeOthersText: (n: string) => `You have to sign in again in ${counted(n, "other browser")}.`,
  revokedOthers: (n: string) => `${counted(n, "session is", "sessions are")} revoked.`,
  onlyOne: "You are signed in in this browser only.",
  unknownBrowser: "Unknown browser",
  on: (browser: string, system: string) => `${browser} on ${system}`,
};
