// The catalogue of all visible texts, one file an area. A translation replaces this folder. Names are exported one by one,
// and imported as `* as texts`: so each screen loads its own texts only.
export { finding } from "./finding";
export { integrations } from "./integrations";
export { overview } from "./overview";
export { projects } from "./projects";
export { pullRequest } from "./pull-request";
export { reference } from "./reference";
export { scans } from "./scans";
export { setup } from "./setup";
export { shell } from "./shell";
export { signIn, sessions } from "./sign-in";
export { triage } from "./triage";
export { words } from "./words";
