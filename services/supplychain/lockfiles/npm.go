package lockfiles

import (
	"errors"
	"maps"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

const (
	// maxNesting is the maximum number of directories node_modules in each other.
	maxNesting = 40
	// maxSearch limits the search for what packages require: the length of the directories searched, for a whole file.
	maxSearch = 1 << 30
	modules   = "node_modules"
)

var errNested = errors.New("its packages are nested too deeply")

// npmPackage is a package of a lockfile, or a package.json.
type npmPackage struct {
	Name                 string `json:"name"` // in a lockfile only if it differs from the directory
	Version              string `json:"version"`
	Link                 bool   `json:"link"`
	Dependencies         dict   `json:"dependencies"`
	DevDependencies      dict   `json:"devDependencies"`
	OptionalDependencies dict   `json:"optionalDependencies"`
	PeerDependencies     dict   `json:"peerDependencies"`

	Workspaces jsontext.Value `json:"workspaces"`
}

// requires returns what a package requires; development says whether what only its developers need belongs to it.
func (p npmPackage) requires(development bool) dict {
	all := dict{}
	for _, some := range []dict{p.PeerDependencies, p.OptionalDependencies, p.Dependencies} {
		maps.Copy(all, some)
	}
	if development {
		maps.Copy(all, p.DevDependencies)
	}
	return all
}

// manifest returns the package.json beside a lockfile, as a root without keys; ok is false if there is none.
func (f file) manifest() (p npmPackage, ok bool) {
	content := f.sibling("package.json")
	if content == nil {
		return npmPackage{}, false
	}
	p, err := decode[npmPackage](content)
	return p, err == nil
}

// npmTree is what both forms of a package-lock.json are read into: entries by directory.
type npmTree struct {
	entries  []entry
	dirs     map[string]bool // of the entries
	names    []dict          // what each entry requires
	searched int
}

// readNpm reads the file of npm: versions 2 and 3 list directories, version 1 is a tree. Version 2 has both.
func readNpm(f file) ([]entry, error) {
	d := newDocument(f.content)
	listed, nested := &npmTree{dirs: map[string]bool{}}, &npmTree{dirs: map[string]bool{}}
	err := d.members(func(name string, _ int) error {
		switch name {
		case "packages":
			return d.members(func(dir string, line int) error { return listed.readDirectory(d, dir, line) })
		case "dependencies":
			return nested.readNested(d, "", 0)
		}
		return d.SkipValue()
	})
	if err != nil {
		return nil, err
	}
	if len(listed.entries) > 0 {
		return listed.resolve()
	}
	if p, ok := f.manifest(); ok {
		nested.add("", entry{root: true}, p.requires(true))
	}
	return nested.resolve()
}

func (t *npmTree) add(dir string, e entry, requires dict) {
	e.keys = []string{dir}
	t.dirs[dir] = true
	t.entries = append(t.entries, e)
	t.names = append(t.names, requires)
}

// readDirectory reads a package of version 2 or 3. One outside node_modules is the project or a member of its
// workspace, for which node_modules has a link.
func (t *npmTree) readDirectory(d *document, dir string, line int) error {
	var p npmPackage
	if err := json.UnmarshalDecode(d.Decoder, &p); err != nil {
		return err
	}
	if len(dir) > maxText || strings.Count(dir, modules) > maxNesting {
		return errNested
	}
	at := strings.LastIndex("/"+dir, "/"+modules+"/")
	switch {
	case p.Link:
	case at < 0:
		t.add(dir, entry{root: true}, p.requires(true))
	default:
		name := dir[at+len(modules)+1:]
		if p.Name != "" {
			name = p.Name // npm install alias@npm:name
		}
		t.add(dir, entry{name: name, version: p.Version, line: line}, p.requires(false))
	}
	return nil
}

// readNested reads the packages of version 1 that are installed in a directory.
func (t *npmTree) readNested(d *document, dir string, depth int) error {
	if depth > maxNesting {
		return errNested
	}
	return d.members(func(name string, line int) error {
		at := installed(dir, name)
		e := entry{name: name, line: line}
		var requires dict
		err := d.members(func(member string, _ int) (err error) {
			switch member {
			case "version":
				e.version, err = d.text()
			case "requires":
				requires, err = d.texts()
			case "dependencies":
				err = t.readNested(d, at, depth+1)
			default:
				err = d.SkipValue()
			}
			return err
		})
		if alias, ok := strings.CutPrefix(e.version, "npm:"); ok {
			e.name, e.version = splitAt(alias)
		}
		if strings.Contains(e.version, ":") { // a file or a repository
			e.version = ""
		}
		t.add(at, e, requires)
		return err
	})
}

// resolve finds what each package requires, as Node does: in its node_modules, then in the ones of parent directories.
func (t *npmTree) resolve() ([]entry, error) {
	for i := range t.entries {
		dir := t.entries[i].keys[0]
		for name := range t.names[i] {
			if found, ok := t.find(dir, name); ok {
				t.entries[i].requires = append(t.entries[i].requires, found)
			}
		}
		if t.searched > maxSearch {
			return nil, errNested
		}
	}
	return t.entries, nil
}

func (t *npmTree) find(dir, name string) (string, bool) {
	for t.searched <= maxSearch {
		at := installed(dir, name)
		t.searched += 64 + len(at)
		if t.dirs[at] {
			return at, true
		}
		if dir == "" {
			break
		}
		dir = dir[:max(strings.LastIndexByte(dir, '/'), 0)]
	}
	return "", false
}

// installed is the directory of a package that is installed in another.
func installed(dir, name string) string {
	if dir == "" {
		return modules + "/" + name
	}
	return dir + "/" + modules + "/" + name
}

// splitAt splits name@version at the first @ after the scope.
func splitAt(text string) (name, version string) {
	if text == "" {
		return "", ""
	}
	name, version, _ = strings.Cut(text[1:], "@")
	return text[:1] + name, version
}
