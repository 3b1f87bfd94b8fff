import { useQuery } from "@tanstack/react-query";
import { basePath } from "@/api/base";
import { readJSON } from "@/api/client";
import { type Document, entriesOf, type Entry } from "./document";

export const documentPath = `${basePath}/openapi.json`;

/** useReference reads the document of this server: what the reference says is what the server does. */
export function useReference() {
  return useQuery({
    queryKey: ["openapi"],
    staleTime: Number.POSITIVE_INFINITY,
    queryFn: async (): Promise<{ document: Document; entries: Entry[] }> => {
      const document = await readJSON<Document>(documentPath);
      return { document, entries: entriesOf(document) };
    },
  });
}
