import createClient, { type Middleware } from "openapi-fetch";
import * as texts from "@/texts";
import { basePath } from "./base";
import { withRoles } from "./roles";
import type { components, paths } from "./schema";

/** Messages of the API by their names in `/openapi.json`. */
export type Schemas = components["schemas"];

/** The one client. Paths, parameters, bodies and responses have the types of `/openapi.json`. */
export const api = createClient<paths>({ baseUrl: basePath || undefined });

/** An answer of the server that is not a success. `message` is meant for people. */
export class ApiError extends Error {
  constructor(
    message: string,
    readonly status: number,
    readonly code: string,
    readonly requestId: string,
    readonly details: Array<Record<string, unknown>> = [],
  ) {
    super(message);
    this.name = "ApiError";
  }
}

/** No answer: the server or the network is away. */
export class ConnectionError extends Error {
  constructor(cause: unknown) {
    super(texts.shell.states.offline, { cause });
    this.name = "ConnectionError";
  }
}

/** What a failed fetch means: the browser ended it, or nobody answered. */
const noAnswer = (error: unknown): Error => (error instanceof DOMException && error.name === "AbortError" ? error : new ConnectionError(error));

function toError(body: unknown, response: Response): ApiError {
  const known = (typeof body === "object" && body !== null ? body : {}) as Partial<Schemas["Error"]>;
  return new ApiError(
    withRoles(known.message || known.error || response.statusText || `HTTP ${response.status}`),
    response.status,
    known.code ?? "",
    known.requestId ?? response.headers.get("x-request-id") ?? "",
    known.details ?? [],
  );
}

/** Returns the data of a call, or throws an ApiError. */
export async function unwrap<T>(call: Promise<{ data?: T; error?: unknown; response: Response }>): Promise<T> {
  const { data, error, response } = await call;
  if (!response.ok) throw toError(error, response);
  return data as T;
}

/** Reads a document that the API does not describe. */
export async function readJSON<T>(path: string): Promise<T> {
  const response = await fetch(path).catch((error: unknown) => Promise.reject(noAnswer(error)));
  const body: unknown = await response.json().catch(() => undefined);
  if (!response.ok) throw toError(body, response);
  return body as T;
}

// What the sign-in page says: a first visit is no ended session, and a decision without an answer is lost.
let wasSignedIn = false;
let unstored = 0;
const isDecision = ({ method, url }: Request): boolean => method === "PATCH" && new URL(url).pathname.endsWith("/findings/v2");

/** Sends the person to the sign-in page and back to where they are. */
function signIn(): void {
  const here = window.location.pathname + window.location.search;
  const page = `${basePath}/console/sign-in`;
  if (window.location.pathname === page) return;
  const ended = wasSignedIn ? `&ended=${unstored > 0 ? "decision" : "session"}` : "";
  window.location.assign(`${page}?return=${encodeURIComponent(here)}${ended}`);
}

// An ended session ends every screen: the next answer is 401.
const sessionEnded: Middleware = {
  onRequest({ request }) {
    if (isDecision(request)) unstored++;
    return undefined;
  },
  onError({ request, error }) {
    if (isDecision(request)) unstored--;
    return noAnswer(error);
  },
  onResponse({ request, response }) {
    if (isDecision(request) && response.status !== 401) unstored--;
    if (response.ok) wasSignedIn = true;
    if (response.status === 401) signIn();
    return undefined;
  },
};
api.use(sessionEnded);
