import type { Schemas } from "@/api/client";

/** A finding with all that is known about it. */
export type Issue = Schemas["findings.v1.Issue"];
