import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";

const read = async (request: IncomingMessage): Promise<URLSearchParams> => {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  return new URLSearchParams(Buffer.concat(parts).toString());
};

/** A Slack with one workspace: as much of its API as an installation and a message need. */
export async function startSlack() {
  const posted: string[] = [];
  const answers: Record<string, (form: URLSearchParams) => object> = {
    "oauth.v2.access": (form) =>
      form.get("code") === "good"
        ? {
          access_token: "xoxb-e2e", app_id: "A0", team: { id: "T0", name: "Acme" },
          scope: "channels:read,chat:write,chat:write.public,groups:read,users:read,users:read.email",
        }
        : { ok: false, error: "invalid_code" },
    "auth.test": () => ({ url: "https://acme.slack.test/", team_id: "T0" }),
    "auth.revoke": () => ({ revoked: true }),
    "conversations.list": () => ({ channels: [{ id: "C0SECURITY", name: "security" }, { id: "C0PRIVATE1", name: "incidents", is_private: true }] }),
    "chat.postMessage": (form) => {
      posted.push(`${form.get("channel")}: ${form.get("text")}`);
      return { channel: form.get("channel"), ts: "1.1" };
    },
  };
  const server = createServer((request, response) => {
    void read(request).then((form) => {
      const answer = answers[(request.url ?? "").replace("/api/", "").split("?")[0] ?? ""];
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify({ ok: true, ...(answer ? answer(form) : { ok: false, error: "unknown_method" }) }));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const flags = ["--slack-url", url, "--slack-client-id", "1.2", "--slack-client-secret", "e2e-secret", "--slack-signing-secret", "e2e-signing", "--egress-allow", "127.0.0.1"];
  return { url, flags, posted, stop: () => new Promise((resolve) => server.close(resolve)) };
}
