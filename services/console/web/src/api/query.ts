import { MutationCache, QueryClient } from "@tanstack/react-query";
import { ApiError } from "./client";

/** Repeats what may succeed a moment later: no connection, and answers that say "busy". */
function worthARetry(count: number, error: Error): boolean {
  if (count >= 2) return false;
  return !(error instanceof ApiError) || error.status === 429 || error.status === 503;
}

/** newQueryClient makes the cache of answers. `onMutationError` shows refusals that a screen does not handle itself. */
export function newQueryClient(onMutationError: (error: Error) => void): QueryClient {
  return new QueryClient({
    defaultOptions: {
      queries: { networkMode: "always", retry: worthARetry, staleTime: 15_000, gcTime: 60_000, refetchOnWindowFocus: true },
      mutations: { networkMode: "always", retry: false },
    },
    mutationCache: new MutationCache({
      onError: (error, _variables, _context, mutation) => {
        if (!mutation.meta?.handlesErrors) onMutationError(error);
      },
    }),
  });
}
