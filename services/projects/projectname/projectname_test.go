package projectname

import "testing"

func TestNames(t *testing.T) {
	t.Parallel()
	for name, good := range map[string]bool{
		"acme/web": true, "web": true, "acme/Grüße 世界 (api)": true, "a.b/..c": true, "tags": true, "acme/tags2": true, "acme/tags/web": true,
		"..": false, "a/../b": false, "./a": false, "": false, "   ": false, "a//b": false, "/a": false, "a/": false, "a/ b": false,
		"a\u202eb": false, "a\u2066b": false, "a/\u3164": false, "a\u200bb": false, "a\x00b": false, "a\nb": false, "a\u0085b": false, "x/tags": false, "x/managed-scan": false,
	} {
		if got := Check(Normal(name)); (got == "") != good {
			t.Errorf("%q: %q", name, got)
		}
	}
	if Normal(" Gru\u0308n ") != "Gr\u00fcn" {
		t.Error("the decomposed spelling is another name")
	}
}
