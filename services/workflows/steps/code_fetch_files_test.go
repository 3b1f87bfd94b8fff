package steps

import (
	"strings"
	"testing"
)

func TestFileSet(t *testing.T) {
	for _, c := range []struct {
		include, exclude, file string
		want                   bool
	}{
		{"", "", "a/b.go", true},
		{"*.go", "", "a/b.go", true},
		{"*.go", "", "a/b.ts", false},
		{"a/*.go", "", "a/b.go", true},
		{"a/*.go", "", "a/c/b.go", false},
		{"a/**/*.go", "", "a/b.go", true},
		{"a/**/*.go", "", "a/c/d/b.go", true},
		{"**/*.{go,ts}", "", "a/b.ts", true},
		{"/src/", "", "src/x/y.go", true},
		{"./src/**", "", "src/y.go", true},
		{"src/", "", "lib/src/y.go", false},
		{"", "vendor/", "vendor/x/y.go", false},
		{"", "**/testdata/**", "a/testdata/x.go", false},
		{"", "*_test.go", "a/b_test.go", false},
		{"*.go", "*.go", "b.go", false},
		{"[ab].go", "", "b.go", true},
	} {
		set, err := newFileSet(strings.Fields(c.include), strings.Fields(c.exclude))
		if err != nil {
			t.Errorf("%q %q: %v", c.include, c.exclude, err)
			continue
		}
		if got, err := set.matches(c.file); err != nil || got != c.want {
			t.Errorf("include %q, exclude %q: %s: got %v %v", c.include, c.exclude, c.file, got, err)
		}
	}
	for _, bad := range []string{"a[", "src/a[", "src/{a,b", "", strings.Repeat("a", 301), strings.Repeat("*a", 7)} {
		if _, err := newFileSet(words{bad}, nil); err == nil || !strings.Contains(err.Error(), "include") && !strings.Contains(err.Error(), "glob") {
			t.Errorf("%.20q: got %v", bad, err)
		}
	}
	if _, err := newFileSet(nil, make(words, 101)); err == nil {
		t.Error("101 globs were accepted")
	}
}
