import type { LanguageRegistration } from "shiki/core";

type Grammar = () => Promise<{ default: LanguageRegistration[] }>;

/** Grammars that findings need, each a file that is loaded when the first code of its language is shown. */
const grammars: Record<string, Grammar> = {
  go: () => import("@shikijs/langs/go"),
  python: () => import("@shikijs/langs/python"),
  tsx: () => import("@shikijs/langs/tsx"),
  java: () => import("@shikijs/langs/java"),
  kotlin: () => import("@shikijs/langs/kotlin"),
  c: () => import("@shikijs/langs/c"),
  csharp: () => import("@shikijs/langs/csharp"),
  php: () => import("@shikijs/langs/php"),
  ruby: () => import("@shikijs/langs/ruby"),
  rust: () => import("@shikijs/langs/rust"),
  scala: () => import("@shikijs/langs/scala"),
  swift: () => import("@shikijs/langs/swift"),
  shellscript: () => import("@shikijs/langs/shellscript"),
  yaml: () => import("@shikijs/langs/yaml"),
  json: () => import("@shikijs/langs/json"),
  terraform: () => import("@shikijs/langs/terraform"),
  docker: () => import("@shikijs/langs/docker"),
  html: () => import("@shikijs/langs/html"),
  xml: () => import("@shikijs/langs/xml"),
  sql: () => import("@shikijs/langs/sql"),
  solidity: () => import("@shikijs/langs/solidity"),
};

// C++ is coloured as C: its own grammar is larger than all others together.
const extensions: Record<string, string> = {
  go: "go", py: "python", pyi: "python", ts: "tsx", tsx: "tsx", mts: "tsx", cts: "tsx", js: "tsx", jsx: "tsx", mjs: "tsx", cjs: "tsx", vue: "html",
  java: "java", kt: "kotlin", kts: "kotlin", c: "c", h: "c", cc: "c", cpp: "c", cxx: "c", hh: "c", hpp: "c", m: "c", cs: "csharp", php: "php", rb: "ruby",
  erb: "html", rs: "rust", scala: "scala", sc: "scala", swift: "swift", sh: "shellscript", bash: "shellscript", zsh: "shellscript", yaml: "yaml", yml: "yaml",
  json: "json", tf: "terraform", tfvars: "terraform", hcl: "terraform", dockerfile: "docker", html: "html", htm: "html", xml: "xml", svg: "xml", pom: "xml",
  sql: "sql", sol: "solidity",
};

/** The language of a file, by its name; undefined for others. */
export function languageOf(path: string): string | undefined {
  const name = path.slice(path.lastIndexOf("/") + 1).toLowerCase();
  if (/^(dockerfile|containerfile)(\.|$)/.test(name)) return "docker";
  if (/^(gemfile|rakefile)$/.test(name)) return "ruby";
  const dot = name.lastIndexOf(".");
  return dot < 0 ? undefined : extensions[name.slice(dot + 1)];
}

/** Loads a grammar. Languages embedded in it stay plain: see the plugin in vite.config.ts. */
export async function loadGrammar(language: string): Promise<LanguageRegistration[]> {
  const loaded = (await grammars[language]?.())?.default ?? [];
  return loaded.map((one) => ({ ...one, embeddedLangs: [] }));
}
