package llm

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/egress"
)

// ErrNotConfigured refuses what needs a model where there is none (FAILED_PRECONDITION).
var ErrNotConfigured error = apierr.FailedPrecondition(
	"no model is configured: set ai-url and ai-model (and ai-key where the API needs one) and start the server again")

// failure is a call that brought no answer. Its text is fit for everybody: it holds nothing that was sent or received.
type failure struct {
	text      string
	permanent bool
	// badRequest: the API does not take the request as it is (400, 422).
	badRequest bool
}

func (f *failure) Error() string { return f.text }

func permanent(format string, args ...any) error {
	return &failure{text: fmt.Sprintf(format, args...), permanent: true}
}

func retryable(format string, args ...any) error {
	return &failure{text: fmt.Sprintf(format, args...)}
}

// IsPermanent reports whether asking again is of no use until somebody changes a setting or the question.
func IsPermanent(err error) bool {
	var f *failure
	return errors.Is(err, ErrNotConfigured) || errors.As(err, &f) && f.permanent
}

// explain says in our words why a call failed. status is that of the answer, 0 when there was none.
func explain(ctx context.Context, status int, err error) error {
	var tooLarge *egress.TooLargeError
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return ctx.Err()
	case errors.As(err, &tooLarge):
		return permanent("the model's answer is larger than %d bytes: ask for less, or bound it with maxTokens", maxAnswer)
	case errors.Is(err, egress.ErrRefused):
		return permanent("the address of ai-url may not be called: the operator can name its host in egress-allow")
	case ctx.Err() != nil, errors.Is(err, context.DeadlineExceeded):
		return retryable("the model did not answer in time: see ai-timeout")
	case errors.Is(err, egress.ErrUpgrade):
		return permanent("%s: check ai-url", egress.Describe(err))
	case status == 0:
		return retryable("the model could not be reached: check ai-url, or try again later")
	case status < 300:
		return retryable("the model's answer broke off or is not that of an OpenAI-compatible API: check ai-url, or try again later")
	}
	return refusal(status)
}

// refusal explains an answer that is an error, by its status alone: providers repeat parts of the prompt in theirs.
func refusal(status int) error {
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return permanent("the model's API refuses the key (status %d): set ai-key", status)
	case status == http.StatusNotFound:
		return permanent("the model's API knows no such path or model (status 404): check ai-url and ai-model")
	case status < 400:
		return permanent("the model's API redirects elsewhere (status %d): set ai-url to where it really is", status)
	case status == http.StatusBadRequest || status == http.StatusUnprocessableEntity:
		return &failure{permanent: true, badRequest: true, text: fmt.Sprintf(
			"the model's API does not take the request (status %d): the prompt may be too long for the model, or ai-model does not fit it", status)}
	case status == http.StatusRequestEntityTooLarge:
		return permanent("the prompt is too long for the model's API (status 413)")
	case status == http.StatusTooManyRequests:
		return retryable("the model's API takes no more requests for now (status 429): try again later, or raise the limit at the provider")
	case status == http.StatusRequestTimeout || status == http.StatusConflict || status >= 500:
		return retryable("the model's API is out of order (status %d): try again later", status)
	}
	return permanent("the model's API refuses the request (status %d): check ai-url, ai-key and ai-model", status)
}
