package lockfiles

import (
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// pnpmSections are the sections of a project and of a package that name what it requires.
var pnpmSections = []string{"dependencies", "devDependencies", "optionalDependencies"}

// readPnpm reads pnpm-lock.yaml of the versions 5 to 9. Since pnpm 11, another document before the project has the
// package manager itself.
func readPnpm(f file) ([]entry, error) {
	docs, err := documents(f.content)
	if err != nil {
		return nil, err
	}
	var entries []entry
	for _, doc := range docs {
		version, err := strconv.ParseFloat(scalar(doc, "lockfileVersion"), 64)
		if err != nil || pnpmItself(doc) {
			continue
		}
		entries = append(entries, pnpmProjects(doc, version)...)
		entries = append(entries, pnpmPackages(doc, version)...)
	}
	return entries, nil
}

func pnpmItself(doc *yaml.Node) bool {
	for _, project := range members(member(doc, "importers")) {
		if member(project, "packageManagerDependencies") != nil || member(project, "configDependencies") != nil {
			return true
		}
	}
	return false
}

func pnpmProjects(doc *yaml.Node, version float64) []entry {
	projects := []*yaml.Node{doc} // before workspaces, the document is the only project
	for _, project := range members(member(doc, "importers")) {
		projects = append(projects, project)
	}
	entries := make([]entry, len(projects))
	for i, project := range projects {
		entries[i] = entry{root: true, requires: pnpmRequires(project, version)}
	}
	return entries
}

// pnpmPackages reads the packages. Since version 9, snapshots has one for each set of peers, and packages what they
// have in common.
func pnpmPackages(doc *yaml.Node, version float64) []entry {
	common, lines := map[string]*yaml.Node{}, map[string]int{}
	for key, value := range members(member(doc, "packages")) {
		common[key.Value], lines[key.Value] = value, key.Line
	}
	section := "packages"
	if version >= 9 {
		section = "snapshots"
	}
	var entries []entry
	for key, value := range members(member(doc, section)) {
		about := common[withoutPeers(key.Value)]
		if section == "packages" {
			about = value
		}
		e := entry{line: key.Line, keys: []string{key.Value}, requires: pnpmRequires(value, version)}
		if line := lines[withoutPeers(key.Value)]; line > 0 {
			e.line = line
		}
		e.name, e.version = pnpmName(key.Value, version)
		if name := scalar(about, "name"); name != "" {
			e.name = name
		}
		if given := scalar(about, "version"); given != "" {
			e.version = given
		}
		if strings.Contains(e.version, ":") { // where it comes from
			e.version = ""
		}
		e.root = scalar(member(about, "resolution"), "type") == "directory"
		entries = append(entries, e)
	}
	return entries
}

// pnpmRequires returns the keys of what a project or package requires. The value is the version, with its peers, or the
// key of a package with another name.
func pnpmRequires(n *yaml.Node, version float64) []string {
	separator, prefix := "@", "/"
	if version < 6 {
		separator = "/"
	}
	if version >= 9 {
		prefix = ""
	}
	var keys []string
	for _, section := range pnpmSections {
		for name, value := range members(member(n, section)) {
			resolved := value.Value
			if value.Kind == yaml.MappingNode {
				resolved = scalar(value, "version")
			}
			keys = append(keys, prefix+name.Value+separator+resolved, resolved)
		}
	}
	return keys
}

// pnpmName splits the key of a package:
//
//	5: /@babel/core/7.21.0_peer@1.0.0    6: /@babel/core@7.21.0(peer@1.0.0)    9: @babel/core@7.21.0(peer@1.0.0)
//
// Before version 9, the host of another registry may be in front of it.
func pnpmName(key string, version float64) (name, resolved string) {
	if version < 9 {
		_, key, _ = strings.Cut(key, "/")
	}
	if version >= 6 {
		return splitAt(withoutPeers(key))
	}
	at := strings.LastIndex(key, "/")
	if at < 0 {
		return "", ""
	}
	resolved, _, _ = strings.Cut(key[at+1:], "_")
	return key[:at], resolved
}

func withoutPeers(key string) string {
	key, _, _ = strings.Cut(key, "(")
	return key
}
