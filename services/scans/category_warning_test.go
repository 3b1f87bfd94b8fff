package scans_test

import (
	"strings"
	"testing"

	"github.com/palisade/palisade/services/internal/apitest"
)

// An automationDetails.id without a category says so, unless the upload has one.
func TestCategoryWarning(t *testing.T) {
	t.Parallel()
	s := apitest.Start(t, nil)
	send := func(id string, query ...string) string {
		t.Helper()
		report := `{"version":"2.1.0","runs":[{"automationDetails":{"id":"` + id + `"},"tool":{"driver":{"name":"t","rules":[]}},"results":[]}]}`
		return s.Upload(t, "acme/web", "main", []byte(report), query...)
	}
	const warning = "names no category"
	for id, want := range map[string]string{"nightly": `write \"nightly/\"`, "/nightly": `write \"nightly/\"`, "nightly/": "", "a/nightly": "", "": ""} {
		if got := send(id); strings.Contains(got, warning) != (want != "") || !strings.Contains(got, want) {
			t.Errorf("%q: %s", id, got)
		}
	}
	if got := send("nightly", "category", "own"); strings.Contains(got, warning) {
		t.Errorf("with a category of the upload: %s", got)
	}
}
