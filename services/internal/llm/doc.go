// Package llm asks a language model, over any API that speaks OpenAI's chat completions: the vendor's own, a gateway,
// or a local server. Answers with a schema are checked against it before anybody sees them.
//
// A prompt holds code, and an answer repeats it. Neither they nor the key are ever part of an error, a log line, a span
// or a metric: errors are sentences of this package alone, and say which setting to look at.
package llm
