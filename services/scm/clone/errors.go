package clone

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"

	"github.com/go-git/go-git/v5/plumbing/transport"

	"github.com/palisade/palisade/services/internal/egress"
)

// Error is a failed fetch. Its text is public: it contains no credential and no text from the host.
type Error struct {
	Text string
	// Permanent: retrying does not help until a person changes the configuration or the repository.
	Permanent bool
}

// Error says what is wrong and what to do.
func (e *Error) Error() string { return e.Text }

var errOtherHost = errors.New("the host led to another address")

// statusError is the HTTP status of an error response.
type statusError int

func (s statusError) Error() string { return fmt.Sprintf("status %d", int(s)) }

// explain converts an error to a public text. connection is nil after the host was last contacted.
func explain(caller context.Context, err error, connection *confined) error {
	if err != nil && connection != nil {
		if why := connection.firstFailure(); why != nil {
			err = fmt.Errorf("%w: %w", why, err)
		}
	}
	var own *Error
	var tooLarge *egress.TooLargeError
	var disk *fs.PathError
	switch {
	case err == nil:
		return nil
	case caller.Err() != nil:
		return caller.Err()
	case errors.As(err, &own):
		return own
	case errors.As(err, &tooLarge):
		return &Error{Text: fmt.Sprintf("the repository is too large: more than %d MiB would have to be received", tooLarge.Limit>>20), Permanent: true}
	case errors.Is(err, errOtherHost):
		return &Error{Text: "the source-code host redirects to another address: bring the project's URL up to date", Permanent: true}
	case errors.Is(err, egress.ErrRefused):
		return &Error{Text: "the source-code host may not be called: the operator can name it in egress-allow", Permanent: true}
	case errors.As(err, &disk):
		return &Error{Text: "the repository could not be stored on disk: look after the data directory of the server"}
	case errors.Is(err, context.DeadlineExceeded):
		return &Error{Text: "the repository was not received in time"}
	}
	return explainAnswer(err, connection != nil && connection.firstFailure() != nil)
}

// explainAnswer explains an error status or an unreadable response. failed is true if there was no response, or only
// part of one.
func explainAnswer(err error, failed bool) error {
	var status statusError
	if errors.As(err, &status) {
		switch {
		case status == http.StatusUnauthorized:
			return &Error{Text: "the source-code host does not accept the stored credential: set a new accessToken", Permanent: true}
		case status == http.StatusForbidden:
			return &Error{Text: "the stored credential may not read the repository: give it read access to code", Permanent: true}
		case status == http.StatusNotFound:
			return &Error{Text: "the source-code host knows no such repository, or does not show it to the stored credential", Permanent: true}
		}
		passes := status >= 500 || status == http.StatusTooManyRequests || status == http.StatusRequestTimeout
		return &Error{Text: fmt.Sprintf("the source-code host answered with status %d", int(status)), Permanent: !passes}
	}
	if errors.Is(err, transport.ErrEmptyRemoteRepository) {
		return &Error{Text: "the repository is empty", Permanent: true}
	}
	if !failed { // the response was complete
		return &Error{Text: "the source-code host sent no readable repository"}
	}
	return &Error{Text: "the repository could not be received: " + egress.Describe(err)}
}
