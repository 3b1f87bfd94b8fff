// Package llm asks a language model over any API that is compatible with OpenAI's chat completions: a vendor, a
// gateway, or a local server. Answers to questions with a schema are validated.
//
// Prompts contain code, and answers repeat it. Prompts, answers and the key never appear in errors, logs, spans or
// metrics. Errors have only texts of this package, and name the setting to check.
package llm
