package registry_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/palisade/palisade/services/supplychain/registry"
)

func TestCheckURL(t *testing.T) {
	for _, raw := range []string{"https://repo.acme.test", "https://repo.acme.test/maven/%23/", "http://127.0.0.1:8081/npm/"} {
		if err := registry.CheckURL(raw); err != nil {
			t.Errorf("%s: %v", raw, err)
		}
	}
	for _, raw := range []string{
		"https://repo.acme.test/?token=hunter2", "https://repo.acme.test/?", "https://repo.acme.test/#hunter2", "https://repo.acme.test/#",
		"https://hunter2@repo.acme.test/%zz",
	} {
		err := registry.CheckURL(raw)
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: got %v", raw, err)
		}
	}
}

func TestHostPattern(t *testing.T) {
	for pattern, want := range map[string]string{
		"registry.npmjs.org": "registry.npmjs.org", "*.PyPI.org": "*.pypi.org", "localhost:4873": "localhost:4873",
		"*.acme.test:8443": "*.acme.test:8443", "10.0.0.7:80": "10.0.0.7:80", "[2001:db8::1]": "[2001:db8::1]", "[::1]:443": "[::1]:443",
	} {
		if got, err := registry.HostPattern(pattern); err != nil || got != want {
			t.Errorf("%s: %q, %v", pattern, got, err)
		}
	}
	for _, pattern := range []string{
		"", "*", "*.", "*.*.acme.test", "re*.acme.test", "https://acme.test", "acme.test/npm", "acme.test:", "acme.test:0", "acme.test:http",
		"acme.test:65536", "ci@acme.test", "a b.test", "acme..test", "*.10.0.0.7", "2001:db8::1", "[10.0.0.7]", "[acme.test]", "[fe80::1%eth0]",
		"-acme.test", "*acme.test", "acme.test?x", "acme.test#x",
	} {
		if got, err := registry.HostPattern(pattern); err == nil {
			t.Errorf("%q became %q", pattern, got)
		}
	}
}

func TestKinds(t *testing.T) {
	for _, ecosystem := range []string{"maven", "npm", "pypi"} {
		if got := registry.Kinds(ecosystem); !slices.Equal(got, []registry.Kind{registry.Kind(ecosystem), registry.CodeArtifact}) {
			t.Errorf("%s: %v", ecosystem, got)
		}
	}
	for _, ecosystem := range []string{"", registry.NoEcosystem, "gomod", "cargo"} {
		if got := registry.Kinds(ecosystem); got != nil {
			t.Errorf("%s: %v", ecosystem, got)
		}
	}
}
