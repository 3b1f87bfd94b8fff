package llm

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/shared"
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
		text, err = c.say(ctx, []openai.ChatCompletionMessageParamUnion{
			openai.AssistantMessage(text),
			openai.UserMessage("This answer does not fit the JSON Schema: " + wrong + "\nAnswer again with one JSON value that fits it, and nothing else."),
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

// say makes one call, in the first form that the server takes. The form is remembered once it has worked: a request that
// is bad for another reason must not cost the others their schema.
func (c *conversation) say(ctx context.Context, further []openai.ChatCompletionMessageParamUnion) (string, error) {
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
func (c *conversation) call(ctx context.Context, format int32, further []openai.ChatCompletionMessageParamUnion) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, c.provider.config.Timeout)
	defer cancel()
	var response *http.Response
	completion, err := c.provider.client.New(ctx, c.request(format, further), option.WithResponseInto(&response))
	status := 0
	if response != nil {
		status = response.StatusCode
	}
	switch {
	case err != nil:
		return "", explain(ctx, status, err)
	case status >= 300: // a redirect is no error to the library
		return "", refusal(status)
	case completion == nil || len(completion.Choices) == 0:
		return "", explain(ctx, status, nil)
	}
	c.count(completion)
	return textOf(completion.Choices[0])
}

// textOf reads a choice. What the model or its provider refuses, it refuses the next time too.
func textOf(choice openai.ChatCompletionChoice) (string, error) {
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

func (c *conversation) count(completion *openai.ChatCompletion) {
	input, output := max(completion.Usage.PromptTokens, 0), max(completion.Usage.CompletionTokens, 0)
	c.answer.InputTokens += input
	c.answer.OutputTokens += output
	c.answer.CostUSD += (float64(input)*c.provider.config.InputPrice + float64(output)*c.provider.config.OutputPrice) / 1e6
	if completion.Model != "" {
		c.answer.Model = completion.Model
	}
}

func (c *conversation) request(format int32, further []openai.ChatCompletionMessageParamUnion) openai.ChatCompletionNewParams {
	q := c.question
	system := q.System
	if q.Schema != nil && format != bySchema {
		system += "\n\nAnswer with one JSON value that fits this JSON Schema, and nothing else:\n" + schemaText(q.Schema)
	}
	var messages []openai.ChatCompletionMessageParamUnion
	if system != "" {
		messages = append(messages, openai.SystemMessage(system))
	}
	messages = append(append(messages, openai.UserMessage(q.Prompt)), further...)
	request := openai.ChatCompletionNewParams{Model: q.Model, Messages: messages}
	switch {
	case q.Schema == nil:
	case format == bySchema:
		request.ResponseFormat.OfJSONSchema = &shared.ResponseFormatJSONSchemaParam{JSONSchema: jsonSchema(q)}
	case format == byJSONObject:
		request.ResponseFormat.OfJSONObject = &shared.ResponseFormatJSONObjectParam{}
	}
	if q.MaxTokens > 0 {
		if c.provider.countsCompletionTokens() {
			request.MaxCompletionTokens = openai.Int(int64(q.MaxTokens))
		} else {
			request.MaxTokens = openai.Int(int64(q.MaxTokens))
		}
	}
	return request
}

func jsonSchema(q Question) shared.ResponseFormatJSONSchemaJSONSchemaParam {
	name := q.SchemaName
	if name == "" {
		name = "answer"
	}
	return shared.ResponseFormatJSONSchemaJSONSchemaParam{Name: name, Schema: q.Schema, Strict: openai.Bool(strictable(q.Schema))}
}

func schemaText(schema map[string]any) string {
	text, err := json.Marshal(schema)
	if err != nil { // compile has marshalled it already
		return "{}"
	}
	return string(text)
}
