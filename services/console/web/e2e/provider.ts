import { createServer, type Server as HttpServer } from "node:http";
import type { AddressInfo } from "node:net";
import Provider from "oidc-provider";

export const clientId = "palisade-console";
export const clientSecret = "e2e-client-secret";

/** The people of the tests, by e-mail address, and their groups at the identity provider. */
export const people = {
  admin: { email: "ada@example.com", groups: ["security"] },
  reader: { email: "rae@example.com", groups: ["readers"] },
  /** A member of one team, which has one project. */
  member: { email: "web@example.com", groups: ["web"] },
  /** Known to the provider, but not let in. */
  stranger: { email: "sam@example.com", groups: [] },
} as const;

export type Person = keyof typeof people;

/** The flags with which a server takes in the people of the provider at `issuer`. */
export const signInFlags = (issuer: string): string[] => [
  "--oidc-issuer", issuer,
  "--oidc-audience", clientId,
  "--oidc-client-id", clientId,
  "--oidc-client-secret", clientSecret,
  "--oidc-membership", "claim",
  "--oidc-claim", "groups",
  "--oidc-claim-map", "security=admin;readers=readonly:everything;web=member:web-team",
];

/** Starts a certified OpenID Connect provider on loopback. People sign in with their address and any password. */
export async function startProvider(): Promise<{ issuer: string; stop: () => Promise<void> }> {
  const listener = createServer();
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
  const issuer = `http://127.0.0.1:${(listener.address() as AddressInfo).port}`;
  const provider = new Provider(issuer, {
    clients: [{
      client_id: clientId,
      client_secret: clientSecret,
      // The server of each test has a port of its own. Only native clients may leave it out of the address.
      application_type: "native",
      redirect_uris: ["http://127.0.0.1/auth/callback"],
      token_endpoint_auth_method: "client_secret_basic",
    }],
    pkce: { required: () => true },
    claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["name", "groups"] },
    // With an authorization code, claims come in the ID token only if this is off.
    conformIdTokenClaims: false,
    findAccount: (_ctx, id) => {
      const person = Object.values(people).find((one) => one.email === id);
      return {
        accountId: id,
        claims: () => ({ sub: id, email: id, email_verified: true, name: id.replace(/@.*/, ""), groups: person ? [...person.groups] : [] }),
      };
    },
  });
  provider.on("server_error", (_ctx, error) => console.error("identity provider:", error));
  listener.on("request", provider.callback());
  return { issuer, stop: () => close(listener) };
}

function close(listener: HttpServer): Promise<void> {
  listener.closeAllConnections();
  return new Promise((resolve) => listener.close(() => resolve()));
}
