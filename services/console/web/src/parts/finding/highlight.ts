import { createHighlighterCore, type HighlighterCore } from "shiki/core";
import { createJavaScriptRegexEngine } from "shiki/engine/javascript";
import { loadGrammar } from "./languages";

/** A piece of a line with one colour. */
export interface Token {
  text: string;
  /** Classes with its colour; "" for plain text. */
  kind: string;
}

// The theme names kinds instead of colours: each "colour" is the index of a class, so that both themes are CSS.
const kinds = ["", "text-code-comment italic", "text-code-string", "text-code-keyword", "text-code-name", "text-code-type", "text-code-number", "text-code-tag"];
const colour = (kind: number): string => `#00000${kind}`;
const rule = (kind: number, ...scope: string[]) => ({ scope, settings: { foreground: colour(kind) } });
const theme = {
  name: "kinds",
  type: "light" as const,
  colors: { "editor.foreground": colour(0) },
  tokenColors: [
    rule(1, "comment", "punctuation.definition.comment"),
    rule(2, "string", "punctuation.definition.string", "constant.character.escape"),
    rule(3, "keyword", "storage", "variable.language"),
    rule(4, "entity.name.function", "support.function"),
    rule(5, "entity.name.type", "entity.name.class", "support.type", "support.class", "storage.type.java", "entity.other.inherited-class"),
    rule(6, "constant.numeric", "constant.language"),
    rule(7, "entity.name.tag", "entity.other.attribute-name", "support.type.property-name"),
    rule(0, "keyword.operator", "punctuation"),
  ],
};

let core: Promise<HighlighterCore> | undefined;
const loaded = new Map<string, Promise<void>>();

/** Colours code. Lines have the texts that the code has, in their order. */
export async function highlight(code: string, language: string): Promise<Token[][]> {
  core ??= createHighlighterCore({ themes: [theme], langs: [], engine: createJavaScriptRegexEngine({ forgiving: true }) });
  const highlighter = await core;
  let loading = loaded.get(language);
  if (!loading) {
    loading = loadGrammar(language).then((grammar) => highlighter.loadLanguage(...grammar));
    loaded.set(language, loading);
  }
  await loading;
  const { tokens } = highlighter.codeToTokens(code, { lang: language, theme: "kinds", tokenizeMaxLineLength: 1_000, tokenizeTimeLimit: 50 });
  return tokens.map((line) => line.map(({ content, color }) => ({ text: content, kind: kinds[Number(color?.slice(-1) ?? 0)] ?? "" })));
}
