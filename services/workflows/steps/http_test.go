package steps_test

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/palisade/palisade/services/internal/egress"
	"github.com/palisade/palisade/services/workflows/step"
	"github.com/palisade/palisade/services/workflows/steps"
)

// answered is the output of http.
type answered struct {
	Status  int
	Headers map[string]string
	Body    any
}

func TestHTTP(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("X-Seen", fmt.Sprint(r.Method, " ", r.Header.Get("Content-Type"), " ", r.Header.Get("X-Team"), " ", r.Header.Get("Idempotency-Key"), " ", string(body)))
		w.Header().Set("Set-Cookie", "session=1")
		switch r.URL.Path {
		case "/json":
			w.Header().Set("Content-Type", "application/problem+json; charset=utf-8")
			_, _ = io.WriteString(w, `{"n": [1, "two"]}`)
		case "/broken":
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"n": `)
		case "/moved":
			http.Redirect(w, r, "/json", http.StatusFound)
		case "/accepted":
			w.WriteHeader(http.StatusConflict)
		default:
			_, _ = io.WriteString(w, "plain")
		}
	}))
	defer server.Close()
	kinds := steps.Registry(steps.Needs{Egress: guard(t)})
	for _, c := range []struct {
		with   with
		status int
		seen   string
		body   string
	}{
		{with{"url": "/json"}, 200, "GET    ", "map[n:[1 two]]"},
		{with{"url": "/broken"}, 200, "GET    ", `{"n": `},
		{with{"url": "/moved"}, 200, "GET    ", "map[n:[1 two]]"},
		{with{"url": "/text", "method": "POST", "body": "raw", "headers": with{"x-team": "appsec"}}, 200, "POST text/plain; charset=utf-8 appsec palisade-7-70 raw", "plain"},
		{with{"url": "/text", "method": "PUT", "body": with{"a": 1}}, 200, `PUT application/json  palisade-7-70 {"a":1}`, "plain"},
		{with{"url": "/text", "method": "PATCH", "body": "<a/>", "headers": with{"Content-Type": "text/xml", "Idempotency-Key": "mine"}}, 200, "PATCH text/xml  mine <a/>", "plain"},
		{with{"url": "/text", "method": "DELETE"}, 200, "DELETE   palisade-7-70 ", "plain"},
		{with{"url": "/accepted", "expect": []any{409}}, 409, "GET    ", ""},
	} {
		c.with["url"] = server.URL + c.with["url"].(string)
		out, _ := run[answered](t, kinds, "http", step.Call{RunID: 7, TaskID: 70, With: c.with})
		if out.Status != c.status || out.Headers["x-seen"] != strings.TrimSpace(c.seen) || fmt.Sprint(out.Body) != c.body || out.Headers["set-cookie"] != "" {
			t.Errorf("%v: %+v", c.with, out)
		}
	}
}

func TestHTTPFailures(t *testing.T) {
	inner := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("an address inside was called") }))
	defer inner.Close()
	_, innerPort, _ := strings.Cut(strings.TrimPrefix(inner.URL, "http://"), ":")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/500":
			http.Error(w, "canary-6f1e", http.StatusInternalServerError)
		case "/429":
			w.WriteHeader(http.StatusTooManyRequests)
		case "/404":
			http.Error(w, "canary-6f1e", http.StatusNotFound)
		case "/large":
			_, _ = w.Write(make([]byte, 2000))
		case "/binary":
			_, _ = w.Write([]byte{0xff, 0xfe})
		case "/inside":
			http.Redirect(w, r, "http://127.0.0.2:"+innerPort+"/", http.StatusFound)
		case "/round":
			http.Redirect(w, r, "/round", http.StatusFound)
		case "/wide":
			_, _ = io.WriteString(w, strings.Repeat("\"", 600<<10))
		case "/cut":
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "half")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
	}))
	defer server.Close()
	only, err := egress.New(egress.Config{Allow: strings.TrimPrefix(server.URL, "http://"), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	kinds := steps.Registry(steps.Needs{Egress: only})
	for _, c := range []struct {
		with      with
		permanent bool
		want      string
	}{
		{with{"url": "/500"}, false, "status 500"},
		{with{"url": "/429"}, false, "status 429"},
		{with{"url": "/404"}, true, "status 404"},
		{with{"url": "/404", "expect": []any{200}}, true, "status 404"},
		{with{"url": "/ok", "expect": []any{201}}, true, "status 200"},
		{with{"url": "/large", "maxBytes": 1000}, true, "too large"},
		{with{"url": "/wide", "maxBytes": 1 << 20}, true, "as JSON"},
		{with{"url": "/binary"}, true, "is not text"},
		{with{"url": "/inside"}, true, "could not be reached"},
		{with{"url": "/round"}, true, "redirected too often"},
		{with{"url": "/cut"}, false, "broke off"},
		{with{"url": inner.URL + "/canary-6f1e"}, true, "https://"},
		{with{"url": "https://10.1.2.3/canary-6f1e"}, true, "public host"},
		{with{"url": "https://user:canary-6f1e@api.acme.test/"}, true, "without user"},
	} {
		if url := c.with["url"].(string); url[0] == '/' {
			c.with["url"] = server.URL + url + "?token=canary-6f1e"
		}
		err := failure(t, kinds, "http", step.Call{With: c.with})
		if step.IsPermanent(err) != c.permanent || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%v: got %v (permanent %v)", c.with, err, step.IsPermanent(err))
		}
	}
}
