// Package llmtest is a local server that speaks the wire protocol of OpenAI's chat completions, for tests. Point ai-url
// (or llm.Config.URL) to Server.URL, set any ai-model, and let the guard out to 127.0.0.1.
package llmtest

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// Model is the name by which the server calls the model that answers.
const Model = "test-model-2026-01-01"

// Request is what the server was asked.
type Request struct {
	// Model is the one that was asked for.
	Model string
	// System and Prompt are the first messages of these roles.
	System, Prompt string
	// Messages are all of them.
	Messages []Message
	// Format is json_schema, json_object, or empty.
	Format string
	// Schema, SchemaName and Strict come with the format json_schema.
	Schema     map[string]any
	SchemaName string
	Strict     bool
	// MaxTokens is that of either spelling.
	MaxTokens int
	// Authorization is that header.
	Authorization string
	// Body is the request as it came.
	Body string
}

// Message is one turn of a conversation.
type Message struct{ Role, Content string }

// Server is a running provider.
type Server struct {
	// URL is its base URL.
	URL string

	answer func(Request) Reply
	mu     sync.Mutex
	asked  []Request
}

// New runs a server until the test ends. answer is called for each request, by several goroutines at a time.
func New(t testing.TB, answer func(Request) Reply) *Server {
	t.Helper()
	s := &Server{answer: answer}
	running := httptest.NewServer(s)
	t.Cleanup(func() {
		running.CloseClientConnections() // those that hang
		running.Close()
	})
	s.URL = running.URL + "/v1"
	return s
}

// Script returns an answer function that gives one reply after the other, and the last one for ever.
func Script(replies ...Reply) func(Request) Reply {
	var mu sync.Mutex
	next := 0
	return func(Request) Reply {
		mu.Lock()
		defer mu.Unlock()
		reply := replies[min(next, len(replies)-1)]
		next++
		return reply
	}
}

// Requests returns what the server was asked so far, in the order of arrival.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.asked...)
}

// ServeHTTP answers chat completions and knows no other path.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	if r.Method != http.MethodPost || r.URL.Path != "/v1/chat/completions" {
		Status(http.StatusNotFound, "").write(w, r, "")
		return
	}
	request, err := read(body)
	if err != nil {
		Status(http.StatusBadRequest, "").write(w, r, "")
		return
	}
	request.Authorization = r.Header.Get("Authorization")
	s.mu.Lock()
	s.asked = append(s.asked, request)
	s.mu.Unlock()
	s.answer(request).write(w, r, request.Body)
}

func read(body []byte) (Request, error) {
	var wire struct {
		Model               string    `json:"model"`
		Messages            []Message `json:"messages"`
		MaxTokens           int       `json:"max_tokens"`
		MaxCompletionTokens int       `json:"max_completion_tokens"`
		ResponseFormat      struct {
			Type       string `json:"type"`
			JSONSchema struct {
				Name   string         `json:"name"`
				Strict bool           `json:"strict"`
				Schema map[string]any `json:"schema"`
			} `json:"json_schema"`
		} `json:"response_format"`
	}
	if err := json.Unmarshal(body, &wire); err != nil {
		return Request{}, err
	}
	format := wire.ResponseFormat
	out := Request{
		Model: wire.Model, Messages: wire.Messages, MaxTokens: max(wire.MaxTokens, wire.MaxCompletionTokens), Body: string(body),
		Format: format.Type, Schema: format.JSONSchema.Schema, SchemaName: format.JSONSchema.Name, Strict: format.JSONSchema.Strict,
	}
	for _, m := range wire.Messages {
		switch {
		case m.Role == "system" && out.System == "":
			out.System = m.Content
		case m.Role == "user" && out.Prompt == "":
			out.Prompt = m.Content
		}
	}
	return out, nil
}

// Reply is what the server does with a request.
type Reply struct {
	status        int
	header        http.Header
	text          string
	refusal       string
	finish        string
	raw           *string // the whole body, instead of a completion
	cut           int     // bytes of the body that arrive before the connection ends; 0: all
	drop          bool    // the connection ends without an answer
	hold          <-chan struct{}
	input, output int64
}

// Text answers with a text.
func Text(text string) Reply {
	return Reply{status: http.StatusOK, text: text, finish: "stop", input: 100, output: 20}
}

// JSON answers with a value as JSON.
func JSON(value any) Reply {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return Text(string(text))
}

// Tokens says how many tokens the reply is to have taken; without it there are 100 of input and 20 of output.
func (r Reply) Tokens(input, output int64) Reply {
	r.input, r.output = input, output
	return r
}

// Status answers with an error that repeats the request, as some providers do. retryAfter is that header; empty: none.
func Status(status int, retryAfter string) Reply {
	r := Reply{status: status, header: http.Header{}}
	if retryAfter != "" {
		r.header.Set("Retry-After", retryAfter)
	}
	return r
}

// Redirect answers with a redirect.
func Redirect(location string) Reply {
	r := Status(http.StatusTemporaryRedirect, "")
	r.header.Set("Location", location)
	return r
}

// Raw answers 200 with a body that need not be a completion, nor JSON.
func Raw(body string) Reply { return Reply{status: http.StatusOK, raw: &body} }

// Malformed answers with a body that is no JSON.
func Malformed() Reply { return Raw(`{"choices": [{"message": {"content": "half`) }

// Truncated announces a whole answer, sends its beginning, and ends the connection.
func Truncated(text string) Reply {
	r := Text(text)
	r.cut = 40
	return r
}

// Cut ends the connection without an answer.
func Cut() Reply { return Reply{drop: true} }

// Hang answers nothing until the caller goes away.
func Hang() Reply { return Reply{hold: make(chan struct{})} }

// After waits for a signal before it replies.
func After(signal <-chan struct{}, reply Reply) Reply {
	reply.hold = signal
	return reply
}

// Refusal is a model that refuses to answer.
func Refusal(text string) Reply {
	return Reply{status: http.StatusOK, refusal: text, finish: "stop", input: 100, output: 5}
}

// Filtered is an answer that the provider's content filter withheld.
func Filtered() Reply {
	return Reply{status: http.StatusOK, finish: "content_filter", input: 100}
}

// TooLong is an answer that was cut off at the greatest number of tokens.
func TooLong(text string) Reply {
	return Reply{status: http.StatusOK, text: text, finish: "length", input: 100, output: 4096}
}

func (r Reply) write(w http.ResponseWriter, request *http.Request, asked string) {
	if r.hold != nil {
		select {
		case <-r.hold:
		case <-request.Context().Done():
			return
		}
	}
	if r.drop {
		panic(http.ErrAbortHandler)
	}
	for name, values := range r.header {
		w.Header()[name] = values
	}
	w.Header().Set("Content-Type", "application/json")
	body := r.body(asked)
	if r.cut > 0 && r.cut < len(body) {
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		_, _ = io.WriteString(w, body[:r.cut])
		if f, ok := w.(http.Flusher); ok {
			f.Flush()
		}
		panic(http.ErrAbortHandler)
	}
	w.WriteHeader(r.status)
	_, _ = io.WriteString(w, body)
}

func (r Reply) body(asked string) string {
	if r.raw != nil {
		return *r.raw
	}
	var value any
	if r.status >= 300 {
		value = map[string]any{"error": map[string]any{
			"message": strings.ToLower(http.StatusText(r.status)) + ": " + asked, "type": "invalid_request_error", "code": nil, "param": nil,
		}}
	} else {
		message := map[string]any{"role": "assistant", "content": r.text, "refusal": nil}
		if r.refusal != "" {
			message["content"], message["refusal"] = nil, r.refusal
		}
		value = map[string]any{
			"id": "chatcmpl-1", "object": "chat.completion", "created": 1767225600, "model": Model,
			"choices": []any{map[string]any{"index": 0, "message": message, "finish_reason": r.finish, "logprobs": nil}},
			"usage":   map[string]any{"prompt_tokens": r.input, "completion_tokens": r.output, "total_tokens": r.input + r.output},
		}
	}
	body, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return string(body)
}
