package llm_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/palisade/palisade/services/internal/egress"
	"github.com/palisade/palisade/services/internal/llm"
	"github.com/palisade/palisade/services/internal/llm/llmtest"
)

var schema = map[string]any{
	"type": "object", "additionalProperties": false, "required": []string{"verdict", "reason"},
	"properties": map[string]any{
		"verdict": map[string]any{"type": "string", "enum": []string{"true_positive", "false_positive"}},
		"reason":  map[string]any{"type": "string"},
	},
}

var good = llmtest.Text(`{"verdict": "true_positive", "reason": "the id reaches the query"}`)

const goodJSON = `{"verdict":"true_positive","reason":"the id reaches the query"}`

func provider(t testing.TB, c llm.Config) *llm.Provider {
	t.Helper()
	guard, err := egress.New(egress.Config{Allow: "127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	if c.Model == "" {
		c.Model = "small"
	}
	return llm.New(c, guard)
}

func serve(t testing.TB, answer func(llmtest.Request) llmtest.Reply) (*llmtest.Server, *llm.Provider) {
	t.Helper()
	server := llmtest.New(t, answer)
	return server, provider(t, llm.Config{URL: server.URL, Key: "key-4711", InputPrice: 2, OutputPrice: 10})
}

func TestAskWithSchema(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "of-the-environment")
	t.Setenv("OPENAI_BASE_URL", "http://127.0.0.1:1")
	server, p := serve(t, llmtest.Script(good.Tokens(1_000_000, 200_000)))
	answer, err := p.Ask(t.Context(), llm.Question{System: "You triage.", Prompt: "Is it?", Schema: schema, SchemaName: "verdict", MaxTokens: 300})
	if err != nil || string(answer.JSON) != goodJSON {
		t.Fatalf("%s %v", answer.JSON, err)
	}
	if answer.Model != llmtest.Model || answer.InputTokens != 1_000_000 || answer.OutputTokens != 200_000 || answer.CostUSD != 4 {
		t.Errorf("%+v", answer)
	}
	asked := server.Requests()[0]
	if asked.Authorization != "Bearer key-4711" || asked.Model != "small" || asked.System != "You triage." || asked.Prompt != "Is it?" ||
		asked.Format != "json_schema" || asked.SchemaName != "verdict" || !asked.Strict || asked.MaxTokens != 300 || asked.Schema["type"] != "object" {
		t.Errorf("%+v", asked)
	}
}

func TestAskForText(t *testing.T) {
	server, p := serve(t, llmtest.Script(llmtest.Text("It is fine.")))
	answer, err := p.Ask(t.Context(), llm.Question{Prompt: "Is it?", Model: "large"})
	if err != nil || answer.Text != "It is fine." || answer.JSON != nil {
		t.Fatalf("%+v %v", answer, err)
	}
	if asked := server.Requests()[0]; asked.Model != "large" || asked.Format != "" || len(asked.Messages) != 1 {
		t.Errorf("%+v", asked)
	}
}

func TestOptionalPropertiesAreNotStrict(t *testing.T) {
	server, p := serve(t, llmtest.Script(llmtest.JSON(map[string]any{"n": 1})))
	_, err := p.Ask(t.Context(), llm.Question{Prompt: "?", Schema: map[string]any{"type": "object", "properties": map[string]any{"n": map[string]any{"type": "integer"}}}})
	if asked := server.Requests()[0]; err != nil || asked.Strict || asked.SchemaName != "answer" {
		t.Errorf("%+v %v", asked, err)
	}
}

func TestNotConfigured(t *testing.T) {
	for name, c := range map[string]llm.Config{"nothing": {}, "no model": {URL: "http://127.0.0.1:1"}, "no URL": {Model: "m"}} {
		guard, _ := egress.New(egress.Config{})
		p := llm.New(c, guard)
		_, err := p.Ask(t.Context(), llm.Question{Prompt: "?"})
		if p.Configured() || !errors.Is(err, llm.ErrNotConfigured) || status.Code(err) != codes.FailedPrecondition || !llm.IsPermanent(err) {
			t.Errorf("%s: %v", name, err)
		}
		if text := status.Convert(err).Message(); !strings.Contains(text, "ai-url") || !strings.Contains(text, "ai-model") {
			t.Errorf("%s: %s", name, text)
		}
	}
}

// TestServersWithoutSchemas: servers without response_format get the schema in the prompt, and later calls start
// with that format.
func TestServersWithoutSchemas(t *testing.T) {
	for knows, wantCalls := range map[string]int{"json_object": 2, "": 3} {
		server, p := serve(t, func(r llmtest.Request) llmtest.Reply {
			if r.Format != knows {
				return llmtest.Status(http.StatusBadRequest, "")
			}
			return llmtest.Text("Here it is:\n```json\n" + goodJSON + "\n```\nBye.")
		})
		for i := range 2 {
			answer, err := p.Ask(t.Context(), llm.Question{System: "Triage.", Prompt: "?", Schema: schema})
			if err != nil || string(answer.JSON) != goodJSON {
				t.Fatalf("%q: %s %v", knows, answer.JSON, err)
			}
			if got := len(server.Requests()); got != wantCalls+i {
				t.Errorf("%q: %d calls after question %d", knows, got, i)
			}
		}
		last := server.Requests()[wantCalls]
		if !strings.Contains(last.System, `"false_positive"`) || !strings.HasPrefix(last.System, "Triage.") {
			t.Errorf("%q: the schema is not in the prompt %q", knows, last.System)
		}
	}
}

// TestBadRequestIsNotRemembered: a request that is invalid in every format does not turn off schemas for others.
func TestBadRequestIsNotRemembered(t *testing.T) {
	server, p := serve(t, func(r llmtest.Request) llmtest.Reply {
		if r.Prompt == "too long" {
			return llmtest.Status(http.StatusBadRequest, "")
		}
		return good
	})
	if _, err := p.Ask(t.Context(), llm.Question{Prompt: "too long", Schema: schema}); !llm.IsPermanent(err) || !strings.Contains(err.Error(), "too long for the model") {
		t.Errorf("got %v", err)
	}
	before := len(server.Requests())
	if _, err := p.Ask(t.Context(), llm.Question{Prompt: "?", Schema: schema}); err != nil || server.Requests()[before].Format != "json_schema" {
		t.Errorf("%v %+v", err, server.Requests()[before])
	}
}

// TestOddSchemaIsNotRemembered: one schema that the API rejects does not turn off schemas once others have worked.
func TestOddSchemaIsNotRemembered(t *testing.T) {
	server, p := serve(t, func(r llmtest.Request) llmtest.Reply {
		if r.Prompt == "odd" && r.Format == "json_schema" {
			return llmtest.Status(http.StatusBadRequest, "")
		}
		return good
	})
	for _, prompt := range []string{"?", "odd", "?"} {
		if _, err := p.Ask(t.Context(), llm.Question{Prompt: prompt, Schema: schema}); err != nil {
			t.Errorf("%s: %v", prompt, err)
		}
	}
	if asked := server.Requests(); len(asked) != 4 || asked[3].Format != "json_schema" {
		t.Errorf("%d calls: %+v", len(asked), asked)
	}
}

func TestWrongAnswerIsAskedForAgain(t *testing.T) {
	wrong := llmtest.JSON(map[string]any{"verdict": "maybe", "reason": "hunter2"})
	server, p := serve(t, llmtest.Script(wrong, good))
	answer, err := p.Ask(t.Context(), llm.Question{Prompt: "?", Schema: schema})
	if err != nil || string(answer.JSON) != goodJSON || answer.InputTokens != 200 || answer.OutputTokens != 40 {
		t.Fatalf("%+v %v", answer, err)
	}
	second := server.Requests()[1].Messages
	if len(second) != 3 || second[1].Role != "assistant" || !strings.Contains(second[2].Content, "/verdict") {
		t.Errorf("%+v", second)
	}

	_, p = serve(t, llmtest.Script(wrong))
	answer, err = p.Ask(t.Context(), llm.Question{Prompt: "?", Schema: schema})
	if err == nil || llm.IsPermanent(err) || !strings.Contains(err.Error(), "/properties/verdict/enum") || strings.Contains(err.Error(), "maybe") {
		t.Errorf("got %v", err)
	}
	if answer.JSON != nil || answer.InputTokens != 200 || answer.CostUSD == 0 {
		t.Errorf("the cost of a failure is lost: %+v", answer)
	}
}

func TestFailures(t *testing.T) {
	for name, c := range map[string]struct {
		reply     llmtest.Reply
		permanent bool
		want      string
	}{
		"wrong key":      {llmtest.Status(401, ""), true, "set ai-key"},
		"forbidden":      {llmtest.Status(403, ""), true, "set ai-key"},
		"no such model":  {llmtest.Status(404, ""), true, "ai-model"},
		"bad request":    {llmtest.Status(400, ""), true, "ai-model"},
		"too large":      {llmtest.Status(413, ""), true, "too long"},
		"unpaid":         {llmtest.Status(402, ""), true, "status 402"},
		"redirect":       {llmtest.Redirect("http://127.0.0.1:1/"), true, "set ai-url"},
		"rate limited":   {llmtest.Status(429, "0"), false, "status 429"},
		"long wait":      {llmtest.Status(429, "3600"), false, "status 429"},
		"out of order":   {llmtest.Status(500, "0"), false, "status 500"},
		"overloaded":     {llmtest.Status(529, "0"), false, "status 529"},
		"malformed":      {llmtest.Malformed(), false, "incomplete"},
		"no completion":  {llmtest.Raw(`{"choices":[]}`), false, "OpenAI-compatible"},
		"list":           {llmtest.Raw(`[1]`), false, "OpenAI-compatible"},
		"cut off":        {llmtest.Truncated(goodJSON), false, "incomplete"},
		"no JSON":        {llmtest.Text("I would rather not say."), false, "it is not JSON"},
		"refusal":        {llmtest.Refusal("I cannot help with hunter2."), true, "refused to answer"},
		"filtered":       {llmtest.Filtered(), true, "content filter"},
		"longest":        {llmtest.TooLong(`{"verdict": "tr`), true, "maxTokens"},
		"empty":          {llmtest.Text(""), false, "empty"},
		"far too large":  {llmtest.Raw(`{"a":"` + strings.Repeat("a", 9<<20) + `"}`), true, "larger than"},
		"deep":           {llmtest.Text(strings.Repeat("[", 100_000)), false, "not JSON"},
		"schema's words": {llmtest.Text(`{"$ref": "file:///etc/passwd"}`), false, "/additionalProperties"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, p := serve(t, llmtest.Script(c.reply))
			_, err := p.Ask(t.Context(), llm.Question{Prompt: "?", Schema: schema})
			if err == nil || llm.IsPermanent(err) != c.permanent || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v (permanent %v), want %q (%v)", err, llm.IsPermanent(err), c.want, c.permanent)
			}
		})
	}
}

// TestRetries: transient failures are retried, after the delay in Retry-After.
func TestRetries(t *testing.T) {
	for name, first := range map[string]llmtest.Reply{"429": llmtest.Status(429, "0"), "503": llmtest.Status(503, "0")} {
		server, p := serve(t, llmtest.Script(first, first, good))
		if _, err := p.Ask(t.Context(), llm.Question{Prompt: "?", Schema: schema}); err != nil || len(server.Requests()) != 3 {
			t.Errorf("%s: %v after %d calls", name, err, len(server.Requests()))
		}
	}
}

func TestUnreachable(t *testing.T) {
	server := llmtest.New(t, llmtest.Script(llmtest.Cut()))
	_, err := provider(t, llm.Config{URL: server.URL, Timeout: time.Minute}).Ask(t.Context(), llm.Question{Prompt: "?"})
	if err == nil || llm.IsPermanent(err) || !strings.Contains(err.Error(), "could not be reached") {
		t.Errorf("got %v", err)
	}
	guard, _ := egress.New(egress.Config{Log: slog.New(slog.DiscardHandler)})
	_, err = llm.New(llm.Config{URL: server.URL, Model: "m"}, guard).Ask(t.Context(), llm.Question{Prompt: "?"})
	if !llm.IsPermanent(err) || !strings.Contains(err.Error(), "egress-allow") {
		t.Errorf("got %v", err)
	}
}

func TestTimeOutAndCancel(t *testing.T) {
	server := llmtest.New(t, llmtest.Script(llmtest.Hang()))
	_, err := provider(t, llm.Config{URL: server.URL, Timeout: 20 * time.Millisecond}).Ask(t.Context(), llm.Question{Prompt: "?"})
	if err == nil || llm.IsPermanent(err) || !strings.Contains(err.Error(), "ai-timeout") {
		t.Errorf("got %v", err)
	}
	asked := make(chan struct{})
	server = llmtest.New(t, func(llmtest.Request) llmtest.Reply { close(asked); return llmtest.Hang() })
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-asked; cancel() }()
	if _, err := provider(t, llm.Config{URL: server.URL}).Ask(ctx, llm.Question{Prompt: "?"}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestSchemasThatCannotBeUsed(t *testing.T) {
	server, p := serve(t, llmtest.Script(good))
	for name, bad := range map[string]map[string]any{
		"no schema":   {"type": "objekt"},
		"file":        {"$ref": "file:///etc/passwd"},
		"other files": {"$ref": "other.json"},
		"web":         {"$ref": "http://127.0.0.1:1/schema.json"},
		"no JSON":     {"const": func() {}},
	} {
		if _, err := p.Ask(t.Context(), llm.Question{Prompt: "?", Schema: bad}); !llm.IsPermanent(err) || llm.CheckSchema(bad) == nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := len(server.Requests()); n > 0 || llm.CheckSchema(schema) != nil || llm.CheckSchema(nil) != nil {
		t.Errorf("%d calls", n)
	}
}

func TestAnswersInWords(t *testing.T) {
	for _, text := range []string{
		goodJSON, " \n" + goodJSON + "\n", "```\n" + goodJSON + "\n```", "```json\n" + goodJSON + "```",
		"<think>is it {true}?</think>\n" + goodJSON, "Sure [as asked]: " + goodJSON + " — done.", "The set {a} is wrong.\n" + goodJSON,
	} {
		_, p := serve(t, llmtest.Script(llmtest.Text(text)))
		if answer, err := p.Ask(t.Context(), llm.Question{Prompt: "?", Schema: schema}); err != nil || string(answer.JSON) != goodJSON {
			t.Errorf("%q: %s %v", text, answer.JSON, err)
		}
	}
}

// TestCanary: requests, responses and credentials never appear in errors, logs and metrics.
func TestCanary(t *testing.T) {
	const canary = "canary-6f1e"
	var log bytes.Buffer
	previous := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	defer slog.SetDefault(previous)
	secretSchema := map[string]any{"type": "object", "additionalProperties": false, "properties": map[string]any{"a": map[string]any{"enum": []string{"x"}}}}
	for i, reply := range []llmtest.Reply{
		llmtest.Status(400, ""), llmtest.Status(401, ""), llmtest.Status(404, ""), llmtest.Status(429, "0"), llmtest.Status(500, "0"),
		llmtest.Raw(canary), llmtest.Truncated(canary), llmtest.Text(canary), llmtest.JSON(map[string]any{"a": canary}),
		llmtest.JSON(map[string]any{canary: 1}), llmtest.Refusal(canary), llmtest.TooLong(canary), llmtest.Redirect("http://127.0.0.1:1/" + canary),
		llmtest.JSON(map[string]any{"a": "x"}),
	} {
		server := llmtest.New(t, llmtest.Script(reply))
		p := provider(t, llm.Config{URL: server.URL, Key: canary, Model: canary})
		_, err := p.Ask(t.Context(), llm.Question{System: canary, Prompt: canary, Schema: secretSchema, Model: canary})
		registry := prometheus.NewPedanticRegistry()
		registry.MustRegister(p)
		families, gatherErr := registry.Gather()
		if text := fmt.Sprintf("%v %+v %#v %v %v", err, err, err, families, gatherErr); strings.Contains(text, canary) {
			t.Errorf("%d: %s", i, text)
		}
		for e := err; e != nil; e = errors.Unwrap(e) {
			if strings.Contains(fmt.Sprintf("%+v", e), canary) {
				t.Errorf("%d: cause: %+v", i, e)
			}
		}
	}
	if strings.Contains(log.String(), canary) {
		t.Errorf("leaked into the log: %s", &log)
	}
}

func TestMetrics(t *testing.T) {
	_, p := serve(t, llmtest.Script(good, llmtest.Status(401, "")))
	for range 2 {
		_, _ = p.Ask(t.Context(), llm.Question{Prompt: "?", Schema: schema})
	}
	want := `
# HELP palisade_model_requests_total Questions to the model, by outcome (ok, retryable, permanent, cancelled).
# TYPE palisade_model_requests_total counter
palisade_model_requests_total{outcome="ok"} 1
palisade_model_requests_total{outcome="permanent"} 1
# HELP palisade_model_tokens_total Tokens that the model read (input) and wrote (output).
# TYPE palisade_model_tokens_total counter
palisade_model_tokens_total{direction="input"} 100
palisade_model_tokens_total{direction="output"} 20
`
	if err := testutil.CollectAndCompare(p, strings.NewReader(want), "palisade_model_requests_total", "palisade_model_tokens_total"); err != nil {
		t.Error(err)
	}
}

// TestConcurrency: many concurrent questions share a few connections, and none waits forever.
func TestConcurrency(t *testing.T) {
	var now, most atomic.Int32
	release := make(chan struct{})
	var once sync.Once
	_, p := serve(t, func(llmtest.Request) llmtest.Reply {
		n := now.Add(1)
		for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
		}
		if n == 8 {
			once.Do(func() { close(release) })
		}
		<-release
		now.Add(-1)
		return good
	})
	var wg sync.WaitGroup
	for range 40 {
		wg.Go(func() {
			if _, err := p.Ask(t.Context(), llm.Question{Prompt: "?", Schema: schema}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if most.Load() != 8 {
		t.Errorf("%d questions at a time", most.Load())
	}
}

func TestNamed(t *testing.T) {
	for address, names := range map[string]map[string]bool{
		"https://api.openai.com/v1":  {"openai": true, "OpenAI": true, "api.openai.com": true, "com": false, "open": false, "openai.com": false, "": false},
		"http://127.0.0.1:8080":      {"127.0.0.1": true, "127": false},
		"http://localhost:11434/v1":  {"localhost": true, "ollama": false},
		"https://eu.Mistral.ai./v1/": {"mistral": true},
		"":                           {"": false, "openai": false},
	} {
		p := provider(t, llm.Config{URL: address})
		for name, want := range names {
			if p.Named(name) != want {
				t.Errorf("%q is named %q: %t", address, name, !want)
			}
		}
	}
}
