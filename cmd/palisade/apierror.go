package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
)

const errConnectionRefused = syscall.ECONNREFUSED

// codeScopeMissing is the code of the error for a token without the scope that an operation requires.
const codeScopeMissing = "SCOPE_MISSING"

// apiError is an error response of the server.
type apiError struct {
	status     int
	retryAfter string

	Message   string
	Code      string
	Details   []json.RawMessage
	RequestID string
}

// readAPIError reads the error body of the API. A proxy may answer with a page of its own instead; then the beginning
// of that page is returned.
func readAPIError(resp *http.Response) error {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	var parsed struct {
		Error     string            `json:"error"`
		Message   string            `json:"message"`
		Code      string            `json:"code"`
		Details   []json.RawMessage `json:"details"`
		RequestID string            `json:"requestId"`
	}
	e := &apiError{status: resp.StatusCode, retryAfter: resp.Header.Get("Retry-After")}
	if err := json.Unmarshal(body, &parsed); err != nil || parsed.Error+parsed.Message == "" {
		e.Message = "the answer is no Palisade error; is --server right? It begins: " + strings.ToValidUTF8(string(body[:min(len(body), 200)]), "")
		if len(body) == 0 {
			e.Message = "the answer has no body"
		}
		return e
	}
	e.Message, e.Code, e.Details, e.RequestID = parsed.Message, parsed.Code, parsed.Details, parsed.RequestID
	if e.Message == "" {
		e.Message = parsed.Error
	}
	return e
}

// Error returns the message, the ids of the case, and what to do next.
func (e *apiError) Error() string {
	var b strings.Builder
	b.WriteString(printable(e.Message))
	for _, violation := range e.violations() {
		b.WriteString("\n  - " + printable(violation))
	}
	fmt.Fprintf(&b, "\n  (HTTP %d %s", e.status, http.StatusText(e.status))
	if e.Code != "" {
		b.WriteString(", " + printable(e.Code))
	}
	if e.RequestID != "" {
		b.WriteString(", request " + printable(e.RequestID))
	}
	b.WriteString(")")
	if hint := e.hint(); hint != "" {
		b.WriteString("\n  " + hint)
	}
	return b.String()
}

// violations lists the fields of google.rpc.BadRequest details that the message does not name.
func (e *apiError) violations() (lines []string) {
	for _, raw := range e.Details {
		var detail struct {
			FieldViolations []struct{ Field, Description string } `json:"fieldViolations"`
		}
		if json.Unmarshal(raw, &detail) != nil {
			continue
		}
		for _, v := range detail.FieldViolations {
			if v.Description != "" && !strings.Contains(e.Message, v.Description) {
				lines = append(lines, v.Field+": "+v.Description)
			}
		}
	}
	return lines
}

func (e *apiError) hint() string {
	if e.Code == codeScopeMissing {
		return "Create a token with one of these scopes: palisade token create --name NAME --scopes SCOPE"
	}
	switch e.status {
	case http.StatusUnauthorized:
		return "Check that " + tokenEnv + " (or --token) is correct, not expired and not revoked. On the server: palisade token list"
	case http.StatusForbidden:
		return "The token is valid but lacks the permission. Create one with another role or scope: palisade token create --help"
	case http.StatusNotFound:
		return "A token of another deployment gets the same answer. Check --deployment and: palisade token list"
	case http.StatusRequestEntityTooLarge:
		return "The server's limit is max-upload: palisade serve --help"
	case http.StatusTooManyRequests:
		if e.retryAfter != "" {
			return "Try again in " + printable(e.retryAfter) + " s."
		}
		return "Try again later."
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return "The server is starting, stopping or overloaded; try again. Uploads are atomic: this one was stored completely or not at all."
	case http.StatusInternalServerError:
		return "The server's log has details under this request id."
	}
	return ""
}
