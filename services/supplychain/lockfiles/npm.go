package lockfiles

import (
	"context"
	"path"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// maxPath is the length of the longest path in a package-lock.json, in bytes. Deeper packages are left out.
const maxPath = 4096

// npmEntry is a package in a package-lock.json. Of version 1, requires has its dependencies, and Dependencies the
// packages that are installed below it; later versions have a flat list.
type npmEntry struct {
	Name, Version        string
	Link                 bool
	Dependencies         map[string]string
	DevDependencies      map[string]string
	OptionalDependencies map[string]string
	PeerDependencies     map[string]string
}

type npmOldEntry struct {
	Version      string
	Requires     jsontext.Value
	Dependencies map[string]npmOldEntry
}

// npmLock reads package-lock.json of all versions.
func npmLock(_ context.Context, s *source) ([]Package, error) {
	var file struct {
		Packages     map[string]npmEntry
		Dependencies map[string]npmOldEntry
	}
	if json.Unmarshal(s.content, &file, json.MatchCaseInsensitiveNames(true)) != nil {
		return nil, errNoJSON
	}
	tree := npmTree{packages: file.Packages}
	if tree.packages == nil {
		tree.packages = map[string]npmEntry{}
		tree.addOld("", file.Dependencies)
		if m := readManifest(s.sibling("package.json")); m != nil {
			tree.packages[""] = npmEntry{
				Dependencies: m.Dependencies, DevDependencies: m.DevDependencies, OptionalDependencies: m.OptionalDependencies, PeerDependencies: m.PeerDependencies,
			}
		}
	}
	return tree.list(s), nil
}

// npmTree is what is installed, by path: "" is the project, other paths without node_modules are its workspaces.
type npmTree struct{ packages map[string]npmEntry }

// addOld adds the nested packages of version 1.
func (t *npmTree) addOld(below string, nested map[string]npmOldEntry) {
	for name, p := range nested {
		at := path.Join(below, modulesDir, name)
		if len(at) > maxPath {
			continue
		}
		entry := npmEntry{Version: p.Version}
		_ = json.Unmarshal(p.Requires, &entry.Dependencies) // true, if it has requirements of its own
		if alias, ok := strings.CutPrefix(p.Version, "npm:"); ok {
			entry.Name, entry.Version = splitLast(alias, "@")
		}
		t.packages[at] = entry
		t.addOld(at, p.Dependencies)
	}
}

const modulesDir = "node_modules"

// splitLast splits a text at the last separator.
func splitLast(text, separator string) (before, after string) {
	if i := strings.LastIndex(text, separator); i >= 0 {
		return text[:i], text[i+len(separator):]
	}
	return text, ""
}

func (t *npmTree) list(s *source) (out []Package) {
	direct := map[string]bool{}
	_, told := t.packages[""]
	for at, entry := range t.packages {
		if !isModule(at) && len(at) <= maxPath {
			for _, to := range t.required(at, &entry) {
				direct[to] = true
			}
		}
	}
	lines := s.lines(func(line string) string { return strings.TrimSuffix(strings.TrimPrefix(line, `"`), `": {`) })
	for at, entry := range t.packages {
		if !isModule(at) || entry.Link || len(at) > maxPath || strings.Contains(entry.Version, ":") { // a tarball or a directory
			continue
		}
		one := Package{Name: t.name(at), Version: entry.Version, Line: lines[at]}
		if told {
			one.Transitivity = transitivity(direct[at])
		}
		for _, to := range t.required(at, &entry) {
			if version := t.packages[to].Version; version != "" {
				one.Children = append(one.Children, t.name(to)+"@"+version)
			}
		}
		out = append(out, one)
	}
	return out
}

func isModule(at string) bool {
	return strings.HasPrefix(at, modulesDir+"/") || strings.Contains(at, "/"+modulesDir+"/")
}

// name is the name of a package. An alias is installed under another one.
func (t *npmTree) name(at string) string {
	if name := t.packages[at].Name; name != "" {
		return name
	}
	_, name := splitLast("/"+at, "/"+modulesDir+"/")
	return name
}

// required returns the paths of the packages that an entry requires, as Node.js finds them: in the nearest directory.
func (t *npmTree) required(at string, entry *npmEntry) (found []string) {
	for _, list := range []map[string]string{entry.Dependencies, entry.DevDependencies, entry.OptionalDependencies, entry.PeerDependencies} {
		for name := range list {
			for dir := at; ; dir = path.Dir(dir) {
				if dir == "." {
					dir = ""
				}
				candidate := path.Join(dir, modulesDir, name)
				if _, installed := t.packages[candidate]; installed {
					found = append(found, candidate)
					break
				}
				if dir == "" {
					break
				}
			}
		}
	}
	return found
}
