import * as texts from "@/texts";

const roles: Record<string, string> = texts.words.role;

/** withRoles replaces the API's words for roles ("ORG_ROLE_ADMIN") by the ones that people read. */
export const withRoles = (message: string): string => message.replaceAll(/\bORG_ROLE_([A-Z]+)\b/g, (word, role: string) => roles[role] ?? word);
