package console_test

import (
	"bytes"
	"compress/gzip"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// What the console may weigh. A person on a slow line waits for the first route; the rest loads when it is opened.
const (
	firstRouteLimit = 180_000 // bytes after gzip: the page, the first screen, their imports and styles
	lazyRouteLimit  = 150_000 // bytes after gzip: what another screen loads besides
	distLimit       = 2_500_000
	// firstScreen is what `/console/` opens.
	firstScreen = "assets/triage.js"
)

// dist is what Vite built.
var dist = os.DirFS("dist")

func readDist(t *testing.T, name string) string {
	t.Helper()
	content, err := fs.ReadFile(dist, name)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

var (
	// In minified code: import"./a.js", import{b}from"./a.js" and export{b}from"./a.js".
	staticImport = regexp.MustCompile(`(?:\bimport|\bfrom)\s*["'](\./[^"']+\.js)["']`)
	// import("./a.js").
	lazyImport = regexp.MustCompile("\\bimport\\s*\\(\\s*[\"'`](\\./[^\"'`]+\\.js)[\"'`]")
	// What the page itself loads.
	pageFile = regexp.MustCompile(`(?:src|href)="\./([^"]+\.(?:js|css))"`)
)

// withImports returns the files and everything that they import statically.
func withImports(t *testing.T, files ...string) []string {
	t.Helper()
	for at := 0; at < len(files); at++ { // grows
		if path.Ext(files[at]) != ".js" {
			continue
		}
		for _, found := range staticImport.FindAllStringSubmatch(readDist(t, files[at]), -1) {
			if name := path.Join(path.Dir(files[at]), found[1]); !slices.Contains(files, name) {
				files = append(files, name)
			}
		}
	}
	return files
}

// gzipped is the size of the files as they are sent, each compressed by itself.
func gzipped(t *testing.T, files []string) int {
	t.Helper()
	sum := 0
	for _, name := range files {
		var compressed bytes.Buffer
		writer := gzip.NewWriter(&compressed)
		if _, err := writer.Write([]byte(readDist(t, name))); err != nil {
			t.Fatal(err)
		}
		if err := writer.Close(); err != nil {
			t.Fatal(err)
		}
		sum += compressed.Len()
	}
	return sum
}

func TestBudgets(t *testing.T) {
	page := []string{}
	for _, found := range pageFile.FindAllStringSubmatch(readDist(t, "index.html"), -1) {
		page = append(page, found[1])
	}
	if len(page) < 3 {
		t.Fatalf("the page loads only %q: does this test still understand it?", page)
	}
	first := withImports(t, append(page, firstScreen)...)
	size := gzipped(t, append([]string{"index.html"}, first...))
	t.Logf("%-40s %7d bytes", "the first route", size)
	if size > firstRouteLimit {
		t.Errorf("the first route has %d bytes after gzip, want at most %d: %q", size, firstRouteLimit, first)
	}

	lazy := 0
	for _, name := range files(t) {
		if path.Ext(name) != ".js" {
			continue
		}
		for _, found := range lazyImport.FindAllStringSubmatch(readDist(t, name), -1) {
			route := path.Join(path.Dir(name), found[1])
			lazy++
			more := slices.DeleteFunc(withImports(t, route), func(name string) bool { return slices.Contains(first, name) })
			if size := gzipped(t, more); size > lazyRouteLimit {
				t.Errorf("%s loads %d bytes after gzip, want at most %d: %q", route, size, lazyRouteLimit, more)
			} else {
				t.Logf("%-40s %7d bytes", route, size)
			}
		}
	}
	if lazy < 5 {
		t.Errorf("found %d lazy imports: does this test still understand the code?", lazy)
	}
}

// files returns the names of all files in dist.
func files(t *testing.T) []string {
	t.Helper()
	var names []string
	err := fs.WalkDir(dist, ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// TestDist: what is served is small, has no path of the machine that built it, and the page has nothing inline and
// nothing of other hosts.
func TestDist(t *testing.T) {
	total := 0
	home := regexp.MustCompile(`(?:file://|/(?:home|root|Users|work|tmp|builds?)/)[\w.@-]+/`)
	for _, name := range files(t) {
		content := readDist(t, name)
		total += len(content)
		if found := home.FindString(content); found != "" {
			t.Errorf("%s has a path of a machine: %q", name, found)
		}
		if strings.Contains(content, "sourceMappingURL") {
			t.Errorf("%s names a source map, which is not served", name)
		}
	}
	if total > distLimit {
		t.Errorf("dist has %d bytes, want at most %d", total, distLimit)
	}
	page := readDist(t, "index.html")
	for _, forbidden := range []string{`<script>`, `<style`, ` style="`, ` on\w+="`, `(?:src|href)="(?:[a-z]+:)?//`} {
		if found := regexp.MustCompile(forbidden).FindString(page); found != "" {
			t.Errorf("the page has %q, which its Content-Security-Policy forbids", found)
		}
	}
}
