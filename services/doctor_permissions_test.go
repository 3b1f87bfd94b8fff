package services

import (
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/palisade/palisade/services/internal/apitest"
)

// Files that other users of the machine can read or change are reported by the doctor and as a warning at start. The
// server serves all the same.
func TestPermissionsThatAreTooWide(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no modes")
	}
	cfg := apitest.TLSConfig(t)
	apitest.WriteCertificate(t, cfg, 1, time.Now().Add(365*24*time.Hour))
	const data, key = "permissions of the data directory", "permissions of the TLS key"
	for _, c := range []struct {
		data, key os.FileMode
		want      []string
	}{
		{0o700, 0o600, nil}, {0o755, 0o400, nil}, {0o777, 0o600, []string{data}}, {0o770, 0o600, []string{data}}, {0o1777, 0o600, []string{data}},
		{0o700, 0o644, []string{key}}, {0o700, 0o640, []string{key}}, {0o777, 0o666, []string{data, key}},
	} {
		for path, mode := range map[string]os.FileMode{cfg.Data: c.data, cfg.TLSKey: c.key} {
			if err := os.Chmod(path, mode); err != nil {
				t.Fatal(err)
			}
		}
		if got := failures(t, Doctor(t.Context(), cfg)); !slices.Equal(got, c.want) {
			t.Errorf("%04o and %04o: got %v, want %v", c.data, c.key, got, c.want)
		}
	}
	_, out := apitest.StartConfigured(t, cfg)
	for _, want := range []string{"level=WARN", data, key, "chmod 700 ", "chmod 600 "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the log does not say %q:\n%s", want, out)
		}
	}
}
