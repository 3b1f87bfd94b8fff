package lockfiles

import (
	"bytes"
	"regexp"
	"strings"

	"github.com/palisade/palisade/services/supplychain/osv"
)

func pypi(name string) string { return osv.PackageName("pypi", name) }

// readUv reads uv.lock. The project and the members of its workspace are packages with a local source.
func readUv(f file) ([]entry, error) {
	packages, err := tomlPackages(f.content)
	if err != nil {
		return nil, err
	}
	entries := make([]entry, len(packages))
	for i, p := range packages {
		e := entry{name: p.Name, version: p.Version, line: p.line, keys: []string{p.Name, p.Name + " " + p.Version}}
		e.root = field(p.Source, "editable")+field(p.Source, "virtual")+field(p.Source, "directory") != ""
		e.requires = pythonRequires(p.Dependencies)
		for _, extra := range p.OptionalDependencies {
			e.requires = append(e.requires, pythonRequires(extra)...)
		}
		for _, group := range p.DevDependencies {
			e.requires = append(e.requires, pythonRequires(group)...)
		}
		entries[i] = e
	}
	return entries, nil
}

// readPylock reads pylock.toml (PEP 751). pip lists the project as a directory; others do not list it.
func readPylock(f file) ([]entry, error) {
	packages, err := tomlPackages(f.content)
	if err != nil {
		return nil, err
	}
	entries := make([]entry, 0, len(packages)+1)
	for _, p := range packages {
		name := pypi(p.Name)
		e := entry{name: p.Name, version: p.Version, line: p.line, keys: []string{name, name + " " + p.Version}}
		e.root = p.Directory != nil
		e.requires = pythonRequires(p.Dependencies)
		if e.root && len(e.requires) == 0 {
			continue // it does not tell what is direct
		}
		entries = append(entries, e)
	}
	return f.withPyproject(entries), nil
}

// pythonRequires reads tables with a name and, if there are several, a version.
func pythonRequires(dependencies any) []string {
	var keys []string
	for _, required := range list(dependencies) {
		key := pypi(field(required, "name"))
		if version := field(required, "version"); version != "" {
			key += " " + version
		}
		keys = append(keys, key)
	}
	return keys
}

// withPyproject adds what pyproject.toml requires as a root.
func (f file) withPyproject(entries []entry) []entry {
	var manifest struct {
		Project struct {
			Dependencies         []string            `toml:"dependencies"`
			OptionalDependencies map[string][]string `toml:"optional-dependencies"`
		} `toml:"project"`
		Groups map[string][]any `toml:"dependency-groups"`
		Tool   struct {
			Poetry struct {
				Dependencies    map[string]any `toml:"dependencies"`
				DevDependencies map[string]any `toml:"dev-dependencies"`
				Group           map[string]struct {
					Dependencies map[string]any `toml:"dependencies"`
				} `toml:"group"`
			} `toml:"poetry"`
		} `toml:"tool"`
	}
	content := f.sibling("pyproject.toml")
	if content == nil || unmarshalTOML(content, &manifest) != nil {
		return entries
	}
	lists := [][]string{manifest.Project.Dependencies}
	for _, extra := range manifest.Project.OptionalDependencies {
		lists = append(lists, extra)
	}
	for _, group := range manifest.Groups {
		for _, required := range group {
			text, _ := required.(string) // a table includes another group
			lists = append(lists, []string{text})
		}
	}
	poetry := manifest.Tool.Poetry
	tables := []map[string]any{poetry.Dependencies, poetry.DevDependencies}
	for _, group := range poetry.Group {
		tables = append(tables, group.Dependencies)
	}
	root := entry{root: true}
	for _, requirements := range lists {
		for _, requirement := range requirements {
			root.requires = append(root.requires, pypi(pythonName.FindString(requirement)))
		}
	}
	for _, table := range tables {
		for name := range table {
			root.requires = append(root.requires, pypi(name))
		}
	}
	return append(entries, root)
}

// readPipfile reads Pipfile.lock. The direct packages are in Pipfile.
func readPipfile(f file) ([]entry, error) {
	var entries []entry
	d := newDocument(f.content)
	err := d.members(func(section string, _ int) error {
		if section == "_meta" {
			return d.SkipValue()
		}
		return d.members(func(name string, line int) error {
			e := entry{name: name, line: line, keys: []string{pypi(name)}}
			p, err := d.texts()
			e.version, _ = strings.CutPrefix(p["version"], "==")
			entries = append(entries, e)
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	var manifest map[string]any // packages, dev-packages, and groups with any name
	if content := f.sibling("Pipfile"); content != nil && unmarshalTOML(content, &manifest) == nil {
		root := entry{root: true}
		for _, section := range manifest {
			table, _ := section.(map[string]any)
			for name := range table {
				root.requires = append(root.requires, pypi(name))
			}
		}
		entries = append(entries, root)
	}
	return entries, nil
}

var (
	pythonName = regexp.MustCompile(`^\s*[A-Za-z0-9][A-Za-z0-9._-]*`)
	// requirement is a pinned package: name[extras] == version ; marker --hash=… # comment
	requirement = regexp.MustCompile(`^([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[[^\]]*\])?\s*===?\s*([A-Za-z0-9.+!_-]+)\s*(?:[;\\#,]|--|$)`)
	via         = regexp.MustCompile(`#\s*via\b(.*)$`)
)

// readRequirements reads requirements.txt: the pinned packages. pip-compile and uv write in comments why a package is
// there ("# via flask", "# via -r requirements.in"); otherwise nothing tells a direct package from another.
func readRequirements(f file) ([]entry, error) {
	var entries []entry
	parents := map[string][]string{} // what each package requires, by the comments of the others
	root := entry{root: true}
	explained := bytes.Contains(f.content, []byte("autogenerated by"))
	name, reasons, line := "", false, 0
	for text := range strings.Lines(string(f.content)) {
		line++
		text = strings.TrimSpace(text)
		if found := requirement.FindStringSubmatch(text); found != nil {
			name = pypi(found[1])
			entries = append(entries, entry{name: found[1], version: found[2], line: line, keys: []string{name}})
			reasons = false
		} else if text != "" && text[0] != '#' && text[0] != '-' {
			name = "" // a package without a pin
		}
		because := ""
		if found := via.FindStringSubmatch(text); found != nil {
			because, reasons = found[1], true
		} else if reasons && strings.HasPrefix(text, "#") {
			because = text[1:]
		}
		for reason := range strings.SplitSeq(because, ",") {
			switch reason = strings.TrimSpace(reason); {
			case reason == "" || name == "" || strings.HasPrefix(reason, "-c"):
			case strings.HasPrefix(reason, "-r") || strings.Contains(reason, "("): // project (pyproject.toml)
				root.requires = append(root.requires, name)
			default:
				parents[pypi(reason)] = append(parents[pypi(reason)], name)
			}
		}
	}
	if !explained {
		return entries, nil
	}
	for i := range entries {
		key := entries[i].keys[0]
		entries[i].requires = parents[key]
		delete(parents, key) // once, however often the package is listed
	}
	return append(entries, root), nil
}
