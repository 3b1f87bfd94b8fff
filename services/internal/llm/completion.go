package llm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/palisade/palisade/services/internal/egress"
)

// The parts of OpenAI's chat completions protocol that are used here.
type (
	request struct {
		Model               string          `json:"model"`
		Messages            []message       `json:"messages"`
		ResponseFormat      *responseFormat `json:"response_format,omitempty"`
		MaxTokens           int             `json:"max_tokens,omitempty"`
		MaxCompletionTokens int             `json:"max_completion_tokens,omitempty"`
	}
	message struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	responseFormat struct {
		Type       string      `json:"type"`
		JSONSchema *jsonSchema `json:"json_schema,omitempty"`
	}
	jsonSchema struct {
		Name   string         `json:"name"`
		Schema map[string]any `json:"schema"`
		Strict bool           `json:"strict"`
	}
	completion struct {
		Model   string   `json:"model"`
		Choices []choice `json:"choices"`
		Usage   struct {
			PromptTokens     int64 `json:"prompt_tokens"`
			CompletionTokens int64 `json:"completion_tokens"`
		} `json:"usage"`
	}
	choice struct {
		FinishReason string `json:"finish_reason"`
		Message      struct {
			Content string `json:"content"`
			Refusal string `json:"refusal"`
		} `json:"message"`
	}
)

// complete sends a request, with retries. The status is 0 when there was no response.
func (p *Provider) complete(ctx context.Context, q request) (_ *completion, status int, err error) {
	body, err := json.Marshal(q)
	if err != nil {
		return nil, 0, err
	}
	response, err := p.send(ctx, body)
	if err != nil {
		return nil, 0, err
	}
	defer response.Body.Close()
	if response.StatusCode >= http.StatusMultipleChoices {
		return nil, response.StatusCode, refusal(response.StatusCode)
	}
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, response.StatusCode, err
	}
	var found completion
	return &found, response.StatusCode, json.Unmarshal(answer, &found)
}

// send returns the first response that a retry cannot improve. The caller closes its body.
func (p *Provider) send(ctx context.Context, body []byte) (*http.Response, error) {
	for retry := 0; ; retry++ {
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimRight(p.config.URL, "/")+"/chat/completions", bytes.NewReader(body))
		if err != nil {
			return nil, err
		}
		request.Header.Set("Content-Type", "application/json")
		if p.config.Key != "" {
			request.Header.Set("Authorization", "Bearer "+p.config.Key)
		}
		response, err := p.client.Do(request)
		delay, again := retryDelay(response, err, retry)
		if !again || retry == maxRetries || ctx.Err() != nil {
			return response, err
		}
		if response != nil {
			_ = response.Body.Close()
		}
		select {
		case <-time.After(delay):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// retryDelay reports whether to retry, and the delay: Retry-After, or an exponential backoff from half a second.
func retryDelay(response *http.Response, err error, retry int) (time.Duration, bool) {
	delay := minRetryDelay << retry
	if err != nil {
		return delay, !errors.Is(err, egress.ErrRefused) && !errors.Is(err, egress.ErrUpgrade)
	}
	switch status := response.StatusCode; {
	case response.Header.Get("X-Should-Retry") == "true":
	case response.Header.Get("X-Should-Retry") == "false":
		return 0, false
	case status == http.StatusRequestTimeout, status == http.StatusConflict, status == http.StatusTooManyRequests, status >= 500:
	default:
		return 0, false
	}
	if after, ok := egress.RetryAfter(response.Header, time.Now()); ok {
		delay = after
	}
	return delay, delay <= maxRetryDelay
}
