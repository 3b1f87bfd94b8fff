package llm

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"google.golang.org/grpc/status"

	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/egress"
)

// ErrNotConfigured is returned when no model is configured (FAILED_PRECONDITION).
var ErrNotConfigured error = apierr.FailedPrecondition(
	"no model is configured: set ai-url and ai-model (and ai-key where the API needs one) and start the server again")

// failure is a call without an answer. Its text is safe to show: it contains nothing that was sent or received.
type failure struct {
	text      string
	permanent bool
	// badRequest: the API rejects the request (400, 422).
	badRequest bool
}

func (f *failure) Error() string { return f.text }

func permanent(format string, args ...any) error {
	return &failure{text: fmt.Sprintf(format, args...), permanent: true}
}

func retryable(format string, args ...any) error {
	return &failure{text: fmt.Sprintf(format, args...)}
}

// IsPermanent reports whether a retry cannot succeed until a setting or the question is changed.
func IsPermanent(err error) bool {
	var f *failure
	return errors.Is(err, ErrNotConfigured) || errors.As(err, &f) && f.permanent
}

// Text returns the text of a failed call, which is safe to show. It is empty for other errors.
func Text(err error) string {
	var f *failure
	switch {
	case errors.Is(err, ErrNotConfigured):
		return status.Convert(ErrNotConfigured).Message()
	case errors.As(err, &f):
		return f.text
	}
	return ""
}

// explain returns the error of a failed call in the words of this package. status is 0 when there was no response.
func explain(ctx context.Context, status int, err error) error {
	var tooLarge *egress.TooLargeError
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return ctx.Err()
	case errors.As(err, &tooLarge):
		return permanent("the model's answer is larger than %d bytes: ask for less, or limit it with maxTokens", maxAnswer)
	case errors.Is(err, egress.ErrRefused):
		return permanent("calls to the address of ai-url are not allowed: the operator can add its host to egress-allow")
	case ctx.Err() != nil, errors.Is(err, context.DeadlineExceeded):
		return retryable("the model did not answer in time: see ai-timeout")
	case errors.Is(err, egress.ErrUpgrade):
		return permanent("%s: check ai-url", egress.Describe(err))
	case status == 0:
		return retryable("the model could not be reached: check ai-url, or try again later")
	case status < 300:
		return retryable("the model's answer is incomplete or does not come from an OpenAI-compatible API: check ai-url, or try again later")
	}
	return refusal(status)
}

// refusal returns the error of a response with an error status. It ignores the body, because providers repeat parts
// of the prompt there.
func refusal(status int) error {
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return permanent("the model's API rejects the key (status %d): set ai-key", status)
	case status == http.StatusNotFound:
		return permanent("the model's API does not know the path or the model (status 404): check ai-url and ai-model")
	case status < 400:
		return permanent("the model's API redirects (status %d): set ai-url to its real address", status)
	case status == http.StatusBadRequest || status == http.StatusUnprocessableEntity:
		return &failure{permanent: true, badRequest: true, text: fmt.Sprintf(
			"the model's API rejects the request (status %d): the prompt may be too long for the model, or ai-model does not fit it", status)}
	case status == http.StatusRequestEntityTooLarge:
		return permanent("the prompt is too long for the model's API (status 413)")
	case status == http.StatusTooManyRequests:
		return retryable("the model's API limits the rate of requests (status 429): try again later, or raise the limit at the provider")
	case status == http.StatusRequestTimeout || status == http.StatusConflict || status >= 500:
		return retryable("the model's API is failing (status %d): try again later", status)
	}
	return permanent("the model's API refuses the request (status %d): check ai-url, ai-key and ai-model", status)
}
