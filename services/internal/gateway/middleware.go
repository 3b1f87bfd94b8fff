package gateway

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"

	"github.com/klauspost/compress/gzhttp"
	"github.com/klauspost/compress/gzip"

	"github.com/palisade/palisade/services/internal/apierr"
)

const requestIDHeader = "X-Request-Id"

// wrap adds the layers that do not depend on the route.
func wrap(inner http.Handler, hsts bool, log *slog.Logger) (http.Handler, error) {
	compressed, err := gzhttp.NewWrapper(
		gzhttp.MinSize(gzhttp.DefaultMinSize),
		gzhttp.CompressionLevel(gzip.BestSpeed), // JSON shrinks tenfold at any level; higher levels only cost CPU
		gzhttp.EnableZstd(false),
	)
	if err != nil {
		return nil, fmt.Errorf("gateway: compression: %w", err)
	}
	return withRecovery(withRequestID(withSecurityHeaders(compressed(inner), hsts)), log), nil
}

// withRecovery answers a panic with 500. It covers the router. The interceptors, and the in-process connection behind
// them, catch panics of RPC handlers.
func withRecovery(next http.Handler, log *slog.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tracked := &trackedWriter{ResponseWriter: w}
		defer func() {
			value := recover()
			if value == nil {
				return
			}
			if err, ok := value.(error); ok && errors.Is(err, http.ErrAbortHandler) {
				panic(value)
			}
			requestID := w.Header().Get(requestIDHeader)
			log.ErrorContext(r.Context(), "panic while serving HTTP", slog.String("request_id", requestID),
				slog.Any("panic", value), slog.String("stack", string(debug.Stack())))
			if tracked.written {
				// Part of the response has been sent. Abort, so that the client sees that it is incomplete.
				panic(http.ErrAbortHandler)
			}
			w.Header().Del("Content-Encoding")
			apierr.WriteHTTP(w, apierr.Internal(fmt.Errorf("panic: %v", value)), requestID)
		}()
		next.ServeHTTP(tracked, r)
	})
}

// trackedWriter records whether any of the response has been sent.
type trackedWriter struct {
	http.ResponseWriter
	written bool
}

// WriteHeader passes the status on. Informational responses do not count as sent.
func (w *trackedWriter) WriteHeader(status int) {
	w.written = w.written || status >= http.StatusOK
	w.ResponseWriter.WriteHeader(status)
}

func (w *trackedWriter) Write(b []byte) (int, error) {
	w.written = true
	return w.ResponseWriter.Write(b)
}

// Unwrap gives http.ResponseController access to the connection.
func (w *trackedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Flush implements http.Flusher.
func (w *trackedWriter) Flush() { _ = http.NewResponseController(w.ResponseWriter).Flush() }

type requestIDKey struct{}

// RequestID returns the id of the HTTP request that ctx belongs to, or "".
func RequestID(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey{}).(string)
	return id
}

// withRequestID accepts a valid X-Request-Id or creates one. It sets the id in the context, in the request's headers
// (which become metadata) and in the response's.
func withRequestID(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := r.Header.Get(requestIDHeader)
		if !isSaneRequestID(id) {
			id = rand.Text()
		}
		w.Header().Set(requestIDHeader, id)
		r = r.WithContext(context.WithValue(r.Context(), requestIDKey{}, id))
		r.Header.Set(requestIDHeader, id)
		next.ServeHTTP(w, r)
	})
}

// isSaneRequestID accepts the usual forms (UUIDs, hexadecimal, base64url, "a:b", "a/b") and keeps anything else out of
// logs.
func isSaneRequestID(id string) bool {
	if id == "" || len(id) > 128 {
		return false
	}
	for _, c := range []byte(id) {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && c != '-' && c != '_' && c != '.' && c != ':' && c != '/' && c != '=' && c != '+' {
			return false
		}
	}
	return true
}

// strictTransport makes browsers use https:// for a year. It does not include subdomains, which belong to others.
const strictTransport = "max-age=31536000"

// withSecurityHeaders sets the headers of every API response. A handler that serves a page sets its own. hsts means
// that callers use TLS.
func withSecurityHeaders(next http.Handler, hsts bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Cache-Control", "no-store")
		header.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		header.Set("Referrer-Policy", "no-referrer")
		if hsts {
			header.Set("Strict-Transport-Security", strictTransport)
		}
		next.ServeHTTP(w, r)
	})
}
