package sarif_test

import (
	"testing"
	"time"

	"github.com/palisade/palisade/services/scans/sarif"
)

func TestParseTime(t *testing.T) {
	want := time.Date(2026, 11, 20, 20, 57, 51, 0, time.UTC)
	for _, text := range []string{
		"2026-11-20T20:57:51Z", "2026-11-20T21:57:51+01:00", "2026-11-20t20:57:51z", " 2026-11-20 20:57:51Z ",
		"2026-11-20T20:57:51", "2026-11-20T20:57:51.000", "2026-11-20T12:57:51-08:00",
	} {
		if got := sarif.ParseTime(text); !got.Equal(want) {
			t.Errorf("%q: %v", text, got)
		}
	}
	if got := sarif.ParseTime("2026-11-20T20:57Z"); !got.Equal(want.Truncate(time.Minute)) {
		t.Errorf("without seconds: %v", got)
	}
	for _, text := range []string{"", "2026-11-20", "20 Nov 2026", "1763672271", "2026-13-01T00:00:00Z", "null"} {
		if got := sarif.ParseTime(text); !got.IsZero() {
			t.Errorf("%q: %v", text, got)
		}
	}
}
