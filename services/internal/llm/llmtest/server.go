// Package llmtest is a local server that speaks OpenAI's chat completions protocol, for tests. Set ai-url (or
// llm.Config.URL) to Server.URL, set any ai-model, and allow 127.0.0.1 in the egress guard.
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

// Model is the server's name of the model that answers.
const Model = "test-model-2026-01-01"

// Request is a request that the server received.
type Request struct {
	// Model is the requested model.
	Model string
	// System and Prompt are the first messages of these roles.
	System, Prompt string
	// Messages has all messages.
	Messages []Message
	// Format is json_schema, json_object, or empty.
	Format string
	// Schema, SchemaName and Strict come with the format json_schema.
	Schema     map[string]any
	SchemaName string
	Strict     bool
	// MaxTokens is max_tokens or max_completion_tokens.
	MaxTokens int
	// Authorization is the header.
	Authorization string
	// Body is the raw request.
	Body string
}

// Message is one message of a conversation.
type Message struct{ Role, Content string }

// Server is a running provider.
type Server struct {
	// URL is the base URL.
	URL string

	answer func(Request) Reply
	mu     sync.Mutex
	asked  []Request
}

// New runs a server until the test ends. answer is called for each request, concurrently.
func New(t testing.TB, answer func(Request) Reply) *Server {
	t.Helper()
	s := &Server{answer: answer}
	running := httptest.NewServer(s)
	t.Cleanup(func() {
		running.CloseClientConnections() // including hanging ones
		running.Close()
	})
	s.URL = running.URL + "/v1"
	return s
}

// Script returns an answer function that gives the replies in order, and repeats the last one.
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

// Requests returns the requests so far, in order of arrival.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.asked...)
}

// ServeHTTP serves chat completions, and 404 for other paths.
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

// Reply is how the server replies to a request.
type Reply struct {
	status        int
	header        http.Header
	text          string
	refusal       string
	finish        string
	raw           *string // the whole body, instead of a completion
	cut           int     // bytes of the body that are sent before the connection closes; 0: all
	drop          bool    // close the connection without a response
	hold          <-chan struct{}
	input, output int64
}

// Text replies with a text.
func Text(text string) Reply {
	return Reply{status: http.StatusOK, text: text, finish: "stop", input: 100, output: 20}
}

// JSON replies with a value as JSON.
func JSON(value any) Reply {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return Text(string(text))
}

// Tokens sets the token counts of the reply. The default is 100 for input and 20 for output.
func (r Reply) Tokens(input, output int64) Reply {
	r.input, r.output = input, output
	return r
}

// Status replies with an error that repeats the request, as some providers do. An empty retryAfter sends no header.
func Status(status int, retryAfter string) Reply {
	r := Reply{status: status, header: http.Header{}}
	if retryAfter != "" {
		r.header.Set("Retry-After", retryAfter)
	}
	return r
}

// Redirect replies with a redirect.
func Redirect(location string) Reply {
	r := Status(http.StatusTemporaryRedirect, "")
	r.header.Set("Location", location)
	return r
}

// Raw replies 200 with this body, which need not be a completion or JSON.
func Raw(body string) Reply { return Reply{status: http.StatusOK, raw: &body} }

// Malformed replies with invalid JSON.
func Malformed() Reply { return Raw(`{"choices": [{"message": {"content": "half`) }

// Truncated announces the whole body, sends its start, and closes the connection.
func Truncated(text string) Reply {
	r := Text(text)
	r.cut = 40
	return r
}

// Cut closes the connection without a response.
func Cut() Reply { return Reply{drop: true} }

// Hang sends no response until the client disconnects.
func Hang() Reply { return Reply{hold: make(chan struct{})} }

// After waits for a signal before it replies.
func After(signal <-chan struct{}, reply Reply) Reply {
	reply.hold = signal
	return reply
}

// Refusal is a model's refusal.
func Refusal(text string) Reply {
	return Reply{status: http.StatusOK, refusal: text, finish: "stop", input: 100, output: 5}
}

// Filtered is an answer that the provider's content filter withheld.
func Filtered() Reply {
	return Reply{status: http.StatusOK, finish: "content_filter", input: 100}
}

// TooLong is an answer that was cut off at the token limit.
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
