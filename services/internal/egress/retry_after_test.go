package egress

import (
	"net/http"
	"testing"
	"time"
)

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]struct {
		delay time.Duration
		ok    bool
	}{
		"":                              {0, false},
		"soon":                          {0, false},
		"-5":                            {0, false},
		"1.5":                           {0, false},
		"0":                             {0, true},
		"120":                           {2 * time.Minute, true},
		"86401":                         {24 * time.Hour, true},
		"2147483648":                    {24 * time.Hour, true}, // 32 bits hold less
		"9223372036854775807":           {24 * time.Hour, true},
		"99999999999999999999999":       {24 * time.Hour, true},
		"Sun, 01 Mar 2026 12:01:00 GMT": {time.Minute, true},
		"Sun, 01 Mar 2026 11:00:00 GMT": {0, true},
		"Tue, 01 Mar 2050 12:00:00 GMT": {24 * time.Hour, true},
	} {
		if delay, ok := RetryAfter(http.Header{"Retry-After": {text}}, now); delay != want.delay || ok != want.ok {
			t.Errorf("%q: %v %v, want %v %v", text, delay, ok, want.delay, want.ok)
		}
	}
}
