package llm

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// How the schema is sent, in order of preference. A server that does not support a format answers 400.
const (
	bySchema     int32 = iota // response_format json_schema
	byJSONObject              // response_format json_object, with the schema in the prompt
	byPrompt                  // the schema in the prompt
	formats
)

// conversation is one question with all its calls.
type conversation struct {
	provider *Provider
	question Question
	answer   Answer
}

// run asks, and asks again once when the answer does not match the schema.
func (c *conversation) run(ctx context.Context, schema *jsonschema.Schema) error {
	text, err := c.ask(ctx, nil)
	if err != nil || schema == nil {
		c.answer.Text = text
		return err
	}
	found, wrong, _ := check(schema, text)
	if wrong != "" {
		// Only the model gets the validator's message, because it repeats the answer.
		text, err = c.ask(ctx, []message{
			{"assistant", text},
			{"user", "This answer does not fit the JSON Schema: " + wrong + "\nAnswer again with one JSON value that fits it, and nothing else."},
		})
		if err != nil {
			return err
		}
		var where string
		if found, wrong, where = check(schema, text); wrong != "" {
			return retryable("the model's answer does not match the schema, even after a second call: %s", where)
		}
	}
	c.answer.Text, c.answer.JSON = text, found
	return nil
}

// ask makes one call, in the first format that the server accepts. A format is remembered only after it has worked,
// so that a request that is invalid for another reason does not turn off schemas.
func (c *conversation) ask(ctx context.Context, further []message) (string, error) {
	if c.question.Schema == nil {
		return c.call(ctx, byPrompt, further)
	}
	first := c.provider.format.Load()
	for format := first; ; format++ {
		text, err := c.call(ctx, format, further)
		var f *failure
		if errors.As(err, &f) && f.badRequest && format+1 < formats {
			continue
		}
		switch {
		case err == nil && format == first:
			c.provider.confirmed.Store(true)
		case err == nil && !c.provider.confirmed.Load():
			c.provider.format.CompareAndSwap(first, format)
		}
		return text, err
	}
}

// call makes one call and returns the text of its answer.
func (c *conversation) call(ctx context.Context, format int32, further []message) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, c.provider.config.Timeout)
	defer cancel()
	found, status, err := c.provider.complete(ctx, c.request(format, further))
	if err != nil || len(found.Choices) == 0 {
		return "", explain(ctx, status, err)
	}
	c.count(found)
	return textOf(found.Choices[0])
}

// textOf returns the text of a choice. Refusals of the model or provider are permanent.
func textOf(choice choice) (string, error) {
	switch {
	case choice.Message.Refusal != "":
		return "", permanent("the model refused to answer")
	case choice.FinishReason == "content_filter":
		return "", permanent("the provider's content filter withheld the answer")
	case choice.FinishReason == "length":
		return "", permanent("the model's answer was cut off at its length limit: raise maxTokens, or ask for less")
	case choice.Message.Content == "":
		return "", retryable("the model's answer is empty")
	}
	return choice.Message.Content, nil
}

func (c *conversation) count(completion *completion) {
	input, output := max(completion.Usage.PromptTokens, 0), max(completion.Usage.CompletionTokens, 0)
	c.answer.InputTokens += input
	c.answer.OutputTokens += output
	c.answer.CostUSD += (float64(input)*c.provider.config.InputPrice + float64(output)*c.provider.config.OutputPrice) / 1e6
	if completion.Model != "" {
		c.answer.Model = completion.Model
	}
}

func (c *conversation) request(format int32, further []message) request {
	q := c.question
	system := q.System
	if q.Schema != nil && format != bySchema {
		system += "\n\nAnswer with one JSON value that fits this JSON Schema, and nothing else:\n" + schemaText(q.Schema)
	}
	r := request{Model: q.Model}
	if system != "" {
		r.Messages = append(r.Messages, message{"system", system})
	}
	r.Messages = append(append(r.Messages, message{"user", q.Prompt}), further...)
	switch {
	case q.Schema == nil:
	case format == bySchema:
		schema := &jsonSchema{Name: cmp.Or(q.SchemaName, "answer"), Schema: q.Schema, Strict: strictable(q.Schema)}
		r.ResponseFormat = &responseFormat{Type: "json_schema", JSONSchema: schema}
	case format == byJSONObject:
		r.ResponseFormat = &responseFormat{Type: "json_object"}
	}
	if c.provider.countsCompletionTokens() {
		r.MaxCompletionTokens = max(q.MaxTokens, 0)
	} else {
		r.MaxTokens = max(q.MaxTokens, 0)
	}
	return r
}

func schemaText(schema map[string]any) string {
	text, err := json.Marshal(schema)
	if err != nil { // compile has marshalled it already
		return "{}"
	}
	return string(text)
}
