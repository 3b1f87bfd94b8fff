package llm

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// How a server is told the schema, the surest first. Those that do not know a way answer 400.
const (
	bySchema     int32 = iota // response_format json_schema
	byJSONObject              // response_format json_object, the schema in words
	byWords                   // the schema in words
	formats
)

// conversation is one question with all calls that it takes.
type conversation struct {
	provider *Provider
	question Question
	answer   Answer
}

// run asks, and asks once more when the answer does not fit.
func (c *conversation) run(ctx context.Context, schema *jsonschema.Schema) error {
	text, err := c.say(ctx, nil)
	if err != nil || schema == nil {
		c.answer.Text = text
		return err
	}
	found, wrong, _ := check(schema, text)
	if wrong != "" {
		// What was wrong is said to the model alone: the validator repeats the answer.
		text, err = c.say(ctx, []message{
			{"assistant", text},
			{"user", "This answer does not fit the JSON Schema: " + wrong + "\nAnswer again with one JSON value that fits it, and nothing else."},
		})
		if err != nil {
			return err
		}
		var where string
		if found, wrong, where = check(schema, text); wrong != "" {
			return retryable("the model's answer does not fit the schema, twice: %s", where)
		}
	}
	c.answer.Text, c.answer.JSON = text, found
	return nil
}

// say makes one call, in the first form that the server takes. The form is remembered once it has worked: a request
// that is bad for another reason must not cost the others their schema.
func (c *conversation) say(ctx context.Context, further []message) (string, error) {
	if c.question.Schema == nil {
		return c.call(ctx, byWords, further)
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
			c.provider.proven.Store(true)
		case err == nil && !c.provider.proven.Load():
			c.provider.format.CompareAndSwap(first, format)
		}
		return text, err
	}
}

// call makes one call and reads the text of its answer.
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

// textOf reads a choice. What the model or its provider refuses, it refuses the next time too.
func textOf(choice choice) (string, error) {
	switch {
	case choice.Message.Refusal != "":
		return "", permanent("the model refused to answer")
	case choice.FinishReason == "content_filter":
		return "", permanent("the provider's content filter withheld the answer")
	case choice.FinishReason == "length":
		return "", permanent("the model's answer was cut off at its longest: allow more with maxTokens, or ask for less at a time")
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
