package lockfiles

import (
	"encoding/xml"
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
	"github.com/go-json-experiment/json"

	"github.com/palisade/palisade/services/supplychain/osv"
)

// manifest is a package.json: names to ranges.
type manifest struct {
	Dependencies, DevDependencies, OptionalDependencies, PeerDependencies map[string]string
}

// readManifest returns nil for a file that says nothing about the packages.
func readManifest(content []byte) *manifest {
	if content == nil {
		return nil
	}
	var m manifest
	if json.Unmarshal(content, &m, json.MatchCaseInsensitiveNames(true)) != nil {
		return nil
	}
	return &m
}

// wants reports whether the manifest names a package with one of the lockfile's patterns, such as lodash@^4.0.0 or
// lodash@npm:^4.0.0.
func (m *manifest) wants(name string, patterns []string) bool {
	for _, list := range []map[string]string{m.Dependencies, m.DevDependencies, m.OptionalDependencies, m.PeerDependencies} {
		version, named := list[name]
		if named && (slices.Contains(patterns, name+"@"+version) || slices.Contains(patterns, name+"@npm:"+version)) {
			return true
		}
	}
	return false
}

// pythonName is how Python compares names.
func pythonName(name string) string { return osv.PackageName("pypi", name) }

// requirement matches the name at the start of a requirement such as "requests[socks]>=2".
var requirement = regexp.MustCompile(`^\s*([A-Za-z0-9][A-Za-z0-9._-]*)`)

// readPyproject returns the names of the direct packages of a pyproject.toml; nil if it cannot be read.
func readPyproject(content []byte) map[string]bool {
	var file struct {
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
	if content == nil || toml.Unmarshal(content, &file) != nil {
		return nil
	}
	direct := map[string]bool{}
	add := func(text string) {
		if m := requirement.FindStringSubmatch(text); m != nil {
			direct[pythonName(m[1])] = true
		}
	}
	lists := [][]string{file.Project.Dependencies}
	for _, list := range file.Project.OptionalDependencies {
		lists = append(lists, list)
	}
	for _, list := range lists {
		for _, text := range list {
			add(text)
		}
	}
	for _, list := range file.Groups {
		for _, item := range list {
			if text, ok := item.(string); ok { // else it includes another group
				add(text)
			}
		}
	}
	tables := []map[string]any{file.Tool.Poetry.Dependencies, file.Tool.Poetry.DevDependencies}
	for _, group := range file.Tool.Poetry.Group {
		tables = append(tables, group.Dependencies)
	}
	for _, table := range tables {
		for name := range table {
			add(name)
		}
	}
	return direct
}

// readPipfile returns the names of the direct packages of a Pipfile; nil if it cannot be read.
func readPipfile(content []byte) map[string]bool {
	var file struct {
		Packages    map[string]any `toml:"packages"`
		DevPackages map[string]any `toml:"dev-packages"`
	}
	if content == nil || toml.Unmarshal(content, &file) != nil {
		return nil
	}
	direct := map[string]bool{}
	for _, table := range []map[string]any{file.Packages, file.DevPackages} {
		for name := range table {
			direct[pythonName(name)] = true
		}
	}
	return direct
}

// ownCrates returns the ids of the crates without a source.
func ownCrates(content []byte) (map[string]bool, error) {
	var file struct {
		Package []struct{ Name, Version, Source string }
	}
	if err := toml.Unmarshal(content, &file); err != nil {
		return nil, errors.New("it is not a TOML document")
	}
	own := map[string]bool{}
	for _, p := range file.Package {
		if p.Source == "" {
			own[p.Name+"@"+p.Version] = true
		}
	}
	return own, nil
}

// pomFile has the direct dependencies of a Maven project.
type pomFile struct {
	GroupID string `xml:"groupId"`
	Version string `xml:"version"`
	Parent  struct {
		GroupID string `xml:"groupId"`
		Version string `xml:"version"`
	} `xml:"parent"`
	Properties struct {
		All []struct {
			XMLName xml.Name
			Value   string `xml:",chardata"`
		} `xml:",any"`
	} `xml:"properties"`
	Managed      []pomDependency `xml:"dependencyManagement>dependencies>dependency"`
	Dependencies []pomDependency `xml:"dependencies>dependency"`
}

type pomDependency struct {
	GroupID    string `xml:"groupId"`
	ArtifactID string `xml:"artifactId"`
	Version    string `xml:"version"`
}

func (d pomDependency) name() string {
	return strings.TrimSpace(d.GroupID) + ":" + strings.TrimSpace(d.ArtifactID)
}
