package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestParseDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"60s": time.Minute, "1h30m": 90 * time.Minute, "30d": 720 * time.Hour, "1d12h": 36 * time.Hour, " 5m ": 5 * time.Minute, "0": 0,
	} {
		if got, err := ParseDuration(text); err != nil || got != want {
			t.Errorf("%q: got %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "60", "d", "1.5d", "-1d", "1d-1h", "200000d", "106751d24h", "1h1d", "soon"} {
		if got, err := ParseDuration(text); err == nil {
			t.Errorf("%q: got %v, want an error", text, got)
		}
	}
}

func TestDurationRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := time.Duration(rapid.Int64().Draw(t, "nanoseconds"))
		if got, err := ParseDuration(want.String()); err != nil || got != want {
			t.Fatalf("%v: got %v, %v", want, got, err)
		}
	})
}

func TestByteSizeRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// Larger sizes pass through a float64 in the parser and lose digits. No limit is that large.
		want := ByteSize(rapid.Int64Range(0, 1<<53).Draw(t, "bytes"))
		if got, err := ParseByteSize(want.String()); err != nil || got != want {
			t.Fatalf("%v: got %v, %v", want, got, err)
		}
	})
}

func TestParseByteSize(t *testing.T) {
	for text, want := range map[string]ByteSize{"16MiB": 16 << 20, "64 KiB": 64 << 10, "1GB": 1e9, "1.5KiB": 1536, "1048576": 1 << 20, "0": 0} {
		if got, err := ParseByteSize(text); err != nil || got != want {
			t.Errorf("%q: got %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "MiB", "-1", "16 apples", "1e3", "99999999999GiB"} {
		if got, err := ParseByteSize(text); err == nil {
			t.Errorf("%q: got %v, want an error", text, got)
		}
	}
}

func FuzzParseDuration(f *testing.F) {
	for _, seed := range []string{"60s", "1d12h", "30d", "1d-1h", "9223372036854775807ns", "106751d23h"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := ParseDuration(text)
		if err == nil && strings.Contains(text, "d") && d < 0 {
			t.Fatalf("%q overflowed to %v", text, d)
		}
	})
}

func FuzzParseByteSize(f *testing.F) {
	for _, seed := range []string{"16MiB", "1.5GB", "18446744073709551615", "9EiB", "-1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if n, err := ParseByteSize(text); err == nil && n < 0 {
			t.Fatalf("%q became %d", text, int64(n))
		}
	})
}

func TestSecretsAreNeverPrinted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		secret := rapid.StringMatching(`[A-Z]{4}[A-Za-z0-9!#$&*:/?%@ ]{8,20}`).Draw(t, "secret")
		c := Default()
		c.BootstrapToken = secret
		c.Database = rapid.SampledFrom([]string{
			"postgres://user:" + url.QueryEscape(secret) + "@host/db",
			"postgres://user:" + secret + "@host/db",
			"postgres://host/db?user=u&password=" + url.QueryEscape(secret),
			"postgres://host/db?sslpassword=" + secret,
			"host=h password=" + secret,
		}).Draw(t, "database")
		var logged bytes.Buffer
		slog.New(slog.NewJSONHandler(&logged, nil)).Info("start", "config", c)
		slog.New(slog.NewTextHandler(&logged, nil)).Info("start", "config", &c)
		encoded, err := json.Marshal(map[string]any{"config": c})
		if err != nil {
			t.Fatal(err)
		}
		shown := fmt.Sprintf("%s %v %+v %#v %s %v %s", c, c, c, c, logged.String(), struct{ C Config }{c}, encoded)
		if err := c.Validate(); err != nil {
			shown += err.Error()
		}
		// Half of the secret must not be shown either.
		if half := secret[:len(secret)/2]; strings.Contains(shown, half) {
			t.Fatalf("%q is in: %s", half, shown)
		}
	})
}

// An unescaped password may end what is read as the host.
func TestPasswordsThatCutAURL(t *testing.T) {
	for _, secret := range []string{"HUNTER!G!:#Btz", "HUNTER:/Btz", "HUNTER:?Btz", "20262026#Btz", "20262026/Btz", "20262026?Btz"} {
		c := Default()
		c.Database = "postgres://user:" + secret + "@host/db"
		if shown := c.String(); strings.Contains(shown, secret[:6]) || strings.Contains(shown, "Btz") {
			t.Errorf("%q is in: %s", secret, shown)
		}
	}
}

func TestRedactedConfigStillSaysWhere(t *testing.T) {
	c := Default()
	c.Database = "postgres://palisade:hunter22@db.internal/palisade"
	if s := c.String(); !strings.Contains(s, "db.internal/palisade") || !strings.Contains(s, "http=127.0.0.1:8080") {
		t.Errorf("got %s", s)
	}
}
