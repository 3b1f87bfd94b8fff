package llm

import (
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/palisade/palisade/services/internal/egress"
)

func TestRetryDelay(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		header http.Header
		retry  int
		want   time.Duration
		again  bool
	}{
		"fine":              {200, nil, 0, 0, false},
		"wrong":             {400, nil, 0, 0, false},
		"first":             {500, nil, 0, 500 * time.Millisecond, true},
		"second":            {503, nil, 1, time.Second, true},
		"as it says":        {429, http.Header{"Retry-After": {"7"}}, 1, 7 * time.Second, true},
		"longer than a try": {429, http.Header{"Retry-After": {"21"}}, 0, 21 * time.Second, false},
		"a time gone by":    {429, http.Header{"Retry-After": {"Mon, 02 Jan 2006 15:04:05 GMT"}}, 0, 0, true},
		"no time":           {429, http.Header{"Retry-After": {"soon"}}, 0, 500 * time.Millisecond, true},
		"will not help":     {429, http.Header{"X-Should-Retry": {"false"}}, 0, 0, false},
		"may help":          {400, http.Header{"X-Should-Retry": {"true"}}, 0, 500 * time.Millisecond, true},
	} {
		if got, again := retryDelay(&http.Response{StatusCode: c.status, Header: c.header}, nil, c.retry); got != c.want || again != c.again {
			t.Errorf("%s: got %s, %v", name, got, again)
		}
	}
	for err, want := range map[error]bool{io.ErrUnexpectedEOF: true, errors.Join(egress.ErrRefused): false, egress.ErrUpgrade: false} {
		if _, again := retryDelay(nil, err, 0); again != want {
			t.Errorf("%v: got %v", err, again)
		}
	}
}
