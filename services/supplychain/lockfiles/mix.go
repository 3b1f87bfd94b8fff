package lockfiles

import (
	"bytes"
	"regexp"
	"strings"
)

var (
	// mixPackage is a line of mix.lock: "name": {:hex, :package, "version", "checksum", [:mix], [requirements], …
	mixPackage  = regexp.MustCompile(`^"([^"]+)":\s*\{:hex,\s*:"?(\w+)"?,\s*"([^"]+)"(.*)`)
	mixRequired = regexp.MustCompile(`\{:"?(\w+)"?,\s*"[^"]*",\s*\[`)
	// mixDirect is a dependency in mix.exs. Other tuples that begin with an atom are not in the lockfile.
	mixDirect = regexp.MustCompile(`\{\s*:(\w+)\s*,`)
)

// readMix reads mix.lock: the packages of Hex. The direct ones are in mix.exs.
func readMix(f file) ([]entry, error) {
	var entries []entry
	line := 0
	for text := range strings.Lines(string(f.content)) {
		line++
		found := mixPackage.FindStringSubmatch(strings.TrimSpace(text))
		if found == nil {
			continue
		}
		e := entry{name: found[2], version: found[3], line: line, keys: []string{found[1]}}
		for _, required := range mixRequired.FindAllStringSubmatch(found[4], -1) {
			e.requires = append(e.requires, required[1])
		}
		entries = append(entries, e)
	}
	manifest := f.sibling("mix.exs")
	if manifest == nil {
		return entries, nil
	}
	// The applications of an umbrella have manifests of their own.
	root := entry{root: true, partial: bytes.Contains(manifest, []byte("apps_path:"))}
	for _, direct := range mixDirect.FindAllSubmatch(manifest, -1) {
		root.requires = append(root.requires, string(direct[1]))
	}
	return append(entries, root), nil
}
