package sbom

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/palisade/palisade/ent"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	supplychainv1 "github.com/palisade/palisade/gen/palisade/supplychain/v1"
)

// TestLimits: an SBOM that is too large fails, and its error says why.
func TestLimits(t *testing.T) {
	t.Parallel()
	p := newParts(2)
	for i, want := range []codes.Code{codes.OK, codes.OK, codes.FailedPrecondition} {
		err := p.add(&ent.Dependency{Ecosystem: "npm", Package: "a", Version: strings.Repeat("1", i+1), Lockfile: "package-lock.json"}, &storev1.DependencyContent{})
		if status.Code(err) != want {
			t.Errorf("package %d: %v", i+1, err)
		}
	}
	b := &bounded{max: 3}
	for _, c := range []struct {
		text string
		want codes.Code
	}{{"abc", codes.OK}, {"d", codes.FailedPrecondition}} {
		if _, err := b.Write([]byte(c.text)); status.Code(err) != c.want {
			t.Errorf("%s: %v", c.text, err)
		}
	}
	if b.String() != "abc" {
		t.Errorf("the buffer has %q", b.String())
	}
}

// TestComponentTypes: each value of the enum is a word of CycloneDX.
func TestComponentTypes(t *testing.T) {
	t.Parallel()
	want := []string{
		"application", "application", "framework", "library", "container", "platform", "operating-system", "device", "device-driver",
		"firmware", "file", "machine-learning-model", "data",
	}
	if len(want) != len(supplychainv1.SbomMetadataComponentType_name) {
		t.Errorf("%d words for %d values", len(want), len(supplychainv1.SbomMetadataComponentType_name))
	}
	for number, word := range want {
		if got := componentType(supplychainv1.SbomMetadataComponentType(number)); string(got) != word {
			t.Errorf("%d: %s, want %s", number, got, word)
		}
	}
}

// TestLicences: a text is an expression only if it has the form of one.
func TestLicences(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"MIT": true, "Apache-2.0 OR MIT": true, "(GPL-2.0-only WITH Classpath-exception-2.0) AND MIT": true, "LicenseRef-acme": true,
		"SEE LICENSE IN LICENSE.txt": false, "MIT, Apache-2.0": false, "https://acme.test/licence": false,
	} {
		got := *licensesOf([]string{text, text})
		if len(got) != 1 || (got[0].Expression == text) != want || (got[0].License != nil) == want {
			t.Errorf("%s: %+v", text, got)
		}
	}
	if got := *licensesOf([]string{"MIT", "Apache-2.0"}); len(got) != 2 || got[0].License.Name != "Apache-2.0" {
		t.Errorf("two: %+v", got)
	}
}
